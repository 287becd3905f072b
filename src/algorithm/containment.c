// SPDX-License-Identifier: MIT
#include "algorithm/containment.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

enum {
    EXPONENT_ALL_ONES = 0x7f800000,
    COUNT_SIZE = 4,
    // Algorithms use phases from 0 on.
    PHASE_WHO = 0xfffe,
    PHASE_RAW = 0xffff,
};

static size_t tensor_values(const lac_algorithm *a, size_t tensor)
{
    const lac_shape shape = lac_layout_tensor(a->worker.layout, tensor)->shape;
    return shape.rows * shape.cols;
}

static size_t largest_tensor(const lac_algorithm *a)
{
    size_t largest = 0;
    for (size_t t = 0; t < lac_layout_count(a->worker.layout); t++) {
        const size_t n = tensor_values(a, t);
        largest = n > largest ? n : largest;
    }
    return largest;
}

// An algorithm that finds them itself has not changed its state by then.
static bool keeps_state(const lac_algorithm *a)
{
    return a->nonfinite == LAC_NONFINITE_RAW && !a->ops->finds_unfit;
}

// The floats of the state, to be taken back.
static size_t kept_values(const lac_algorithm *a)
{
    size_t values = 0;
    for (size_t i = 0; keeps_state(a) && i < a->memory.count; i++) {
        const laci_field *const field = &a->memory.fields[i];
        values += field->name == NULL ? 0 : field->count;
    }
    return values;
}

size_t laci_containment_size(const lac_algorithm *a)
{
    if (a->nonfinite != LAC_NONFINITE_RAW) {
        return 0;
    }
    return (kept_values(a) + lac_layout_values(a->worker.layout)) *
           sizeof(float);
}

lac_status laci_containment_open(lac_algorithm *a)
{
    const bool raw = a->nonfinite == LAC_NONFINITE_RAW;
    const size_t tensors = lac_layout_count(a->worker.layout);
    const size_t kept = kept_values(a);
    const size_t values = raw ? lac_layout_values(a->worker.layout) : 0;
    a->unfit = laci_zalloc(tensors + 1);
    a->kept = laci_zalloc_aligned(kept * sizeof(float));
    a->raw = laci_zalloc_aligned(values * sizeof(float));
    a->zeros = laci_zalloc_aligned(largest_tensor(a) * sizeof(float));
    if (a->unfit == NULL || a->kept == NULL || a->raw == NULL ||
        a->zeros == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for values that are not finite",
            a->ops->plugin.name);
    }
    return LAC_OK;
}

void laci_containment_fini(lac_algorithm *a)
{
    laci_free_aligned(a->zeros);
    laci_free_aligned(a->raw);
    laci_free_aligned(a->kept);
    laci_free(a->unfit);
}

size_t laci_containment_room(const lac_algorithm *a)
{
    const size_t tensors = lac_layout_count(a->worker.layout);
    return tensors > COUNT_SIZE ? tensors : COUNT_SIZE;
}

// Copies the state of the first `count` items to a->kept, or back.
static void copy_state(lac_algorithm *a, size_t count, bool back)
{
    float *next = a->kept;
    for (size_t i = 0; i < count; i++) {
        const size_t tensor = a->items[i].tensor;
        for (size_t f = a->memory.first[tensor];
             f < a->memory.first[tensor + 1]; f++) {
            laci_field *const field = &a->memory.fields[f];
            if (field->name == NULL) {
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

uint32_t laci_containment_prepare(lac_algorithm *a, size_t count)
{
    const laci_vector_kernels *const vector = a->worker.kernels->vector;
    uint32_t unfit = 0;
    for (size_t i = 0; i < count; i++) {
        laci_item *const item = &a->items[i];
        a->unfit[i] =
            vector->max_magnitude(item->in, item->n) >= EXPONENT_ALL_ONES;
        if (a->unfit[i]) {
            item->in = a->zeros;
            unfit++;
        }
    }
    if (keeps_state(a)) {
        copy_state(a, count, false);
    }
    a->worker.not_finite = false;
    return unfit;
}

void laci_containment_trust(lac_algorithm *a, size_t count)
{
    memset(a->unfit, 0, count);
    a->worker.not_finite = false;
    a->worker.must_look = false;
}

// Reads which items worker `peer` has that are not finite.
static lac_status read_flags(
    laci_reader *reader, size_t count, const uint8_t **flags_out)
{
    size_t len;
    LAC_TRY(laci_reader_next(reader, flags_out, &len));
    if (len != count) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "message from worker %" PRIu32
            ": tells of %zu tensors whether they are finite, expected %zu",
            reader->peer, len, count);
    }
    return laci_reader_done(reader);
}

// Finds the first worker that has such an item, and which; all that any worker
// has are then marked in a->unfit.
static lac_status find_out(
    lac_algorithm *a, uint64_t number, size_t count, uint32_t *worker_out,
    size_t *item_out)
{
    laci_worker *const w = &a->worker;
    laci_writer_note(laci_group_message(w->group, 0), a->unfit, count);
    LAC_TRY(laci_group_gather(w->group, number, PHASE_WHO, w->readers));
    *worker_out = w->world;
    for (uint32_t k = 0; k < w->world; k++) {
        const uint8_t *flags;
        LAC_TRY(laci_group_abort_on_failure(
            w->group, read_flags(&w->readers[k], count, &flags)));
        for (size_t i = 0; i < count; i++) {
            if (flags[i] != 0 && *worker_out == w->world) {
                *worker_out = k;
                *item_out = i;
            }
            a->unfit[i] = a->unfit[i] || flags[i] != 0;
        }
    }
    if (*worker_out == w->world) {
        return laci_group_abort_on_failure(
            w->group,
            lac_fail(
                LAC_ERR_CORRUPT,
                "%s: a worker counted values that are not finite, and none "
                "has any",
                a->ops->plugin.name));
    }
    return LAC_OK;
}

static lac_status sum_raw(
    lac_algorithm *a, uint64_t number, const lac_slice *slices, size_t count)
{
    laci_worker *const w = &a->worker;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (a->unfit[i]) {
            const size_t values = tensor_values(a, slices[i].tensor);
            memcpy(a->raw + n, slices[i].in, values * sizeof(float));
            n += values;
        }
    }
    LAC_TRY(laci_group_sum(w->group, number, PHASE_RAW, a->raw, n));
    w->kernels->gossip->scale((float)(1.0 / w->world), a->raw, a->raw, n);
    return LAC_OK;
}

static void put_raw(lac_algorithm *a, const lac_slice *slices, size_t count)
{
    const float *next = a->raw;
    for (size_t i = 0; i < count; i++) {
        if (a->unfit[i]) {
            const size_t values = tensor_values(a, slices[i].tensor);
            memcpy(slices[i].out, next, values * sizeof(float));
            next += values;
        }
    }
}

// Brings the items that are finite everywhere to the front.
static size_t sort_items(lac_algorithm *a, size_t count)
{
    size_t fit = 0;
    for (size_t i = 0; i < count; i++) {
        if (!a->unfit[i]) {
            const laci_item item = a->items[i];
            a->items[i] = a->items[fit];
            a->items[fit++] = item;
        }
    }
    return fit;
}

static lac_status act_raw(
    lac_algorithm *a, uint64_t number, const lac_slice *slices, size_t count)
{
    if (keeps_state(a)) {
        copy_state(a, count, true);
    }
    LAC_TRY(sum_raw(a, number, slices, count));
    const laci_round rest = {number, a->items, sort_items(a, count), 0};
    if (rest.count > 0) {
        LAC_TRY(a->ops->reduce(a->state, &a->worker, &rest));
    }
    put_raw(a, slices, count);
    return LAC_OK;
}

lac_status laci_containment_act(
    lac_algorithm *a, uint64_t number, const lac_slice *slices, size_t count)
{
    uint32_t worker;
    size_t item = 0;
    LAC_TRY(find_out(a, number, count, &worker, &item));
    if (a->nonfinite == LAC_NONFINITE_RAW) {
        return act_raw(a, number, slices, count);
    }
    if (a->nonfinite == LAC_NONFINITE_SKIP) {
        for (size_t i = 0; i < count; i++) {
            const size_t n = a->items[i].n;
            memset(slices[i].out, 0, n * sizeof(float));
        }
        return LAC_OK;
    }
    const size_t tensor = slices[item].tensor;
    return lac_fail(
        LAC_ERR_INVALID, "%s: worker %u has a value in %s that is not finite",
        a->ops->plugin.name, worker,
        lac_layout_tensor(a->worker.layout, tensor)->name);
}
