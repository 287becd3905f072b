// SPDX-License-Identifier: MIT
#include "algorithm/framework/dtype.h"

#include <math.h>
#include <string.h>

#include "algorithm/framework/handle.h"
#include "base/alloc.h"
#include "kernels/convert.h"
#include "kernels/vector.h"

// Values that are converted at once where they are not kept: they stay in the
// first cache.
enum { DTYPE_BLOCK = 1024 };

size_t laci_dtype_size(lac_dtype dtype)
{
    switch (dtype) {
    case LAC_F32:
        return sizeof(float);
    case LAC_F16:
    case LAC_BF16:
        return sizeof(uint16_t);
    case LAC_F64:
        return sizeof(double);
    }
    return 0;
}

const char *laci_dtype_name(lac_dtype dtype)
{
    switch (dtype) {
    case LAC_F32:
        return "float32";
    case LAC_F16:
        return "float16";
    case LAC_BF16:
        return "bfloat16";
    case LAC_F64:
        return "float64";
    }
    return "unknown";
}

void laci_dtype_load(
    const laci_kernels *kernels, lac_dtype dtype, const void *in, size_t at,
    float *x_out, size_t n)
{
    switch (dtype) {
    case LAC_F32:
        memcpy(x_out, (const float *)in + at, n * sizeof(float));
        break;
    case LAC_F16:
        kernels->convert->half.load((const uint16_t *)in + at, x_out, n);
        break;
    case LAC_BF16:
        kernels->convert->bfloat16.load((const uint16_t *)in + at, x_out, n);
        break;
    case LAC_F64:
        laci_load_doubles((const double *)in + at, x_out, n);
        break;
    }
}

void laci_dtype_store(
    const laci_kernels *kernels, lac_dtype dtype, const float *x, void *out,
    size_t at, size_t n)
{
    switch (dtype) {
    case LAC_F32:
        memcpy((float *)out + at, x, n * sizeof(float));
        break;
    case LAC_F16:
        kernels->convert->half.store(x, (uint16_t *)out + at, n);
        break;
    case LAC_BF16:
        kernels->convert->bfloat16.store(x, (uint16_t *)out + at, n);
        break;
    case LAC_F64:
        laci_store_doubles(x, (double *)out + at, n);
        break;
    }
}

static size_t block_at(size_t at, size_t n)
{
    return n - at < DTYPE_BLOCK ? n - at : DTYPE_BLOCK;
}

static bool doubles_finite(const double *x, size_t n)
{
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite &= isfinite(x[i]) != 0;
    }
    return finite;
}

// A double may be beyond the range of floats.
bool laci_dtype_finite(
    const laci_kernels *kernels, lac_dtype dtype, const void *in, size_t n)
{
    if (dtype == LAC_F32) {
        return laci_all_finite(kernels, in, n);
    }
    if (dtype == LAC_F64) {
        return doubles_finite(in, n);
    }
    bool finite = true;
    for (size_t at = 0; at < n && finite; at += DTYPE_BLOCK) {
        float x[DTYPE_BLOCK];
        laci_dtype_load(kernels, dtype, in, at, x, block_at(at, n));
        finite = laci_all_finite(kernels, x, block_at(at, n));
    }
    return finite;
}

void laci_dtype_fill(
    const laci_kernels *kernels, lac_dtype dtype, float value, void *out,
    size_t n)
{
    float x[DTYPE_BLOCK];
    for (size_t i = 0; i < DTYPE_BLOCK; i++) {
        x[i] = value;
    }
    for (size_t at = 0; at < n; at += DTYPE_BLOCK) {
        laci_dtype_store(kernels, dtype, x, out, at, block_at(at, n));
    }
}

size_t laci_stage_room(size_t n)
{
    return laci_aligned(n * sizeof(float));
}

static bool is_folded(const laci_item *item)
{
    return item->given_n < item->n;
}

static bool is_staged(const lac_algorithm *a, const laci_item *item)
{
    return (item->dtype != LAC_F32 && !a->ops->any_dtype) || is_folded(item);
}

static bool update_is_staged(const laci_item *item)
{
    return is_folded(item) && item->update != NULL;
}

static bool stays_double(const lac_algorithm *a, const laci_item *item)
{
    return item->dtype == LAC_F64 && a->ops->keeps_doubles;
}

static size_t item_room(const lac_algorithm *a, const laci_item *item)
{
    const size_t copies = (size_t)is_staged(a, item) + update_is_staged(item);
    return copies * laci_stage_room(item->n);
}

// Copies the values of an item, and its update, to `room`.
static void stage_item(const lac_algorithm *a, laci_item *item, float *room)
{
    const size_t rest = (item->n - item->given_n) * sizeof(float);
    laci_dtype_load(
        a->worker.kernels, item->dtype, item->source, 0, room, item->given_n);
    memset(room + item->given_n, 0, rest);
    item->in = room;
    item->out = room;
    if (update_is_staged(item)) {
        float *const update = room + laci_stage_room(item->n) / sizeof(float);
        memcpy(update, item->update, item->given_n * sizeof(float));
        memset(update + item->given_n, 0, rest);
        item->update = update;
    }
}

// Doubles that are kept as such need the low fields of their tensors.
static lac_status reserve_fields(lac_algorithm *a, const laci_item *item)
{
    const laci_field *const end = laci_fields_of(&a->fields, item->tensor + 1);
    for (laci_field *f = item->fields; stays_double(a, item) && f < end; f++) {
        LAC_TRY(laci_field_reserve(f));
    }
    return LAC_OK;
}

// One copy serves as `in` and as `out`: algorithms work in place too.
lac_status laci_stage_load(lac_algorithm *a)
{
    size_t size = 0;
    void *room = NULL;
    for (size_t i = 0; i < a->round.count; i++) {
        LAC_TRY(reserve_fields(a, &a->items[i]));
        size += item_room(a, &a->items[i]);
    }
    LAC_TRY(laci_round_room(&a->round, size, &room));
    char *next = room;
    for (size_t i = 0; i < a->round.count; i++) {
        laci_item *const item = &a->items[i];
        const size_t used = item_room(a, item);
        item->in = item->source;
        item->out = item->target;
        if (is_staged(a, item) && item->n > 0) {
            stage_item(a, item, (void *)next);
            next += used;
        }
    }
    return LAC_OK;
}

static void use_low_fields(const lac_algorithm *a, const laci_item *item)
{
    const laci_field *const end = laci_fields_of(&a->fields, item->tensor + 1);
    for (laci_field *f = item->fields; stays_double(a, item) && f < end; f++) {
        f->is_used = true;
    }
}

void laci_stage_store(const lac_algorithm *a)
{
    for (size_t i = 0; i < a->round.count; i++) {
        const laci_item *const item = &a->items[i];
        use_low_fields(a, item);
        if (is_staged(a, item) && !stays_double(a, item) && item->n > 0) {
            laci_dtype_store(
                a->worker.kernels, item->dtype, item->out, item->target, 0,
                item->given_n);
        }
    }
}
