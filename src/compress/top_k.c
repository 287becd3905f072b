// SPDX-License-Identifier: MIT
// Top k: the k values of largest magnitude (Aji, Heafield, arXiv:1704.05021;
// Stich, Cordonnier, Jaggi, arXiv:1809.07599). Exactly k, always: NaN counts
// as larger than an infinity, and of equal magnitudes those of lower index are
// kept. What is dropped is the least that can be: at most 1 - k/n of |x|^2.
//
// A sample of the values gives a magnitude that a few more than k of them
// should reach. One pass over the tensor collects these candidates, and the
// k-th largest is looked for among them. Where the sample misleads, there are
// too few or too many of them, and it is looked for among all values instead.
// Either way the result is the same.
//
// Payload: the indices, as in indices.h; then the values by ascending index.
#include <laconic/compress.h>

#include <math.h>

#include "base/alloc.h"
#include "compress/choice.h"
#include "compress/compressor.h"
#include "compress/indices.h"
#include "kernels/select.h"

enum {
    SAMPLE = 32768,
    SAMPLED_VALUES = 4 * SAMPLE, // fewer are not worth a sample
    SAMPLED_PART = 4,            // nor is keeping more than a 4th of them
    DIGIT_COUNT = 3,
};

typedef struct top_k_state {
    double ratio;
} top_k_state;

static const lac_param params[] = {
    {
        .name = "ratio",
        .type = LAC_PARAM_F64,
        .offset = offsetof(top_k_state, ratio),
        .fallback = "0.01",
        .min = 0,
        .max = 1,
        .above_min = true,
        .help = "part of the values that is kept",
    },
    {.name = NULL},
};

static size_t top_k_keep(const void *state, lac_shape shape)
{
    const top_k_state *const s = state;
    return laci_keep_ratio(s->ratio, laci_shape_values(shape));
}

static lac_guarantee top_k_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    (void)form;
    const size_t n = laci_shape_values(shape);
    const size_t k = top_k_keep(state, shape);
    return (lac_guarantee){
        .unbiased = k == n,
        .error = 1 - (double)k / (double)n,
    };
}

static bool worth_a_sample(size_t n, size_t k)
{
    return n >= SAMPLED_VALUES && k <= n / SAMPLED_PART;
}

// How many values of the sample should reach the threshold: the share of k,
// and four standard deviations so that the candidates are rarely too few.
static size_t sample_share(size_t n, size_t k)
{
    const double share = (double)SAMPLE * (double)k / (double)n;
    return (size_t)(share + 4 * sqrt(share) + 4);
}

// Room for candidates, six standard deviations more than are expected.
static size_t candidates_cap(size_t n, size_t k)
{
    const double share = (double)sample_share(n, k);
    const double most = share + 6 * sqrt(share) + 6;
    const size_t cap = (size_t)(most * (double)n / SAMPLE);
    return cap > SAMPLE ? cap : SAMPLE;
}

static size_t top_k_scratch(const void *state, lac_shape shape)
{
    const size_t n = laci_shape_values(shape);
    const size_t k = top_k_keep(state, shape);
    if (!worth_a_sample(n, k)) {
        return 0;
    }
    const size_t cap = candidates_cap(n, k);
    return laci_aligned(cap * sizeof(float)) +
           laci_aligned(cap * sizeof(uint32_t));
}

// What the k largest of n values have in common: digit by digit, from the
// highest, it counts how many values have each and stops where k are reached.
static laci_limit limit_of(
    const laci_select_kernels *select, const float *x, size_t n, size_t k)
{
    static const laci_digit digits[DIGIT_COUNT] = {
        {.shift = 20, .bits = 11},
        {.shift = 10, .bits = 10},
        {.shift = 0, .bits = 10},
    };
    laci_limit limit = {.magnitude = 0, .ties = k};
    for (size_t i = 0; i < DIGIT_COUNT; i++) {
        uint32_t counts[LACI_DIGITS] = {0};
        laci_digit digit = digits[i];
        digit.higher = limit.magnitude;
        select->count(x, n, digit, counts);
        uint32_t d = (1u << digit.bits) - 1;
        for (; counts[d] < limit.ties; d--) {
            limit.ties -= counts[d];
        }
        limit.magnitude = limit.magnitude << digit.bits | d;
    }
    return limit;
}

static void choose_of_all(
    const laci_select_kernels *select, const float *x, size_t n, size_t k,
    uint32_t *indices_out)
{
    const laci_limit limit = limit_of(select, x, n, k);
    select->collect(x, n, limit, k, indices_out, NULL);
}

// An odd stride does not keep step with rows of an even length.
static uint32_t sampled_threshold(
    const laci_select_kernels *select, const float *x, size_t n, size_t k,
    float *sample)
{
    const size_t stride = (n / SAMPLE - 1) | 1;
    for (size_t i = 0; i < SAMPLE; i++) {
        sample[i] = x[i * stride];
    }
    return limit_of(select, sample, SAMPLE, sample_share(n, k)).magnitude;
}

static void top_k_choose(
    const void *state, const lac_call *call, const float *x,
    uint32_t *indices_out)
{
    const laci_select_kernels *const select = call->kernels->select;
    const size_t n = laci_shape_values(call->shape);
    const size_t k = top_k_keep(state, call->shape);
    if (!worth_a_sample(n, k)) {
        choose_of_all(select, x, n, k, indices_out);
        return;
    }
    const size_t cap = candidates_cap(n, k);
    unsigned char *const scratch = call->scratch;
    float *const values = (void *)scratch;
    uint32_t *const indices =
        (void *)(scratch + laci_aligned(cap * sizeof(float)));
    const laci_limit wide = {
        .magnitude = sampled_threshold(select, x, n, k, values),
        .ties = SIZE_MAX,
    };
    const size_t found = select->collect(x, n, wide, cap, indices, values);
    if (found < k || found > cap) {
        choose_of_all(select, x, n, k, indices_out);
        return;
    }
    const laci_limit limit = limit_of(select, values, found, k);
    select->collect(values, found, limit, k, indices_out, NULL);
    for (size_t i = 0; i < k; i++) {
        indices_out[i] = indices[indices_out[i]];
    }
}

static size_t top_k_indices_bound(
    const void *state, lac_shape shape, lac_scope_kind scope)
{
    (void)scope;
    return laci_indices_bound(
        laci_shape_values(shape), top_k_keep(state, shape));
}

static size_t top_k_put_indices(
    const void *state, const lac_call *call, const uint32_t *indices,
    uint8_t *out)
{
    return laci_indices_put(
        indices, top_k_keep(state, call->shape), laci_shape_values(call->shape),
        out);
}

static lac_status top_k_get_indices(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    uint32_t *indices_out, size_t *used_out)
{
    return laci_indices_get(
        "top-k", in, len, top_k_keep(state, call->shape),
        laci_shape_values(call->shape), indices_out, used_out);
}

static const lac_sparsifier_ops sparsifier = {
    .size = sizeof(lac_sparsifier_ops),
    .keep = top_k_keep,
    .choose = top_k_choose,
    .indices_bound = top_k_indices_bound,
    .put_indices = top_k_put_indices,
    .get_indices = top_k_get_indices,
};

const lac_compressor_ops laci_top_k_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "top-k",
    .plugin.summary = "the values of largest magnitude and where they are",
    .plugin.params = params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(top_k_state),
    .max_values = UINT32_MAX,
    .guarantee = top_k_guarantee,
    .sparsifier = &sparsifier,
    .scratch = top_k_scratch,
};
