// SPDX-License-Identifier: MIT
// Top k: the k values of largest magnitude (Aji, Heafield, arXiv:1704.05021;
// Stich, Cordonnier, Jaggi, arXiv:1809.07599). Exactly k, always: NaN counts
// as larger than an infinity, and of equal magnitudes those of lower index are
// kept. The error is the least that k values allow: at most 1 - k/n of |x|^2.
//
// A sample of the values gives a band in which the k-th largest magnitude
// probably is. When k is small, one pass over the tensor collects the values
// that reach the lower end of the band, and the k-th largest is searched among
// these candidates. Otherwise one pass makes a bitmap of the values above the
// band and collects those within; the largest of these complete the bitmap. If
// the band is wrong, the k-th largest is searched among all values. The result
// is the same in all cases.
//
// With `chunk`, each chunk of so many values, and the shorter last one, keeps
// as many of its values as a tensor of its length would (SparseLoCo,
// arXiv:2508.15706). So the kept values are spread over the tensor, and every
// search is within the cache. The error is that of the worst chunk.
//
// Payload: the indices, as in indices.h; then the values by ascending index.
// The code of the indices is the same with chunks: for a 64th of the values,
// gaps take 7.5 bits each, 12-bit offsets in chunks of 4096 would take 12.
#include <laconic/compress.h>

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "compress/choice.h"
#include "compress/compressor.h"
#include "compress/indices.h"
#include "kernels/select.h"

// Where k is small, a smaller sample is enough, since a candidate too many
// costs little. It is worth its time from fewer values on.
enum {
    SAMPLE = 32768,
    SAMPLED_VALUES = 4 * SAMPLE,
    FEW_PART = 64, // k is small up to a 64th of the values
    FEW_SAMPLE = 1024,
    FEW_SAMPLED_PART = 32,
    FEW_SAMPLED_VALUES = 4 * FEW_SAMPLE,
};

typedef struct top_k_state {
    double ratio;
    uint32_t chunk; // 0: the whole tensor
} top_k_state;

static const lac_param params[] = {
    {
        .name = "ratio",
        .type = LAC_PARAM_F64,
        .offset = offsetof(top_k_state, ratio),
        .default_value = "0.01",
        .min = 0,
        .max = 1,
        .above_min = true,
        .help = "fraction of the values that is kept",
    },
    {
        .name = "chunk",
        .type = LAC_PARAM_U32,
        .offset = offsetof(top_k_state, chunk),
        .default_value = "0",
        .max = UINT32_MAX,
        .help = "keep that fraction of every so many values, 0 for a tensor",
    },
    {.name = NULL},
};

static bool is_chunked(const top_k_state *s, size_t n)
{
    return s->chunk > 0 && s->chunk < n;
}

static size_t top_k_keep(const void *state, lac_shape shape)
{
    const top_k_state *const s = state;
    const size_t n = lac_shape_values(shape);
    if (!is_chunked(s, n)) {
        return laci_keep_ratio(s->ratio, n);
    }
    const size_t rest = n % s->chunk;
    return n / s->chunk * laci_keep_ratio(s->ratio, s->chunk) +
           (rest > 0 ? laci_keep_ratio(s->ratio, rest) : 0);
}

// The part of n values that is not kept.
static double top_k_dropped(const top_k_state *s, size_t n)
{
    return 1 - (double)laci_keep_ratio(s->ratio, n) / (double)n;
}

static lac_guarantee top_k_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    (void)form;
    const top_k_state *const s = state;
    const size_t n = lac_shape_values(shape);
    double error = top_k_dropped(s, is_chunked(s, n) ? s->chunk : n);
    if (is_chunked(s, n) && n % s->chunk > 0) {
        error = fmax(error, top_k_dropped(s, n % s->chunk));
    }
    return (lac_guarantee){.unbiased = error == 0, .error = error};
}

static bool are_few(size_t n, size_t k)
{
    return k <= n / FEW_PART;
}

static bool worth_a_sample(size_t n, size_t k)
{
    return are_few(n, k) ? n >= FEW_SAMPLED_VALUES
                         : n >= SAMPLED_VALUES && k < n;
}

static size_t sample_size(size_t n, size_t k)
{
    const size_t part = n / FEW_SAMPLED_PART;
    if (!are_few(n, k) || part > SAMPLE) {
        return SAMPLE;
    }
    return part < FEW_SAMPLE ? FEW_SAMPLE : part;
}

// How many values of the sample reach the k-th largest of all: `mean` is the
// expected number, and `margin`, four standard deviations, is rarely exceeded.
typedef struct share {
    double mean;
    double margin;
} share;

static share sample_share(size_t n, size_t k)
{
    const double part = (double)k / (double)n;
    const double mean = (double)sample_size(n, k) * part;
    return (share){
        .mean = mean,
        .margin = 4 * sqrt(mean * (1 - part)) + 4,
    };
}

// Room for the candidates, or for the values within the band: six standard
// deviations more than expected. Equal values at an end of the band, which are
// all within, can widen it; there is room for twice as many.
static size_t room_for(size_t n, size_t k)
{
    const share s = sample_share(n, k);
    const size_t sample = sample_size(n, k);
    const double mean = 4 * s.margin + (are_few(n, k) ? s.mean : 0);
    const double most = mean + 6 * sqrt(mean) + 6;
    const size_t cap = (size_t)(most * (double)n / (double)sample);
    return cap > sample ? cap : sample;
}

// The result of a search for the k largest, at the start of the scratch.
typedef struct findings {
    bool mapped; // the bitmap is that of the indices
} findings;

// The data of a search.
typedef struct search {
    const laci_select_kernels *select;
    const float *x;
    size_t n;
    size_t k;
    findings *found;
    size_t cap;        // room in the next two
    float *values;     // the sample, then candidates or values within the band
    uint32_t *indices; // of these
    uint8_t *bitmap;
} search;

static size_t top_k_head_size(void)
{
    return laci_aligned(sizeof(findings));
}

static size_t top_k_list_size(size_t cap)
{
    static_assert(sizeof(float) == sizeof(uint32_t), "for both lists");
    return laci_aligned(cap * sizeof(float));
}

static size_t top_k_scratch(const void *state, lac_shape shape)
{
    const top_k_state *const s = state;
    const size_t n = lac_shape_values(shape);
    const size_t k = top_k_keep(state, shape);
    if (is_chunked(s, n)) {
        return 2 * top_k_list_size(s->chunk);
    }
    if (!worth_a_sample(n, k)) {
        return 0;
    }
    return top_k_head_size() + 2 * top_k_list_size(room_for(n, k)) +
           laci_aligned(n / 8 + 1);
}

// Lays out a search that is worth a sample.
static search top_k_lay_out(
    const void *state, const lac_call *call, const float *x)
{
    const size_t n = lac_shape_values(call->shape);
    const size_t k = top_k_keep(state, call->shape);
    const size_t cap = room_for(n, k);
    unsigned char *const values =
        (unsigned char *)call->scratch + top_k_head_size();
    return (search){
        .select = call->kernels->select,
        .x = x,
        .n = n,
        .k = k,
        .found = call->scratch,
        .cap = cap,
        .values = (void *)values,
        .indices = (void *)(values + top_k_list_size(cap)),
        .bitmap = values + 2 * top_k_list_size(cap),
    };
}

// The digits of a magnitude, the highest first. Of few values, counting takes
// less time than the tables, which are therefore smaller.
enum { DIGIT_COUNT = 3, SHORT_DIGIT_COUNT = 4, SHORT_VALUES = 2048 };

static const laci_digit digits[DIGIT_COUNT] = {
    {.shift = 20, .bits = 11},
    {.shift = 10, .bits = 10},
    {.shift = 0, .bits = 10},
};

static const laci_digit short_digits[SHORT_DIGIT_COUNT] = {
    {.shift = 23, .bits = 8},
    {.shift = 15, .bits = 8},
    {.shift = 7, .bits = 8},
    {.shift = 0, .bits = 7},
};

// Extends the magnitude of the k-th largest of n values by one digit: counts
// how many values have each digit and stops where k are reached.
static void next_digit(
    const laci_select_kernels *select, const float *x, size_t n,
    laci_digit digit, laci_limit *limit)
{
    uint32_t counts[LACI_DIGITS];
    memset(counts, 0, sizeof(*counts) << digit.bits);
    digit.higher = limit->magnitude;
    select->count(x, n, digit, counts);
    uint32_t d = (1u << digit.bits) - 1;
    for (; counts[d] < limit->ties; d--) {
        limit->ties -= counts[d];
    }
    limit->magnitude = limit->magnitude << digit.bits | d;
}

// The magnitude of the k-th largest of n values, digit by digit from the
// highest.
static laci_limit limit_of(
    const laci_select_kernels *select, const float *x, size_t n, size_t k)
{
    const bool brief = n <= SHORT_VALUES;
    const laci_digit *const each = brief ? short_digits : digits;
    const size_t count = brief ? SHORT_DIGIT_COUNT : DIGIT_COUNT;
    laci_limit limit = {.magnitude = 0, .ties = k};
    for (size_t i = 0; i < count; i++) {
        next_digit(select, x, n, each[i], &limit);
    }
    return limit;
}

// The smallest magnitude that has the first digit of the k-th largest.
static uint32_t first_digit_of(
    const laci_select_kernels *select, const float *x, size_t n, size_t k)
{
    laci_limit limit = {.magnitude = 0, .ties = k};
    next_digit(select, x, n, digits[0], &limit);
    return limit.magnitude << digits[0].shift;
}

// An odd stride is not a divisor of rows of an even length.
static void take_sample(const search *s)
{
    const size_t size = sample_size(s->n, s->k);
    const size_t stride = (s->n / size - 1) | 1;
    for (size_t i = 0; i < size; i++) {
        s->values[i] = s->x[i * stride];
    }
}

// The magnitude that about `rank` values of the sample reach.
static uint32_t sampled(const search *s, double rank)
{
    const size_t size = sample_size(s->n, s->k);
    if (rank >= (double)size) {
        return 0;
    }
    return limit_of(s->select, s->values, size, (size_t)rank).magnitude;
}

// Searches the k largest among candidates. Returns whether these are neither
// too few nor too many.
static bool choose_of_candidates(const search *s, uint32_t *indices_out)
{
    const share part = sample_share(s->n, s->k);
    take_sample(s);
    const laci_limit wide = {sampled(s, part.mean + part.margin), SIZE_MAX};
    const size_t found =
        s->select->collect(s->x, s->n, wide, s->cap, s->indices, s->values);
    if (found < s->k || found > s->cap) {
        return false;
    }
    const laci_limit limit = limit_of(s->select, s->values, found, s->k);
    s->select->collect(s->values, found, limit, s->k, indices_out, NULL);
    for (size_t i = 0; i < s->k; i++) {
        indices_out[i] = s->indices[indices_out[i]];
    }
    return true;
}

// Adds to the bitmap the `count` largest of those within the band.
static void complete_bitmap(
    const search *s, size_t within, size_t count, uint32_t *places)
{
    const laci_limit limit = limit_of(s->select, s->values, within, count);
    s->select->collect(s->values, within, limit, count, places, NULL);
    for (size_t i = 0; i < count; i++) {
        const uint32_t index = s->indices[places[i]];
        s->bitmap[index / 8] |= (uint8_t)(1u << index % 8);
    }
}

// Searches the k largest with a band that should contain the k-th largest.
// Returns whether it does, and the values within fit in their room. If they do
// not fit but are all equal, the first of them are among the k largest.
static bool choose_with_band(const search *s, uint32_t *indices_out)
{
    const share part = sample_share(s->n, s->k);
    const double least = part.mean - part.margin;
    take_sample(s);
    const laci_band band = {
        .low = sampled(s, part.mean + part.margin),
        .high = least < 1 ? UINT32_C(1) << 31 : sampled(s, least) + 1,
    };
    const laci_census census = s->select->survey(
        s->x, s->n, band, s->cap, s->bitmap, s->values, s->indices);
    if (census.above >= s->k || census.above + census.within < s->k) {
        return false;
    }
    const size_t ties = s->k - census.above;
    if (census.within <= s->cap) {
        complete_bitmap(s, census.within, ties, indices_out);
        s->select->expand(s->bitmap, s->n, s->k, indices_out);
        s->found->mapped = true;
        return true;
    }
    if (band.high - band.low == 1) {
        const laci_limit limit = {band.low, ties};
        s->select->collect(s->x, s->n, limit, s->k, indices_out, NULL);
        return true;
    }
    return false;
}

static void choose_of_all(
    const laci_select_kernels *select, const float *x, size_t n, size_t k,
    uint32_t *indices_out)
{
    const laci_limit limit = k == n ? (laci_limit){.magnitude = 0, .ties = n}
                                    : limit_of(select, x, n, k);
    select->collect(x, n, limit, k, indices_out, NULL);
}

// Where the values of chunks that may be among the largest are collected.
typedef struct candidates {
    float *values;
    uint32_t *indices;
} candidates;

// Searches the k largest of a chunk among the values of at least the magnitude
// `guess` or, if these are too few, among those that have the first digit of
// the k-th largest or a higher one. Returns the magnitude of the k-th largest.
static uint32_t choose_of_chunk(
    const laci_select_kernels *select, const float *x, size_t n, size_t k,
    uint32_t guess, candidates c, uint32_t *indices_out)
{
    laci_limit wide = {.magnitude = guess, .ties = SIZE_MAX};
    size_t found = select->collect(x, n, wide, n, c.indices, c.values);
    if (found < k) {
        wide.magnitude = first_digit_of(select, x, n, k);
        found = select->collect(x, n, wide, n, c.indices, c.values);
    }
    const laci_limit limit = limit_of(select, c.values, found, k);
    select->collect(c.values, found, limit, k, indices_out, NULL);
    for (size_t i = 0; i < k; i++) {
        indices_out[i] = c.indices[indices_out[i]];
    }
    return limit.magnitude;
}

// The k-th largest of a chunk is seldom less than 0.7 times that of the one
// before it: half an octave, in bits of a float.
static void choose_of_chunks(
    const top_k_state *s, const lac_call *call, const float *x,
    uint32_t *indices_out)
{
    const uint32_t half_octave = UINT32_C(1) << 22;
    const size_t n = lac_shape_values(call->shape);
    unsigned char *const scratch = call->scratch;
    const candidates c = {
        .values = (void *)scratch,
        .indices = (void *)(scratch + top_k_list_size(s->chunk)),
    };
    uint32_t guess = INT32_MAX;
    for (size_t start = 0; start < n; start += s->chunk) {
        const size_t len = n - start < s->chunk ? n - start : s->chunk;
        const size_t k = laci_keep_ratio(s->ratio, len);
        const uint32_t last = choose_of_chunk(
            call->kernels->select, x + start, len, k, guess, c, indices_out);
        guess = last > half_octave ? last - half_octave : 0;
        for (size_t i = 0; i < k; i++) {
            indices_out[i] += (uint32_t)start;
        }
        indices_out += k;
    }
}

static void top_k_choose(
    const void *state, const lac_call *call, const float *x,
    uint32_t *indices_out)
{
    const size_t n = lac_shape_values(call->shape);
    const size_t k = top_k_keep(state, call->shape);
    if (is_chunked(state, n)) {
        choose_of_chunks(state, call, x, indices_out);
        return;
    }
    if (worth_a_sample(n, k)) {
        const search s = top_k_lay_out(state, call, x);
        s.found->mapped = false;
        if ((are_few(n, k) && choose_of_candidates(&s, indices_out)) ||
            choose_with_band(&s, indices_out)) {
            return;
        }
    }
    choose_of_all(call->kernels->select, x, n, k, indices_out);
}

static laci_subset subset_of(const void *state, const lac_call *call)
{
    return (laci_subset){
        .k = top_k_keep(state, call->shape),
        .n = lac_shape_values(call->shape),
    };
}

static size_t top_k_indices_bound(
    const void *state, lac_shape shape, lac_scope_kind scope)
{
    (void)scope;
    return laci_indices_bound(
        lac_shape_values(shape), top_k_keep(state, shape));
}

// The scratch still holds the result of the choice.
static size_t top_k_put_indices(
    const void *state, const lac_call *call, const uint32_t *indices,
    uint8_t *out)
{
    const laci_subset subset = subset_of(state, call);
    const uint8_t *bitmap = NULL;
    if (!is_chunked(state, subset.n) && worth_a_sample(subset.n, subset.k)) {
        const search s = top_k_lay_out(state, call, NULL);
        bitmap = s.found->mapped ? s.bitmap : NULL;
    }
    return laci_indices_put(call->kernels, indices, subset, bitmap, out);
}

static lac_status top_k_get_indices(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    uint32_t *indices_out, size_t *used_out)
{
    return laci_indices_get(
        "top-k", call->kernels, in, len, subset_of(state, call), indices_out,
        used_out);
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
