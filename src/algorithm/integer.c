// SPDX-License-Identifier: MIT
// Sums of small integers, as in SwitchML (Sapio et al., arXiv:1903.06701) and
// uniform THC (Li et al., arXiv:2302.08545): all workers round the values of a
// tensor to integers with a common scale, so that an all-reduce adds them
// without decoding.
//
//     M = max over all workers of max |g_i|        one float a tensor
//     q_i = floor(L g_i / M + u),  L = floor((2^(bits - 1) - 1) / workers)
//     result = M / (L workers) * sum of all q_i    integers of `bits`
//
// No partial sum exceeds the type, since |q_i| <= L. Each worker receives two
// integers a value however many workers there are; with many workers few levels
// remain.
//
// With a memory, values are rounded to the nearest level (u = 1/2) and the
// error is added to the next gradient. It is at most M / (2 L), so it cannot
// grow. Without, u is random, and the result unbiased.
//
// The error memory is written after the last exchange, from a copy of q_i.
#include <float.h>
#include <math.h>
#include <string.h>

#include "algorithm/framework/round.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/integer.h"
#include "kernels/vector.h"

enum { PHASE_SUM = 1, BLOCK = 512 };

// The fields of a tensor, with a memory.
enum { ERROR, OWN };

// Which word of the setting.
enum { BITS_8, BITS_16 };

typedef struct integer {
    uint32_t bits; // the position of the word
    bool memory;
    int32_t levels;
} integer;

static const lac_param integer_params[] = {
    {.name = "bits",
     .type = LAC_PARAM_CHOICE,
     .offset = offsetof(integer, bits),
     .default_value = "8",
     .choices = "8|16",
     .help = "of an integer, and of a sum over all workers"},
    {.name = "memory",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(integer, memory),
     .default_value = "yes",
     .help = "add the rounding error later; no: round at random"},
    {0},
};

static size_t integer_size(const integer *s)
{
    return s->bits == BITS_8 ? sizeof(int8_t) : sizeof(int16_t);
}

static const laci_number *integer_type(const integer *s)
{
    return s->bits == BITS_8 ? &laci_number_i8 : &laci_number_i16;
}

static lac_status integer_configure(void *state, const laci_worker *w)
{
    integer *const s = state;
    const uint32_t most = s->bits == BITS_8 ? INT8_MAX : INT16_MAX;
    s->levels = (int32_t)(most / w->world);
    if (s->levels == 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "integer: bits=%zu leave no level for each of %u workers, expected "
            "%s%u workers or fewer",
            8 * integer_size(s), w->world,
            s->bits == BITS_8 ? "bits=16, or " : "", most);
    }
    return LAC_OK;
}

// The floats that hold the integers of a tensor.
static size_t integer_room(
    const integer *s, const laci_worker *w, size_t tensor)
{
    const size_t bytes = laci_tensor_values(w, tensor) * integer_size(s);
    return bytes / sizeof(float) + (bytes % sizeof(float) != 0);
}

static void integer_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    const integer *const s = state;
    if (s->memory) {
        laci_plan_own(plan, "error", laci_tensor_values(w, tensor));
        laci_plan_working(plan, integer_room(s, w, tensor));
    }
}

// round->sums holds M of all items and the note that follows, then integers.
static size_t integer_sum_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    return 1 + integer_room(state, w, tensor);
}

// Writes values [at, at + n) of an item with its error memory to `sum`.
static void integer_sum(
    const laci_round *round, const laci_item *item, size_t at, size_t n,
    float *sum)
{
    round->worker->kernels->gossip->apply(
        item->in + at, item->fields[ERROR].values + at, sum, n);
}

static size_t block_size(const laci_item *item, size_t at)
{
    return item->n - at < BLOCK ? item->n - at : BLOCK;
}

// The largest magnitude of an item with its error memory.
static float largest_of(const integer *s, const laci_round *round, size_t i)
{
    const laci_item *const item = &round->items[i];
    const laci_vector_kernels *const vector = round->worker->kernels->vector;
    uint32_t most = 0;
    float result;
    for (size_t at = 0; s->memory && at < item->n; at += BLOCK) {
        float sum[BLOCK];
        const size_t n = block_size(item, at);
        integer_sum(round, item, at, n, sum);
        const uint32_t bits = vector->max_magnitude(sum, n);
        most = bits > most ? bits : most;
    }
    memcpy(&result, &most, sizeof(result));
    return s->memory ? result : item->max_magnitude;
}

// An error is at most half of the largest float, so that only huge gradients
// can overflow with it.
static bool integer_accepts(
    const void *state, const laci_round *round, size_t i)
{
    return round->items[i].max_magnitude <= FLT_MAX / 4 ||
           isfinite(largest_of(state, round, i));
}

static lac_status find_scales(const integer *s, const laci_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        round->sums[i] = largest_of(s, round, i);
    }
    return laci_nonfinite_max(round, round->sums, round->count);
}

static laci_integers integers_of(
    const integer *s, const laci_round *round, size_t i)
{
    return (laci_integers){
        .size = integer_size(s),
        .levels = s->levels,
        .max = round->sums[i],
    };
}

static void encode_item(
    const integer *s, const laci_round *round, size_t i, uint8_t *q)
{
    const laci_worker *const w = round->worker;
    const laci_item *const item = &round->items[i];
    const laci_integers type = integers_of(s, round, i);
    const laci_integer_kernels *const kernels = w->kernels->integer;
    if (!s->memory) {
        const lac_key key = lac_key_make(
            w->seed, LAC_PURPOSE_COMPRESS, round->number,
            lac_scope_worker(w->rank), item->name_hash);
        const laci_stream stream = laci_stream_of(&key);
        kernels->encode(&type, &stream, 0, item->in, q, item->n);
        return;
    }
    for (size_t at = 0; at < item->n; at += BLOCK) {
        float sum[BLOCK];
        const size_t n = block_size(item, at);
        integer_sum(round, item, at, n, sum);
        kernels->encode(&type, NULL, 0, sum, q + at * type.size, n);
    }
    if (item->n > 0) {
        memcpy(item->fields[OWN].values, q, item->n * type.size);
    }
}

// Writes the integers of all items one after the other, and returns their
// number.
static size_t encode_items(
    const integer *s, const laci_round *round, uint8_t *integers)
{
    size_t count = 0;
    for (size_t i = 0; i < round->count; i++) {
        encode_item(s, round, i, integers + count * integer_size(s));
        count += round->items[i].n;
    }
    return count;
}

// Writes the results, and the errors of what this worker has sent.
static void decode_items(
    const integer *s, const laci_round *round, const uint8_t *sums)
{
    const laci_kernels *const kernels = round->worker->kernels;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        const laci_integers type = integers_of(s, round, i);
        const double shares = (double)s->levels * round->worker->world;
        if (s->memory) {
            float *const error = item->fields[ERROR].values;
            kernels->vector->add(item->in, error, item->n);
            kernels->integer->subtract(
                &type, (double)type.max / s->levels, item->fields[OWN].values,
                error, item->n);
        }
        kernels->integer->decode(
            &type, (double)type.max / shares, sums, item->out, item->n);
        sums += item->n * type.size;
    }
}

static lac_status integer_reduce(void *state, laci_round *round)
{
    const integer *const s = state;
    LAC_TRY(find_scales(s, round));
    uint8_t *const integers =
        (uint8_t *)(round->sums + round->count + LACI_SUM_NOTES);
    const size_t count = encode_items(s, round, integers);
    LAC_TRY(laci_group_sum_numbers(
        round->group, round->number, PHASE_SUM, integer_type(s), integers,
        count));
    decode_items(s, round, integers);
    return LAC_OK;
}

static void integer_cost(const void *state, const laci_worker *w, lac_cost *out)
{
    const size_t tensors = lac_layout_count(w->layout);
    out->payload_bytes =
        (double)tensors * sizeof(float) +
        (double)lac_layout_values(w->layout) * (double)integer_size(state);
    out->messages = 2;
    out->phases = 2;
}

static void integer_exchanges(
    const void *state, const laci_worker *w, laci_listing *out)
{
    laci_nonfinite_list_max(out, lac_layout_count(w->layout));
    laci_list_numbers(out, integer_type(state), lac_layout_values(w->layout));
}

const laci_algorithm_ops laci_integer_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "integer",
    .plugin.summary = "sums of small integers with a common scale",
    .plugin.example = "integer",
    .plugin.params = integer_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(integer),
    .family = LAC_FAMILY_GRADIENT,
    .accepts = integer_accepts,
    .configure = integer_configure,
    .plan = integer_plan,
    .sum_bound = integer_sum_bound,
    .reduce = integer_reduce,
    .cost = integer_cost,
    .exchanges = integer_exchanges,
};
