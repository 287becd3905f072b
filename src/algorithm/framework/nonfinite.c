// SPDX-License-Identifier: MIT
#include "algorithm/framework/nonfinite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "algorithm/framework/dtype.h"
#include "algorithm/framework/handle.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

enum {
    COUNT_SIZE = 4,
    MESSAGE_SIZE = 256,
    // Algorithms number their phases from 0.
    PHASE_FLAGS = 0xfffe,
    PHASE_RAW = 0xffff,
};

// The flag of an item.
enum { FINITE = 0, NOT_FINITE = 1, OVERFLOWS = 2 };

// The algorithm's part: the count in the first exchange.

lac_status laci_nonfinite_later(const laci_round *round)
{
    if (round->infinite_sums ||
        laci_group_nonfinite(round->group) == SIZE_MAX) {
        return LAC_OK;
    }
    return lac_fail(
        LACI_OVERFLOW, "%s: a sum over all workers overflows",
        round->worker->algorithm);
}

lac_status laci_nonfinite_overflows(const laci_round *round, size_t i)
{
    return lac_fail(
        LACI_OVERFLOW, "%s: the sum of %s over all workers overflows",
        round->worker->algorithm, round->items[i].name);
}

lac_status laci_nonfinite_sum(const laci_round *round, float *x, size_t n)
{
    x[n] = (float)round->nonfinite;
    LAC_TRY(
        laci_group_sum(round->group, round->number, 0, x, n, LACI_SUM_NOTES));
    return x[n] != 0 ? LACI_NONFINITE : laci_nonfinite_later(round);
}

void laci_nonfinite_list_sum(laci_listing *l, size_t n)
{
    laci_list_sum(l, n + LACI_SUM_NOTES);
}

lac_status laci_nonfinite_max(const laci_round *round, float *x, size_t n)
{
    x[n] = (float)round->nonfinite;
    LAC_TRY(
        laci_group_max(round->group, round->number, 0, x, n, LACI_SUM_NOTES));
    return x[n] != 0 ? LACI_NONFINITE : laci_nonfinite_later(round);
}

void laci_nonfinite_list_max(laci_listing *l, size_t n)
{
    laci_list_numbers(l, &laci_number_max, n + LACI_SUM_NOTES);
}

lac_status laci_nonfinite_stream(
    const laci_round *round, const laci_number_stream *stream, size_t n)
{
    float count = (float)round->nonfinite;
    LAC_TRY(laci_group_sum_stream(
        round->group, round->number, 0, stream, n, &count));
    return count != 0 ? LACI_NONFINITE : laci_nonfinite_later(round);
}

laci_writer *laci_nonfinite_message(const laci_round *round, uint32_t slot)
{
    laci_writer *const message = laci_group_message(round->group, slot);
    uint8_t count[COUNT_SIZE];
    laci_put_u32(count, round->nonfinite);
    laci_writer_note(message, count, sizeof(count));
    return message;
}

size_t laci_nonfinite_count_size(void)
{
    return LACI_LENGTH_SIZE + COUNT_SIZE;
}

static lac_status take_count(laci_reader *reader, uint32_t *out)
{
    const uint8_t *count;
    size_t len;
    LAC_TRY(laci_reader_next(reader, &count, &len));
    if (len != COUNT_SIZE) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "message from worker %" PRIu32
            ": the count of tensors that are not finite has %zu bytes, "
            "expected %d",
            reader->peer, len, COUNT_SIZE);
    }
    *out = laci_get_u32(count);
    return LAC_OK;
}

lac_status laci_nonfinite_counts(const laci_round *round)
{
    bool some = false;
    for (uint32_t k = 0; k < round->worker->world; k++) {
        uint32_t count = 0;
        LAC_TRY(laci_group_abort_on_failure(
            round->group, take_count(&round->readers[k], &count)));
        some = some || count > 0;
    }
    return some ? LACI_NONFINITE : LAC_OK;
}

lac_status laci_nonfinite_gather(const laci_round *round)
{
    LAC_TRY(laci_group_gather(round->group, round->number, 0, round->readers));
    return laci_nonfinite_counts(round);
}

void laci_nonfinite_list_gather(laci_listing *l, size_t body)
{
    const laci_bodies bodies =
        laci_bodies_equal(laci_nonfinite_count_size() + body, l->rules.world);
    laci_list_gather(l, &bodies);
}

// The framework's part.

static bool restores_errors(const lac_algorithm *a)
{
    return a->nonfinite.policy == LAC_NONFINITE_RAW ||
           a->nonfinite.policy == LAC_NONFINITE_PROPAGATE;
}

void laci_nonfinite_plan(lac_algorithm *a, lac_nonfinite policy)
{
    laci_nonfinite *const f = &a->nonfinite;
    f->policy = policy;
    for (size_t i = 0; restores_errors(a) && i < a->fields.count; i++) {
        const laci_field *const field = &a->fields.fields[i];
        f->saved_n += field->is_errors ? field->count : 0;
    }
    f->raw_n = policy == LAC_NONFINITE_RAW && !a->ops->any_dtype
                   ? lac_layout_values(a->worker.layout)
                   : 0;
}

lac_status laci_nonfinite_open(lac_algorithm *a)
{
    laci_nonfinite *const f = &a->nonfinite;
    if (a->ops->family != LAC_FAMILY_GRADIENT) {
        return LAC_OK;
    }
    f->flags = laci_zalloc(lac_layout_count(a->worker.layout) + 1);
    f->saved = laci_zalloc_aligned(f->saved_n * sizeof(float));
    f->zeros =
        laci_zalloc_aligned(laci_largest_tensor(&a->worker) * sizeof(float));
    if (f->flags == NULL || f->saved == NULL || f->zeros == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for values that are not finite",
            a->worker.algorithm);
    }
    return LAC_OK;
}

void laci_nonfinite_group(lac_algorithm *a)
{
    const lac_nonfinite policy = a->nonfinite.policy;
    a->round.infinite_sums =
        policy == LAC_NONFINITE_RAW && a->ops->infinite_sums;
    (void)laci_group_expect_finite(
        a->round.group,
        !a->round.infinite_sums && policy != LAC_NONFINITE_PROPAGATE);
}

void laci_nonfinite_fini(lac_algorithm *a)
{
    laci_free_aligned(a->nonfinite.zeros);
    laci_free_aligned(a->nonfinite.saved);
    laci_free(a->nonfinite.flags);
}

size_t laci_nonfinite_room(const lac_algorithm *a)
{
    const size_t tensors = lac_layout_count(a->worker.layout);
    return tensors > COUNT_SIZE ? tensors : COUNT_SIZE;
}

// Copies the error memories of the round's items to `saved`, or back.
static void copy_errors(lac_algorithm *a, bool back)
{
    float *next = a->nonfinite.saved;
    for (size_t i = 0; restores_errors(a) && i < a->round.count; i++) {
        const size_t tensor = a->items[i].tensor;
        for (size_t f = a->fields.first[tensor];
             f < a->fields.first[tensor + 1]; f++) {
            laci_field *const field = &a->fields.fields[f];
            if (!field->is_errors) {
                continue;
            }
            if (back) {
                laci_field_write(field, next);
            } else {
                laci_field_read(field, next);
            }
            next += field->count;
        }
    }
}

void laci_nonfinite_trust(lac_algorithm *a)
{
    memset(a->nonfinite.flags, FINITE, a->round.count);
    a->round.nonfinite = 0;
    for (size_t i = 0; i < a->round.count; i++) {
        a->items[i].given = a->items[i].in;
    }
}

// Finds the largest magnitudes of the items that begin among the values
// [first, first + n) of the round.
static void scan_items(void *context, size_t first, size_t n)
{
    lac_algorithm *const a = context;
    size_t start = 0;
    for (size_t i = 0; i < a->round.count && start < first + n; i++) {
        laci_item *const item = &a->items[i];
        if (start >= first) {
            const uint32_t bits =
                a->worker.kernels->vector->max_magnitude(item->in, item->n);
            memcpy(&item->max_magnitude, &bits, sizeof(bits));
        }
        start += item->n;
    }
}

static void find_magnitudes(lac_algorithm *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->round.count; i++) {
        a->items[i].max_magnitude = 0;
        n += a->items[i].n;
    }
    laci_pool_run(a->worker.pool, n, 1, scan_items, a);
}

// Returns why an item must not be reduced, or FINITE.
static uint8_t check_item(const lac_algorithm *a, const laci_item *item)
{
    if (a->ops->any_dtype) {
        return laci_dtype_finite(
                   a->worker.kernels, item->dtype, item->source, item->n)
                   ? FINITE
                   : NOT_FINITE;
    }
    if (!isfinite(item->max_magnitude)) {
        return NOT_FINITE;
    }
    const laci_field *const end = laci_fields_of(&a->fields, item->tensor + 1);
    for (const laci_field *f = item->fields; f < end; f++) {
        if (f->is_errors &&
            !lac_memory_accepts(f->errors, item->in, item->max_magnitude)) {
            return OVERFLOWS;
        }
    }
    const size_t index = (size_t)(item - a->items);
    return a->ops->accepts == NULL ||
                   a->ops->accepts(a->state, &a->round, index)
               ? FINITE
               : OVERFLOWS;
}

void laci_nonfinite_scan(lac_algorithm *a)
{
    laci_nonfinite_trust(a);
    if (!a->ops->any_dtype) {
        find_magnitudes(a);
    }
    for (size_t i = 0; i < a->round.count; i++) {
        laci_item *const item = &a->items[i];
        a->nonfinite.flags[i] = check_item(a, item);
        if (a->nonfinite.flags[i] != FINITE) {
            item->in = a->nonfinite.zeros;
            item->max_magnitude = 0;
            a->round.nonfinite++;
        }
    }
    copy_errors(a, false);
}

// Reads which items of a worker are not finite.
static lac_status read_flags(
    laci_reader *reader, size_t count, const uint8_t **flags_out)
{
    size_t len;
    LAC_TRY(laci_reader_next(reader, flags_out, &len));
    if (len != count) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "message from worker %" PRIu32
            ": has flags of %zu tensors, expected %zu",
            reader->peer, len, count);
    }
    return laci_reader_done(reader);
}

// Where the first flag is.
typedef struct found {
    uint32_t worker;
    size_t item;
    uint8_t flag;
} found;

// Finds the first worker that flagged an item. All items that some worker has
// flagged are then flagged here.
static lac_status gather_flags(lac_algorithm *a, found *out)
{
    const laci_round *const round = &a->round;
    const uint32_t world = a->worker.world;
    uint8_t *const own = a->nonfinite.flags;
    laci_writer_note(laci_group_message(round->group, 0), own, round->count);
    LAC_TRY(laci_group_gather(
        round->group, round->number, PHASE_FLAGS, round->readers));
    out->worker = world;
    for (uint32_t k = 0; k < world; k++) {
        const uint8_t *flags;
        LAC_TRY(laci_group_abort_on_failure(
            round->group,
            read_flags(&round->readers[k], round->count, &flags)));
        for (size_t i = 0; i < round->count; i++) {
            if (flags[i] != FINITE && out->worker == world) {
                *out = (found){k, i, flags[i]};
            }
            own[i] = own[i] != FINITE ? own[i] : flags[i];
        }
    }
    if (out->worker < world) {
        return LAC_OK;
    }
    return laci_group_abort_on_failure(
        round->group,
        lac_fail(
            LAC_ERR_CORRUPT,
            "%s: a worker counted values that are not finite, but no worker "
            "has any",
            a->worker.algorithm));
}

static lac_status sum_raw(lac_algorithm *a)
{
    const laci_round *const round = &a->round;
    float *const raw = a->nonfinite.raw;
    size_t n = 0;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        if (a->nonfinite.flags[i] && item->n > 0) {
            memcpy(raw + n, item->given, item->n * sizeof(float));
            n += item->n;
        }
    }
    const bool expected = laci_group_expect_finite(round->group, false);
    LAC_TRY(laci_group_sum(round->group, round->number, PHASE_RAW, raw, n, 0));
    (void)laci_group_expect_finite(round->group, expected);
    a->worker.kernels->gossip->scale(
        (float)(1.0 / a->worker.world), raw, raw, n);
    return LAC_OK;
}

static void copy_raw(const lac_algorithm *a)
{
    const float *next = a->nonfinite.raw;
    for (size_t i = 0; i < a->round.count; i++) {
        const laci_item *const item = &a->items[i];
        if (a->nonfinite.flags[i] && item->n > 0) {
            memcpy(item->out, next, item->n * sizeof(float));
            next += item->n;
        }
    }
}

static void swap_items(lac_algorithm *a, size_t i, size_t j)
{
    const laci_item item = a->items[i];
    a->items[i] = a->items[j];
    a->items[j] = item;
}

// Moves the items that are finite on all workers to the front and returns how
// many these are.
static size_t partition_items(lac_algorithm *a)
{
    size_t finite = 0;
    for (size_t i = 0; i < a->round.count; i++) {
        if (!a->nonfinite.flags[i]) {
            swap_items(a, i, finite++);
        }
    }
    return finite;
}

// Swaps the items of a partition back.
static void undo_partition(lac_algorithm *a, size_t finite)
{
    for (size_t i = a->round.count; i-- > 0;) {
        if (!a->nonfinite.flags[i]) {
            swap_items(a, i, --finite);
        }
    }
}

// Sums non-finite values like others.
static lac_status reduce_given(lac_algorithm *a)
{
    for (size_t i = 0; i < a->round.count; i++) {
        a->items[i].in = a->items[i].given;
    }
    a->round.nonfinite = 0;
    return a->ops->reduce(a->state, &a->round);
}

static lac_status resolve_raw(lac_algorithm *a)
{
    const size_t count = a->round.count;
    if (a->ops->any_dtype) {
        return reduce_given(a);
    }
    copy_errors(a, true);
    LAC_TRY(sum_raw(a));
    const size_t finite = partition_items(a);
    a->round.nonfinite = 0;
    a->round.count = finite;
    lac_status status = LAC_OK;
    if (finite > 0) {
        status = a->ops->reduce(a->state, &a->round);
    }
    a->round.count = count;
    undo_partition(a, finite);
    LAC_TRY(status);
    copy_raw(a);
    return LAC_OK;
}

static void fill_results(const lac_algorithm *a, float value)
{
    for (size_t i = 0; i < a->round.count; i++) {
        const laci_item *const item = &a->items[i];
        const bool given = a->ops->any_dtype;
        laci_dtype_fill(
            a->worker.kernels, given ? item->dtype : LAC_F32, value,
            given ? item->target : item->out, item->n);
    }
}

// Finishes the round by the policies that give a result; the others return
// false.
static bool resolve_all(lac_algorithm *a)
{
    switch (a->nonfinite.policy) {
    case LAC_NONFINITE_PROPAGATE:
        copy_errors(a, true);
        fill_results(a, NAN);
        return true;
    case LAC_NONFINITE_SKIP:
        fill_results(a, 0);
        return true;
    default:
        return false;
    }
}

// A double may be finite and too large for the float that is computed with.
static const char *as_float(bool converted, const laci_item *item)
{
    return item->dtype == LAC_F64 && converted ? " as a float" : "";
}

lac_status laci_nonfinite_resolve(lac_algorithm *a)
{
    found first = {0};
    LAC_TRY(gather_flags(a, &first));
    if (a->nonfinite.policy == LAC_NONFINITE_RAW) {
        return resolve_raw(a);
    }
    if (resolve_all(a)) {
        return LAC_OK;
    }
    const laci_item *const item = &a->items[first.item];
    if (first.flag == OVERFLOWS) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: worker %u has values in %s that overflow its error memory",
            a->worker.algorithm, first.worker, item->name);
    }
    return lac_fail(
        LAC_ERR_INVALID, "%s: worker %u has a value in %s that is not finite%s",
        a->worker.algorithm, first.worker, item->name,
        as_float(!a->ops->any_dtype, item));
}

lac_status laci_nonfinite_overflow(lac_algorithm *a)
{
    return resolve_all(a) ? LAC_OK : LAC_ERR_INVALID;
}

// Gossip has no first exchange with everybody. A worker whose values are not
// finite aborts the group, and all workers stop.
lac_status laci_nonfinite_refuse(const laci_round *round, size_t i)
{
    char why[MESSAGE_SIZE];
    const laci_item *const item = &round->items[i];
    (void)snprintf(
        why, sizeof(why),
        "%s: worker %u has a value in %s that is not finite%s",
        round->worker->algorithm, round->worker->rank, item->name,
        as_float(true, item));
    laci_group_abort(round->group, why);
    return lac_fail(LAC_ERR_INVALID, "%s", why);
}

static lac_status scan_item(const laci_round *round, size_t i, bool values)
{
    const laci_kernels *const kernels = round->worker->kernels;
    const laci_item *const item = &round->items[i];
    return (!values || laci_all_finite(kernels, item->in, item->n)) &&
                   (item->update == NULL ||
                    laci_all_finite(kernels, item->update, item->n))
               ? LAC_OK
               : laci_nonfinite_refuse(round, i);
}

lac_status laci_nonfinite_find(const laci_round *round, size_t i)
{
    return scan_item(round, i, true);
}

lac_status laci_nonfinite_stop(const lac_algorithm *a, bool values)
{
    for (size_t i = 0; i < a->round.count; i++) {
        LAC_TRY(scan_item(&a->round, i, values));
    }
    return LAC_OK;
}
