// SPDX-License-Identifier: MIT
// A round from the caller's side: slices are checked, values that are not
// finite are found before they touch any memory, then the algorithm works.
#include "algorithm/handle.h"

#include <stdio.h>

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
    const lac_algorithm *a, const lac_slice *slice, size_t index,
    uint64_t round)
{
    const char *const name = a->ops->plugin.name;
    if (slice->tensor >= lac_layout_count(a->worker.layout)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: slice %zu is of tensor %zu, there are %zu",
            name, index, slice->tensor, lac_layout_count(a->worker.layout));
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
    if (a->next_round[slice->tensor] != round) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: round of %s is %llu, expected %llu", name,
            name_of(a, slice->tensor), (unsigned long long)round,
            (unsigned long long)a->next_round[slice->tensor]);
    }
    return LAC_OK;
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
    for (size_t i = 0; i < count; i++) {
        LAC_TRY(check_slice(a, &slices[i], i, round));
        const lac_tensor *const tensor =
            lac_layout_tensor(a->worker.layout, slices[i].tensor);
        a->items[i] = (laci_item){
            .tensor = slices[i].tensor,
            .shape = tensor->shape,
            .n = tensor->shape.rows * tensor->shape.cols,
            .in = slices[i].in,
            .out = slices[i].out,
            .update = updates == NULL ? NULL : updates[i],
        };
    }
    return LAC_OK;
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

static void advance(lac_algorithm *a, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        a->next_round[a->items[i].tensor]++;
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
    if (a->ops->start == NULL) {
        return LAC_OK;
    }
    const laci_round round = {0, a->items, count};
    return a->ops->start(a->state, &a->worker, &round);
}

lac_status lac_algorithm_begin(
    lac_algorithm *a, uint64_t number, const lac_slice *slices, size_t count)
{
    LAC_TRY(expect_family(a, LAC_FAMILY_MODEL));
    LAC_TRY(take_slices(a, number, slices, NULL, count));
    LAC_TRY(stop_on_nonfinite(a, count));
    const laci_round round = {number, a->items, count};
    return a->ops->begin == NULL ? LAC_OK
                                 : a->ops->begin(a->state, &a->worker, &round);
}

lac_status lac_algorithm_end(
    lac_algorithm *a, uint64_t number, const lac_slice *slices,
    const float *const *updates, size_t count)
{
    LAC_TRY(expect_family(a, LAC_FAMILY_MODEL));
    LAC_TRY(take_slices(a, number, slices, updates, count));
    if (updates != NULL) {
        LAC_TRY(stop_on_nonfinite(a, count));
    }
    const laci_round round = {number, a->items, count};
    LAC_TRY(a->ops->end(a->state, &a->worker, &round));
    advance(a, count);
    return LAC_OK;
}

lac_status lac_algorithm_mix(
    lac_algorithm *a, uint64_t round, const lac_slice *slices,
    const float *const *updates, size_t count)
{
    LAC_TRY(lac_algorithm_begin(a, round, slices, count));
    return lac_algorithm_end(a, round, slices, updates, count);
}

lac_status lac_algorithm_reduce(
    lac_algorithm *a, uint64_t number, const lac_slice *slices, size_t count)
{
    LAC_TRY(expect_family(a, LAC_FAMILY_GRADIENT));
    LAC_TRY(take_slices(a, number, slices, NULL, count));
    const laci_round round = {number, a->items, count};
    LAC_TRY(a->ops->reduce(a->state, &a->worker, &round));
    advance(a, count);
    return LAC_OK;
}
