// SPDX-License-Identifier: MIT
// A round from the caller's side: slices are checked, values that are not
// finite are found before they touch any memory, then the algorithm works.
#include "algorithm/containment.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>

#include <xxhash.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "kernels/vector.h"

enum { EXPONENT_ALL_ONES = 0x7f800000, SENTENCE_SIZE = 256 };

lac_key laci_tensor_key(
    const laci_worker *w, size_t tensor, uint64_t round, lac_scope scope)
{
    return lac_key_make(
        w->seed, LAC_PURPOSE_COMPRESS, round, scope,
        lac_layout_tensor(w->layout, tensor)->name_hash);
}

uint32_t laci_worker_edges(
    const laci_worker *w, uint64_t round, const lac_edge **edges_out)
{
    return lac_topology_edges(w->topology, w->rank, round, edges_out);
}

static const char *name_of(const lac_algorithm *a, size_t tensor)
{
    return lac_layout_tensor(a->worker.layout, tensor)->name;
}

static lac_status check_slice(
    const lac_algorithm *a, const lac_slice *slice, const float *update,
    size_t index, uint64_t round)
{
    const char *const name = a->ops->plugin.name;
    if (slice->tensor >= lac_layout_count(a->worker.layout)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: slice %zu is of tensor %zu, there are %zu",
            name, index, slice->tensor, lac_layout_count(a->worker.layout));
    }
    if (a->progress[slice->tensor].named) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %s was given twice", name,
            name_of(a, slice->tensor));
    }
    const lac_shape shape =
        lac_layout_tensor(a->worker.layout, slice->tensor)->shape;
    if (slice->dtype != LAC_F32) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %s has dtype %d, expected float32", name,
            name_of(a, slice->tensor), (int)slice->dtype);
    }
    if (shape.rows * shape.cols > 0 &&
        (slice->in == NULL || slice->out == NULL)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: the values of %s are NULL", name,
            name_of(a, slice->tensor));
    }
    const uintptr_t addresses =
        (uintptr_t)slice->in | (uintptr_t)slice->out | (uintptr_t)update;
    if (addresses % alignof(float) != 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: the values of %s, or what is added to them, are at an address "
            "that is no multiple of %zu, as floats need",
            name, name_of(a, slice->tensor), alignof(float));
    }
    if (a->progress[slice->tensor].next_round != round) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: round of %s is %llu, expected %llu", name,
            name_of(a, slice->tensor), (unsigned long long)round,
            (unsigned long long)a->progress[slice->tensor].next_round);
    }
    return LAC_OK;
}

// Fills a->items from the slices and returns how many were taken before one
// was refused.
static size_t fill_items(
    lac_algorithm *a, uint64_t round, const lac_slice *slices,
    const float *const *updates, size_t count, lac_status *status_out)
{
    *status_out = LAC_OK;
    for (size_t i = 0; i < count; i++) {
        const float *const update = updates == NULL ? NULL : updates[i];
        *status_out = check_slice(a, &slices[i], update, i, round);
        if (*status_out != LAC_OK) {
            return i;
        }
        const size_t tensor = slices[i].tensor;
        const lac_shape shape =
            lac_layout_tensor(a->worker.layout, tensor)->shape;
        a->progress[tensor].named = true;
        a->items[i] = (laci_item){
            .tensor = tensor,
            .shape = shape,
            .n = shape.rows * shape.cols,
            .in = slices[i].in,
            .out = slices[i].out,
            .update = update,
        };
    }
    return count;
}

// The tensors of a call, in their order.
static uint64_t subject_of(const lac_algorithm *a, size_t count)
{
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) {
        const lac_tensor *const tensor =
            lac_layout_tensor(a->worker.layout, a->items[i].tensor);
        uint8_t item[16];
        laci_put_u64(item, hash);
        laci_put_u64(item + 8, tensor->name_hash);
        hash = XXH3_64bits(item, sizeof(item));
    }
    return hash;
}

// Fills a->items from the slices. A tensor may come once in a call.
static lac_status take_slices(
    lac_algorithm *a, uint64_t round, const lac_slice *slices,
    const float *const *updates, size_t count)
{
    if (count > lac_layout_count(a->worker.layout)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %zu slices were given of %zu tensors",
            a->ops->plugin.name, count, lac_layout_count(a->worker.layout));
    }
    lac_status status;
    const size_t taken = fill_items(a, round, slices, updates, count, &status);
    for (size_t i = 0; i < taken; i++) {
        a->progress[a->items[i].tensor].named = false;
    }
    if (status == LAC_OK) {
        laci_group_subject(a->worker.group, subject_of(a, count));
    }
    return status;
}

// Gossip has no one to vote with but neighbours: a worker whose values are not
// finite says so to all of them, and the whole group stops.
static lac_status stop_on_nonfinite(lac_algorithm *a, size_t count)
{
    const laci_vector_kernels *const vector = a->worker.kernels->vector;
    for (size_t i = 0; i < count; i++) {
        const laci_item *const item = &a->items[i];
        if (vector->max_magnitude(item->in, item->n) >= EXPONENT_ALL_ONES ||
            (item->update != NULL &&
             vector->max_magnitude(item->update, item->n) >=
                 EXPONENT_ALL_ONES)) {
            char why[SENTENCE_SIZE];
            (void)snprintf(
                why, sizeof(why),
                "%s: worker %u has a value in %s that is not finite",
                a->ops->plugin.name, a->worker.rank, name_of(a, item->tensor));
            laci_group_abort(a->worker.group, why);
            return lac_fail(LAC_ERR_INVALID, "%s", why);
        }
    }
    return LAC_OK;
}

static lac_status expect_family(const lac_algorithm *a, lac_family family)
{
    if (a->ops->family != family) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: is a %s algorithm, expected a %s one",
            a->ops->plugin.name,
            family == LAC_FAMILY_MODEL ? "gradient" : "model",
            family == LAC_FAMILY_MODEL ? "model" : "gradient");
    }
    return LAC_OK;
}

static lac_status expect_started(const lac_algorithm *a)
{
    if (!a->started) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: rounds come after start or load",
            a->ops->plugin.name);
    }
    return LAC_OK;
}

// Every round of a tensor is begun once and then ended once.
static lac_status expect_begun(
    const lac_algorithm *a, size_t count, bool expected)
{
    for (size_t i = 0; i < count; i++) {
        const laci_progress *const p = &a->progress[a->items[i].tensor];
        if (p->begun != expected) {
            return lac_fail(
                LAC_ERR_INVALID, "%s: round %llu of %s was %s",
                a->ops->plugin.name, (unsigned long long)p->next_round,
                name_of(a, a->items[i].tensor),
                expected ? "ended before it was begun" : "begun twice");
        }
    }
    return LAC_OK;
}

static void advance(lac_algorithm *a, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        laci_progress *const p = &a->progress[a->items[i].tensor];
        p->next_round++;
        p->begun = false;
    }
}

lac_status lac_algorithm_start(
    lac_algorithm *a, const lac_slice *slices, size_t count)
{
    LAC_TRY(take_slices(a, 0, slices, NULL, count));
    if (count != lac_layout_count(a->worker.layout)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: starts from all %zu tensors, %zu were given",
            a->ops->plugin.name, lac_layout_count(a->worker.layout), count);
    }
    LAC_TRY(stop_on_nonfinite(a, count));
    if (a->ops->start != NULL) {
        const laci_round round = {0, a->items, count, 0};
        LAC_TRY(a->ops->start(a->state, &a->worker, &round));
    }
    a->started = true;
    return LAC_OK;
}

// Begins the round of a->items, which were taken but not looked at.
static lac_status begin_items(lac_algorithm *a, uint64_t number, size_t count)
{
    LAC_TRY(expect_started(a));
    LAC_TRY(expect_begun(a, count, false));
    LAC_TRY(stop_on_nonfinite(a, count));
    if (a->ops->begin != NULL) {
        const laci_round round = {number, a->items, count, 0};
        LAC_TRY(a->ops->begin(a->state, &a->worker, &round));
    }
    for (size_t i = 0; i < count; i++) {
        a->progress[a->items[i].tensor].begun = true;
    }
    return LAC_OK;
}

// Ends the round of a->items. One that fails was never begun, except where
// begin has written what is saved: there it can be ended again.
static lac_status end_items(
    lac_algorithm *a, uint64_t number, size_t count, bool looked)
{
    const laci_round round = {number, a->items, count, 0};
    lac_status status = looked ? LAC_OK : stop_on_nonfinite(a, count);
    if (status == LAC_OK) {
        status = a->ops->end(a->state, &a->worker, &round);
    }
    if (status == LAC_OK) {
        advance(a, count);
        return LAC_OK;
    }
    for (size_t i = 0; i < count && !a->ops->begin_saves; i++) {
        a->progress[a->items[i].tensor].begun = false;
    }
    return status;
}

lac_status lac_algorithm_begin(
    lac_algorithm *a, uint64_t number, const lac_slice *slices, size_t count)
{
    LAC_TRY(expect_family(a, LAC_FAMILY_MODEL));
    LAC_TRY(take_slices(a, number, slices, NULL, count));
    return begin_items(a, number, count);
}

lac_status lac_algorithm_end(
    lac_algorithm *a, uint64_t number, const lac_slice *slices,
    const float *const *updates, size_t count)
{
    LAC_TRY(expect_family(a, LAC_FAMILY_MODEL));
    LAC_TRY(take_slices(a, number, slices, updates, count));
    LAC_TRY(expect_begun(a, count, true));
    const bool must_look = updates != NULL || a->ops->takes_update;
    return end_items(a, number, count, !must_look);
}

// Looks at the updates before anything is sent, which begin cannot do.
lac_status lac_algorithm_mix(
    lac_algorithm *a, uint64_t number, const lac_slice *slices,
    const float *const *updates, size_t count)
{
    LAC_TRY(expect_family(a, LAC_FAMILY_MODEL));
    LAC_TRY(take_slices(a, number, slices, updates, count));
    LAC_TRY(begin_items(a, number, count));
    return end_items(a, number, count, true);
}

// Reduces a->items, which may have values that are not finite.
static lac_status reduce_items(lac_algorithm *a, uint64_t number, size_t count)
{
    laci_round round = {number, a->items, count, 0};
    if (a->ops->finds_unfit) {
        laci_containment_trust(a, count);
        const lac_status status = a->ops->reduce(a->state, &a->worker, &round);
        if (!a->worker.must_look) {
            return status;
        }
    }
    round.unfit = laci_containment_prepare(a, count);
    return a->ops->reduce(a->state, &a->worker, &round);
}

lac_status lac_algorithm_reduce(
    lac_algorithm *a, uint64_t number, const lac_slice *slices, size_t count)
{
    LAC_TRY(expect_family(a, LAC_FAMILY_GRADIENT));
    LAC_TRY(take_slices(a, number, slices, NULL, count));
    lac_status status = reduce_items(a, number, count);
    if (a->worker.not_finite) {
        status = laci_containment_act(a, number, slices, count);
    }
    LAC_TRY(status);
    advance(a, count);
    return LAC_OK;
}
