// SPDX-License-Identifier: MIT
#include "train/stream.h"

#include <stdlib.h>
#include <string.h>

// Sorts the slices by fragment. `of` has the fragment of every tensor.
static void sort_slices(
    train_stream *s, const uint32_t *of, const lac_slice *slices, size_t count)
{
    size_t next = 0;
    for (uint32_t f = 0; f < s->fragments; f++) {
        s->first[f] = next;
        for (size_t i = 0; i < count; i++) {
            if (of[i] == f) {
                s->slices[next++] = slices[i];
            }
        }
    }
    s->first[s->fragments] = next;
}

static lac_status divide_tensors(
    train_stream *s, const lac_algorithm_options *options,
    const lac_slice *slices, bool copies)
{
    const size_t count = lac_layout_count(options->layout);
    uint32_t *const of = calloc(count + 1, sizeof(*of));
    s->first = calloc((size_t)s->fragments + 1, sizeof(*s->first));
    s->slices = calloc(count + 1, sizeof(*s->slices));
    s->layout = options->layout;
    s->copies = calloc(
        copies ? lac_layout_values(s->layout) + 1 : 1, sizeof(*s->copies));
    s->copied = calloc(count + 1, sizeof(*s->copied));
    const bool complete = of != NULL && s->first != NULL && s->slices != NULL &&
                          s->copies != NULL && s->copied != NULL;
    const lac_status status =
        complete ? lac_algorithm_fragments(options, of)
                 : lac_fail(
                       LAC_ERR_NOMEM,
                       "no memory for the fragments of %zu tensors", count);
    if (complete && status == LAC_OK) {
        sort_slices(s, of, slices, count);
    }
    free(of);
    return status;
}

lac_status train_stream_open(
    train_stream **out, const lac_algorithm_options *options,
    lac_algorithm *algorithm, const lac_slice *slices, bool copies)
{
    *out = NULL;
    lac_cost cost;
    LAC_TRY(lac_algorithm_cost(options, &cost));
    train_stream *const s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for fragments");
    }
    s->algorithm = algorithm;
    s->fragments = cost.fragments;
    const lac_status status = divide_tensors(s, options, slices, copies);
    if (status != LAC_OK) {
        train_stream_close(s);
        return status;
    }
    *out = s;
    return LAC_OK;
}

void train_stream_close(train_stream *s)
{
    if (s != NULL) {
        free(s->copied);
        free(s->copies);
        free(s->slices);
        free(s->first);
        free(s);
    }
}

// The tensors of a fragment, all in the same round.
typedef struct fragment_call {
    uint64_t round;
    const lac_slice *slices;
    size_t count;
} fragment_call;

static fragment_call call_of(const train_stream *s, uint32_t fragment)
{
    const lac_slice *const slices = s->slices + s->first[fragment];
    const size_t count = s->first[fragment + 1] - s->first[fragment];
    return (fragment_call){
        .round =
            count == 0 ? 0 : lac_algorithm_round(s->algorithm, slices->tensor),
        .slices = slices,
        .count = count,
    };
}

bool train_stream_begun(const train_stream *s, uint32_t fragment)
{
    const fragment_call c = call_of(s, fragment);
    return c.count > 0 && lac_algorithm_begun(s->algorithm, c.slices->tensor);
}

lac_status train_stream_begin(train_stream *s, uint32_t fragment)
{
    const fragment_call c = call_of(s, fragment);
    return lac_algorithm_begin(s->algorithm, c.round, c.slices, c.count);
}

void train_stream_copy(train_stream *s, uint32_t fragment)
{
    const fragment_call c = call_of(s, fragment);
    for (size_t i = 0; i < c.count; i++) {
        const lac_tensor *const tensor =
            lac_layout_tensor(s->layout, c.slices[i].tensor);
        float *const copy = s->copies + tensor->offset;
        memcpy(
            copy, c.slices[i].in,
            lac_shape_values(tensor->shape) * sizeof(*copy));
        s->copied[i] = (lac_slice){c.slices[i].tensor, LAC_F32, copy, copy};
    }
}

lac_status train_stream_begin_copied(train_stream *s, uint32_t fragment)
{
    const fragment_call c = call_of(s, fragment);
    return lac_algorithm_begin(s->algorithm, c.round, s->copied, c.count);
}

lac_status train_stream_end(train_stream *s, uint32_t fragment)
{
    const fragment_call c = call_of(s, fragment);
    return lac_algorithm_end(s->algorithm, c.round, c.slices, NULL, c.count);
}

lac_status train_stream_mix(train_stream *s, uint32_t fragment)
{
    const fragment_call c = call_of(s, fragment);
    return lac_algorithm_mix(s->algorithm, c.round, c.slices, NULL, c.count);
}
