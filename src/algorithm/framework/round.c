// SPDX-License-Identifier: MIT
// The calls of a round: they check the slices and look for non-finite values
// before these touch any memory, then they call the algorithm.
#include <stdalign.h>
#include <stdint.h>

#include <xxhash.h>

#include "algorithm/framework/dtype.h"
#include "algorithm/framework/handle.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"

static const char *name_of(const lac_algorithm *a, size_t tensor)
{
    return lac_layout_tensor(a->worker.layout, tensor)->name;
}

static size_t given_values(const lac_algorithm *a, size_t tensor)
{
    return lac_shape_values(lac_layout_tensor(a->given, tensor)->shape);
}

static bool round_overlap(
    const void *x, size_t x_size, const void *y, size_t y_size)
{
    const uintptr_t a = (uintptr_t)x, b = (uintptr_t)y;
    return x != NULL && y != NULL && (a < b ? b - a < x_size : a - b < y_size);
}

static lac_status check_addresses(
    const lac_algorithm *a, const lac_slice *slice, const float *update)
{
    const char *const algorithm = a->worker.algorithm;
    const char *const tensor = name_of(a, slice->tensor);
    const size_t n = given_values(a, slice->tensor);
    if (n > 0 && (slice->in == NULL || slice->out == NULL)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: the values of %s are NULL", algorithm,
            tensor);
    }
    const size_t value = laci_dtype_size(slice->dtype);
    if (((uintptr_t)slice->in | (uintptr_t)slice->out) % value != 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: the values of %s are at an address that is no multiple of "
            "%zu, as %s needs",
            algorithm, tensor, value, laci_dtype_name(slice->dtype));
    }
    if ((uintptr_t)update % alignof(float) != 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: the update of %s is at an address that is no multiple of %zu, "
            "as float32 needs",
            algorithm, tensor, alignof(float));
    }
    const size_t size = n * value;
    if (slice->in != slice->out &&
        round_overlap(slice->in, size, slice->out, size)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: in and out of %s overlap in part, expected one array, or two "
            "that do not overlap",
            algorithm, tensor);
    }
    if (round_overlap(update, n * sizeof(float), slice->out, size)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: the update of %s overlaps its out", algorithm,
            tensor);
    }
    return LAC_OK;
}

static lac_status check_slice(
    const lac_algorithm *a, const lac_slice *slice, const float *update,
    size_t index, uint64_t round)
{
    const char *const algorithm = a->worker.algorithm;
    const size_t tensors = lac_layout_count(a->worker.layout);
    if (slice->tensor >= tensors) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: slice %zu is of tensor %zu, there are %zu",
            algorithm, index, slice->tensor, tensors);
    }
    const laci_progress *const progress = &a->progress[slice->tensor];
    const char *const tensor = name_of(a, slice->tensor);
    if (progress->listed) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %s was given twice", algorithm, tensor);
    }
    if (laci_dtype_size(slice->dtype) == 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: %s has dtype %d, expected %d to %d (LAC_F32, LAC_F16, "
            "LAC_BF16, LAC_F64)",
            algorithm, tensor, (int)slice->dtype, LAC_F32, LAC_F64);
    }
    LAC_TRY(check_addresses(a, slice, update));
    if (progress->next_round != round) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: round of %s is %llu, expected %llu",
            algorithm, tensor, (unsigned long long)round,
            (unsigned long long)progress->next_round);
    }
    return LAC_OK;
}

static laci_item item_of(
    const lac_algorithm *a, const lac_slice *slice, const float *update)
{
    const lac_tensor *const tensor =
        lac_layout_tensor(a->worker.layout, slice->tensor);
    return (laci_item){
        .tensor = slice->tensor,
        .name = tensor->name,
        .name_hash = tensor->name_hash,
        .shape = tensor->shape,
        .n = lac_shape_values(tensor->shape),
        .given_n = given_values(a, slice->tensor),
        .dtype = slice->dtype,
        .source = slice->in,
        .target = slice->out,
        .update = update,
        .fields = laci_fields_of(&a->fields, slice->tensor),
    };
}

// Fills a->items from the slices. `*taken_out` is the number of slices before
// the first that is refused.
static lac_status fill_items(
    lac_algorithm *a, uint64_t round, const lac_slice *slices,
    const float *const *updates, size_t count, size_t *taken_out)
{
    for (size_t i = 0; i < count; i++) {
        const float *const update = updates == NULL ? NULL : updates[i];
        *taken_out = i;
        LAC_TRY(check_slice(a, &slices[i], update, i, round));
        a->progress[slices[i].tensor].listed = true;
        a->items[i] = item_of(a, &slices[i], update);
    }
    *taken_out = count;
    return LAC_OK;
}

// Hashes the tensors of a call and their dtypes, in their order.
static uint64_t subject_of(const lac_algorithm *a, size_t count)
{
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) {
        uint8_t item[16];
        laci_put_u64(item, hash);
        laci_put_u64(item + 8, a->items[i].name_hash + a->items[i].dtype);
        hash = XXH3_64bits(item, sizeof(item));
    }
    return hash;
}

// Sets up a->round for the slices. A tensor may be in a call once.
static lac_status set_round(
    lac_algorithm *a, uint64_t number, const lac_slice *slices,
    const float *const *updates, size_t count)
{
    const laci_worker *const w = &a->worker;
    if (count > lac_layout_count(w->layout)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %zu slices were given of %zu tensors",
            w->algorithm, count, lac_layout_count(w->layout));
    }
    size_t taken = 0;
    const lac_status status =
        fill_items(a, number, slices, updates, count, &taken);
    for (size_t i = 0; i < taken; i++) {
        a->progress[a->items[i].tensor].listed = false;
    }
    LAC_TRY(status);
    laci_round *const round = &a->round;
    round->number = number;
    round->count = count;
    round->nonfinite = 0;
    if (w->topology != NULL) {
        round->edge_count =
            lac_topology_edges(w->topology, w->rank, number, &round->edges);
        round->self_weight =
            lac_topology_self_weight(w->topology, w->rank, number);
    }
    laci_group_subject(round->group, subject_of(a, count));
    return laci_stage_load(a);
}

lac_status laci_round_room(laci_round *round, size_t size, void **out)
{
    if (size > round->room_size) {
        laci_free_aligned(round->room);
        round->room = laci_zalloc_aligned(size);
        round->room_size = round->room == NULL ? 0 : size;
    }
    if (size > round->room_size) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for %zu bytes of converted values",
            round->worker->algorithm, size);
    }
    *out = round->room;
    return LAC_OK;
}

static lac_status expect_family(const lac_algorithm *a, lac_family family)
{
    if (a->ops->family != family) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: is a %s algorithm, expected a %s one",
            a->worker.algorithm,
            family == LAC_FAMILY_MODEL ? "gradient" : "model",
            family == LAC_FAMILY_MODEL ? "model" : "gradient");
    }
    return LAC_OK;
}

// A round of a tensor is begun once and then ended once, in the same dtype.
static lac_status expect_begun(const lac_algorithm *a, bool expected)
{
    for (size_t i = 0; i < a->round.count; i++) {
        const laci_item *const item = &a->items[i];
        const laci_progress *const p = &a->progress[item->tensor];
        if (p->begun != expected) {
            return lac_fail(
                LAC_ERR_INVALID, "%s: round %llu of %s was %s",
                a->worker.algorithm, (unsigned long long)p->next_round,
                item->name,
                expected ? "ended before it was begun" : "begun twice");
        }
        if (expected && !p->loaded && p->dtype != item->dtype) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: round %llu of %s is ended as %s, expected %s as it was "
                "begun",
                a->worker.algorithm, (unsigned long long)p->next_round,
                item->name, laci_dtype_name(item->dtype),
                laci_dtype_name(p->dtype));
        }
    }
    return LAC_OK;
}

static void set_begun(lac_algorithm *a, bool begun)
{
    for (size_t i = 0; i < a->round.count; i++) {
        laci_progress *const p = &a->progress[a->items[i].tensor];
        p->begun = begun;
        p->dtype = a->items[i].dtype;
        p->loaded = false;
    }
}

static void advance(lac_algorithm *a)
{
    set_begun(a, false);
    for (size_t i = 0; i < a->round.count; i++) {
        a->progress[a->items[i].tensor].next_round++;
    }
}

lac_status lac_algorithm_start(
    lac_algorithm *a, const lac_slice *slices, size_t count)
{
    LAC_TRY(set_round(a, 0, slices, NULL, count));
    if (count != lac_layout_count(a->worker.layout)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: starts from all %zu tensors, %zu were given",
            a->worker.algorithm, lac_layout_count(a->worker.layout), count);
    }
    LAC_TRY(laci_nonfinite_stop(a, true));
    if (a->ops->start != NULL) {
        LAC_TRY(a->ops->start(a->state, &a->round));
    }
    a->started = true;
    return LAC_OK;
}

static lac_status check_begin(const lac_algorithm *a)
{
    if (!a->started) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: rounds come after start or load",
            a->worker.algorithm);
    }
    return expect_begun(a, false);
}

static bool end_scans(const lac_algorithm *a)
{
    return a->ops->scans && a->ops->begin == NULL;
}

static lac_status begin_round(lac_algorithm *a)
{
    if (a->ops->begin != NULL) {
        LAC_TRY(a->ops->begin(a->state, &a->round));
    }
    set_begun(a, true);
    return LAC_OK;
}

// A round whose end fails counts as not begun. If begin has written saved
// fields, it stays begun and can be ended again.
static lac_status end_round(lac_algorithm *a, bool scanned)
{
    lac_status status =
        scanned || end_scans(a) ? LAC_OK : laci_nonfinite_stop(a, true);
    if (status == LAC_OK) {
        status = a->ops->end(a->state, &a->round);
    }
    if (status == LAC_OK) {
        laci_stage_store(a);
        advance(a);
    } else if (!a->ops->begin_saves && !laci_holds(a)) {
        set_begun(a, false);
    }
    return status;
}

lac_status lac_algorithm_begin(
    lac_algorithm *a, uint64_t number, const lac_slice *slices, size_t count)
{
    LAC_TRY(expect_family(a, LAC_FAMILY_MODEL));
    LAC_TRY(set_round(a, number, slices, NULL, count));
    LAC_TRY(check_begin(a));
    LAC_TRY(laci_nonfinite_stop(a, !a->ops->scans || a->ops->begin == NULL));
    return begin_round(a);
}

lac_status lac_algorithm_end(
    lac_algorithm *a, uint64_t number, const lac_slice *slices,
    const float *const *updates, size_t count)
{
    LAC_TRY(expect_family(a, LAC_FAMILY_MODEL));
    LAC_TRY(set_round(a, number, slices, updates, count));
    LAC_TRY(expect_begun(a, true));
    const bool must_scan = updates != NULL || a->ops->takes_update;
    return end_round(a, !must_scan);
}

static bool is_in_place(const lac_algorithm *a)
{
    for (size_t i = 0; i < a->round.count; i++) {
        if (a->items[i].in != a->items[i].out) {
            return false;
        }
    }
    return true;
}

// A round in one. If it fails, it counts as not begun.
static lac_status mix_round(lac_algorithm *a)
{
    LAC_TRY(a->ops->mix(a->state, &a->round));
    laci_stage_store(a);
    advance(a);
    return LAC_OK;
}

// Unlike begin, mix knows the updates before anything is sent, and scans them
// first.
lac_status lac_algorithm_mix(
    lac_algorithm *a, uint64_t number, const lac_slice *slices,
    const float *const *updates, size_t count)
{
    LAC_TRY(expect_family(a, LAC_FAMILY_MODEL));
    LAC_TRY(set_round(a, number, slices, updates, count));
    LAC_TRY(check_begin(a));
    if (!end_scans(a)) {
        LAC_TRY(laci_nonfinite_stop(a, !a->ops->scans));
    }
    if (a->ops->mix != NULL && is_in_place(a)) {
        return mix_round(a);
    }
    LAC_TRY(begin_round(a));
    return end_round(a, true);
}

lac_status lac_algorithm_reduce(
    lac_algorithm *a, uint64_t number, const lac_slice *slices, size_t count)
{
    LAC_TRY(expect_family(a, LAC_FAMILY_GRADIENT));
    LAC_TRY(set_round(a, number, slices, NULL, count));
    lac_status status = LACI_SCAN;
    if (a->ops->finds_nonfinite) {
        laci_nonfinite_trust(a);
        status = a->ops->reduce(a->state, &a->round);
    }
    if (status == LACI_SCAN) {
        laci_nonfinite_scan(a);
        status = a->ops->reduce(a->state, &a->round);
    }
    if (status == LACI_NONFINITE) {
        status = laci_nonfinite_resolve(a);
    }
    if (status == LACI_OVERFLOW) {
        status = laci_nonfinite_overflow(a);
    }
    if (status == LACI_SCAN) { // after one: the state itself overflows
        status = laci_group_abort_on_failure(
            a->round.group,
            lac_fail(
                LAC_ERR_INVALID, "%s: the error memory of worker %u overflows",
                a->worker.algorithm, a->worker.rank));
    }
    LAC_TRY(status);
    laci_stage_store(a);
    advance(a);
    return LAC_OK;
}
