// SPDX-License-Identifier: MIT
// Error feedback (Stich et al., arXiv:1809.07599; Karimireddy et al.,
// arXiv:1901.09847): what compression dropped is kept and sent later.
//
//     e_i += g_i;  p_i = C(e_i), sent;  e_i -= p_i;  result = mean of all p_i
//
// so that the results so far and the mean of the memories are always the sum
// of the mean gradients. Any compressor will do, in its contractive form.
//
// Payloads that are floats which may be added up, those of linear compressors
// under a shared key, are summed, and their sum is decoded. All others are
// gathered and decoded in the order of ranks. Either way all workers compute
// the same bits.
#include <string.h>

#include "algorithm/gradient.h"
#include "algorithm/nonfinite.h"
#include "base/bytes.h"
#include "base/fail.h"

// The fields of a tensor; a payload is kept only where payloads are summed.
enum { ERRORS, PAYLOAD };

static bool sums_payloads(const laci_worker *w)
{
    return (lac_compressor_traits(w->compressor, LAC_SCOPE_SHARED) &
            LAC_TRAIT_LINEAR) != 0;
}

static size_t bound_of(const laci_worker *w, size_t tensor)
{
    return laci_gradient_bound(
        w, w->compressor, tensor,
        sums_payloads(w) ? LAC_SCOPE_SHARED : LAC_SCOPE_WORKER);
}

static void error_feedback_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    laci_plan_errors(plan, "error", w, tensor);
    if (sums_payloads(w)) {
        laci_plan_field(
            plan, NULL, LAC_RANK_ANY, bound_of(w, tensor) / sizeof(float));
    }
}

static size_t error_feedback_message_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    return sums_payloads(w) ? 0 : bound_of(w, tensor);
}

static size_t error_feedback_sum_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    return sums_payloads(w) ? bound_of(w, tensor) / sizeof(float) : 0;
}

static lac_key key_of(
    const laci_worker *w, const laci_round *round, size_t i, uint32_t from)
{
    return laci_tensor_key(
        w, round->items[i].tensor, round->number,
        sums_payloads(w) ? lac_scope_shared() : lac_scope_worker(from));
}

// Adds item `i` to its memory and writes the payload of that to `out`.
static size_t encode(
    laci_worker *w, const laci_round *round, size_t i, uint8_t *out)
{
    const laci_item *const item = &round->items[i];
    const lac_key key = key_of(w, round, i, w->rank);
    size_t len = 0;
    // Sizes were reserved at open: encoding cannot fail.
    (void)!lac_memory_encode(
        laci_fields(w, item->tensor)[ERRORS].errors, &key, item->in, out,
        bound_of(w, item->tensor), &len);
    return len;
}

// Takes what was delivered out of the memory, and begins the result.
static void settle(
    laci_worker *w, const laci_round *round, size_t i, laci_view own)
{
    const laci_item *const item = &round->items[i];
    const lac_key key = key_of(w, round, i, w->rank);
    // The own payload is a good one.
    (void)!lac_memory_settle(
        laci_fields(w, item->tensor)[ERRORS].errors, &key, own.bytes, own.len);
    if (item->n > 0) {
        memset(item->out, 0, item->n * sizeof(float));
    }
}

static void add_to_result(
    laci_worker *w, const laci_round *round, size_t i, uint32_t from,
    laci_view view)
{
    const laci_item *const item = &round->items[i];
    const lac_key key = key_of(w, round, i, from);
    // Checked before: adding cannot fail.
    (void)!lac_compressor_decode_add(
        w->compressor, &key, item->shape, view.bytes, view.len,
        (float)(1.0 / w->world), item->out);
}

// The bytes of floats as a payload has them, in their place.
static laci_view as_payload(float *x, size_t n)
{
    uint8_t *const bytes = (uint8_t *)x;
    for (size_t i = 0; i < n; i++) {
        laci_put_f32(bytes + i * sizeof(*x), x[i]);
    }
    return (laci_view){bytes, n * sizeof(*x)};
}

static lac_status check_sums(laci_worker *w, const laci_round *round)
{
    float *next = w->sums;
    for (size_t i = 0; i < round->count; i++) {
        const lac_key key = key_of(w, round, i, w->rank);
        const laci_view sum = as_payload(next, w->own[i].len / sizeof(float));
        LAC_TRY(lac_compressor_check(
            w->compressor, &key, round->items[i].shape, sum.bytes, sum.len));
        next += sum.len / sizeof(float);
    }
    return LAC_OK;
}

static lac_status reduce_by_sum(laci_worker *w, const laci_round *round)
{
    size_t n = 0;
    for (size_t i = 0; i < round->count; i++) {
        float *const payload =
            laci_fields(w, round->items[i].tensor)[PAYLOAD].values;
        uint8_t *const bytes = (uint8_t *)payload;
        w->own[i] = (laci_view){bytes, encode(w, round, i, bytes)};
        laci_get_floats(bytes, w->sums + n, w->own[i].len / sizeof(float));
        n += w->own[i].len / sizeof(float);
    }
    LAC_TRY(laci_first_sum(w, round, w->sums, n));
    LAC_TRY(laci_group_abort_on_failure(w->group, check_sums(w, round)));
    const uint8_t *next = (const uint8_t *)w->sums;
    for (size_t i = 0; i < round->count; i++) {
        const size_t len = w->own[i].len;
        settle(w, round, i, w->own[i]);
        add_to_result(w, round, i, w->rank, (laci_view){next, len});
        next += len;
    }
    return LAC_OK;
}

static lac_status check_payloads(laci_worker *w, const laci_round *round)
{
    for (uint32_t k = 0; k < w->world; k++) {
        for (size_t i = 0; i < round->count; i++) {
            const lac_key key = key_of(w, round, i, k);
            LAC_TRY(laci_gradient_take(w, w->compressor, &key, round, k, i));
        }
        LAC_TRY(laci_reader_done(&w->readers[k]));
    }
    return LAC_OK;
}

static lac_status reduce_by_gather(laci_worker *w, const laci_round *round)
{
    laci_writer *const message = laci_first_message(w, round, 0);
    for (size_t i = 0; i < round->count; i++) {
        uint8_t *const room =
            laci_writer_room(message, bound_of(w, round->items[i].tensor));
        laci_writer_commit(message, encode(w, round, i, room));
    }
    LAC_TRY(laci_first_gather(w, round));
    LAC_TRY(laci_group_abort_on_failure(w->group, check_payloads(w, round)));
    for (size_t i = 0; i < round->count; i++) {
        settle(w, round, i, *laci_gradient_view(w, round, w->rank, i));
        for (uint32_t k = 0; k < w->world; k++) {
            add_to_result(w, round, i, k, *laci_gradient_view(w, round, k, i));
        }
    }
    return LAC_OK;
}

static lac_status error_feedback_reduce(
    void *state, laci_worker *w, const laci_round *round)
{
    (void)state;
    return sums_payloads(w) ? reduce_by_sum(w, round)
                            : reduce_by_gather(w, round);
}

static void error_feedback_cost(
    const void *state, const laci_worker *w, lac_cost *out)
{
    (void)state;
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        out->payload_bytes += (double)bound_of(w, t);
    }
    out->messages = 1;
    out->phases = 1;
}

const laci_algorithm_ops laci_error_feedback_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "error-feedback",
    .plugin.summary = "what compression drops is kept and sent later",
    .plugin.param_size = sizeof(lac_param),
    .family = LAC_FAMILY_GRADIENT,
    .takes_compressor = true,
    .form = LAC_FORM_CONTRACTIVE,
    .plan = error_feedback_plan,
    .message_bound = error_feedback_message_bound,
    .sum_bound = error_feedback_sum_bound,
    .reduce = error_feedback_reduce,
    .cost = error_feedback_cost,
};
