// SPDX-License-Identifier: MIT
// Error feedback (Stich et al., arXiv:1809.07599; Karimireddy et al.,
// arXiv:1901.09847): the compression error is stored and sent later.
//
//     e_i += g_i;  p_i = C(e_i), sent;  e_i -= p_i;  result = mean of all p_i
//
// so that the results so far plus the mean of the memories are always the sum
// of the mean gradients. Any compressor works, in its contractive form.
//
// With decay below 1 old errors count less, as in SparseLoCo (Sarfi et al.,
// arXiv:2508.15706): e_i = decay e_i + g_i. The product is computed at the end
// of the round before, so that a round that fails decays nothing.
//
// With memory=no the error is dropped and the compressor unbiased, if it can
// be:
//
//     result = mean of all C(g_i)
//
// This is how unbiased compressors are used without a server, and for others a
// control.
//
// Linear compressors under a shared key have payloads of floats that may be
// added: these are summed, and the sum is decoded. All other payloads are
// gathered and decoded in the order of ranks. Either way all workers compute
// the same bits.
#include <string.h>

#include "algorithm/framework/round.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "compress/compressor.h"
#include "kernels/vector.h"

typedef struct error_feedback {
    bool memory;
    double decay;
} error_feedback;

static const lac_param error_feedback_params[] = {
    {.name = "memory",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(error_feedback, memory),
     .default_value = "yes",
     .help = "store the compression error; no: drop it"},
    {.name = "decay",
     .type = LAC_PARAM_F64,
     .offset = offsetof(error_feedback, decay),
     .default_value = "1",
     .min = 0,
     .max = 1,
     .help = "the part of the stored error that stays in a round"},
    {0},
};

static lac_form error_feedback_form(const void *state)
{
    const error_feedback *const s = state;
    return s->memory ? LAC_FORM_CONTRACTIVE : LAC_FORM_UNBIASED;
}

static lac_status error_feedback_configure(void *state, const laci_worker *w)
{
    const error_feedback *const s = state;
    (void)w;
    if (!s->memory && s->decay != 1) {
        return lac_fail(
            LAC_ERR_INVALID,
            "error-feedback: decay is %g with memory=no, expected 1", s->decay);
    }
    return LAC_OK;
}

// The fields of a tensor: the error memory, where there is one, and room for a
// payload, where payloads are summed.
static lac_memory *errors_of(const error_feedback *s, const laci_item *item)
{
    return s->memory ? item->fields[0].errors : NULL;
}

static float *payload_of(const error_feedback *s, const laci_item *item)
{
    return item->fields[s->memory ? 1 : 0].values;
}

static bool sums_payloads(const laci_worker *w)
{
    return (lac_compressor_traits(w->compressor, LAC_SCOPE_SHARED) &
            LAC_TRAIT_LINEAR) != 0;
}

static size_t bound_of(const laci_worker *w, size_t tensor)
{
    return laci_tensor_bound(
        w, w->compressor, tensor,
        sums_payloads(w) ? LAC_SCOPE_SHARED : LAC_SCOPE_WORKER);
}

static void error_feedback_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    const error_feedback *const s = state;
    if (s->memory) {
        laci_plan_errors(
            plan, s->decay == 1 ? "error" : "decayed-error", w, tensor);
    }
    if (sums_payloads(w)) {
        laci_plan_working(plan, bound_of(w, tensor) / sizeof(float));
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

static lac_scope scope_of(const laci_worker *w, uint32_t from)
{
    return sums_payloads(w) ? lac_scope_shared() : lac_scope_worker(from);
}

// Without a memory, C(x) itself must be finite.
static bool error_feedback_accepts(
    const void *state, const laci_round *round, size_t i)
{
    const error_feedback *const s = state;
    const laci_item *const item = &round->items[i];
    return s->memory || item->n == 0 ||
           item->max_magnitude <=
               laci_payload_largest(round->worker->compressor, item->shape);
}

// Writes the payload of item `i`, added to its memory, to `out`. The framework
// has made sure that the memory accepts the item.
static lac_status encode(
    const error_feedback *s, laci_round *round, size_t i, uint8_t *out)
{
    const laci_worker *const w = round->worker;
    const laci_item *const item = &round->items[i];
    const size_t cap = bound_of(w, item->tensor);
    lac_memory *const errors = errors_of(s, item);
    laci_view view =
        laci_view_make(round, w->compressor, i, scope_of(w, w->rank));
    view.bytes = out;
    LAC_TRY(
        errors == NULL ? lac_compressor_encode(
                             w->compressor, &view.call.key, item->shape,
                             item->in, out, cap, &view.len)
                       : lac_memory_encode_bounded(
                             errors, &view.call.key, item->in,
                             item->max_magnitude, out, cap, &view.len));
    round->sent[i] = view;
    return LAC_OK;
}

// Subtracts the delivered payload from the memory, which then decays.
static void settle(const error_feedback *s, const laci_round *round, size_t i)
{
    const laci_item *const item = &round->items[i];
    const laci_view *const sent = laci_sent(round, i);
    lac_memory *const errors = errors_of(s, item);
    if (errors != NULL) {
        laci_error_memory_settle(
            errors, &sent->call.key, sent->bytes, sent->len);
        laci_error_memory_decay(errors, (float)s->decay);
    }
}

// Writes results: the sum of the payloads of some workers, divided by the
// number of all.
static void error_feedback_add(
    laci_loop *loop, size_t i, size_t first, size_t n)
{
    const laci_round *const round = loop->round;
    const laci_item *const item = &round->items[i];
    const uint32_t *const count = loop->context;
    const float share = (float)(1.0 / round->worker->world);
    float *const out = item->out + first;
    memset(out, 0, n * sizeof(*out));
    for (uint32_t k = 0; k < *count; k++) {
        laci_view_add_part(laci_received(round, k, i), first, n, share, out);
    }
}

static void add_payloads(const laci_round *round, uint32_t count)
{
    (void)laci_split(
        &count, round, 0, round->count,
        laci_part_size(round->worker->compressor), error_feedback_add);
}

// Converts floats to the bytes of a payload, in place.
static const uint8_t *to_payload(float *x, size_t n)
{
    uint8_t *const bytes = (uint8_t *)x;
    for (size_t i = 0; i < n; i++) {
        laci_put_f32(bytes + i * sizeof(*x), x[i]);
    }
    return bytes;
}

// Views the sum of each item's payloads as the payload of worker 0.
static lac_status view_sums(laci_round *round)
{
    float *next = round->sums;
    for (size_t i = 0; i < round->count; i++) {
        laci_view *const sum = laci_received(round, 0, i);
        *sum = round->sent[i];
        const size_t n = sum->len / sizeof(*next);
        sum->bytes = to_payload(next, n);
        next += n;
        LAC_TRY(lac_compressor_check(
            round->worker->compressor, &sum->call.key, sum->call.shape,
            sum->bytes, sum->len));
    }
    return LAC_OK;
}

// Returns LACI_OVERFLOW. Later rounds could not deliver what overflows either,
// so the memories of these tensors are emptied, on all workers. Those of the
// others keep what was not delivered.
static lac_status drop_overflows(
    const error_feedback *s, const laci_round *round, size_t n)
{
    lac_status status = LACI_OVERFLOW;
    for (size_t i = round->count; i-- > 0;) {
        const size_t floats = round->sent[i].len / sizeof(float);
        lac_memory *const errors = errors_of(s, &round->items[i]);
        n -= floats;
        if (laci_all_finite(round->worker->kernels, round->sums + n, floats)) {
            continue;
        }
        if (errors != NULL) {
            laci_error_memory_decay(errors, 0);
        }
        status = laci_nonfinite_overflows(round, i);
    }
    return status;
}

static lac_status reduce_by_sum(const error_feedback *s, laci_round *round)
{
    size_t n = 0;
    for (size_t i = 0; i < round->count; i++) {
        uint8_t *const bytes = (uint8_t *)payload_of(s, &round->items[i]);
        LAC_TRY(laci_group_abort_on_failure(
            round->group, encode(s, round, i, bytes)));
        const size_t floats = round->sent[i].len / sizeof(float);
        laci_get_floats(bytes, round->sums + n, floats);
        n += floats;
    }
    const lac_status status = laci_nonfinite_sum(round, round->sums, n);
    if (status == LACI_OVERFLOW) {
        return drop_overflows(s, round, n);
    }
    LAC_TRY(status);
    LAC_TRY(laci_group_abort_on_failure(round->group, view_sums(round)));
    for (size_t i = 0; i < round->count; i++) {
        settle(s, round, i);
    }
    add_payloads(round, 1);
    return LAC_OK;
}

static lac_status reduce_by_gather(const error_feedback *s, laci_round *round)
{
    const laci_worker *const w = round->worker;
    laci_writer *const message = laci_nonfinite_message(round, 0);
    for (size_t i = 0; i < round->count; i++) {
        uint8_t *const room =
            laci_writer_room(message, bound_of(w, round->items[i].tensor));
        LAC_TRY(laci_group_abort_on_failure(
            round->group, encode(s, round, i, room)));
        laci_writer_commit(message, round->sent[i].len);
    }
    LAC_TRY(laci_nonfinite_gather(round));
    LAC_TRY(laci_take_all(round, w->compressor, w->world, true));
    for (size_t i = 0; i < round->count; i++) {
        settle(s, round, i);
    }
    add_payloads(round, w->world);
    return LAC_OK;
}

static lac_status error_feedback_reduce(void *state, laci_round *round)
{
    return sums_payloads(round->worker) ? reduce_by_sum(state, round)
                                        : reduce_by_gather(state, round);
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

static void error_feedback_exchanges(
    const void *state, const laci_worker *w, laci_listing *out)
{
    (void)state;
    if (!sums_payloads(w)) {
        laci_list_compressor(out, w->compressor, LAC_SCOPE_WORKER);
        laci_nonfinite_list_gather(
            out, laci_body_size(w, w->compressor, LAC_SCOPE_WORKER));
        return;
    }
    size_t n = 0;
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        n += bound_of(w, t) / sizeof(float);
    }
    laci_nonfinite_list_sum(out, n);
}

const laci_algorithm_ops laci_error_feedback_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "error-feedback",
    .plugin.summary = "the compression error is stored and sent later",
    .plugin.example = "error-feedback sign",
    .plugin.params = error_feedback_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(error_feedback),
    .family = LAC_FAMILY_GRADIENT,
    .takes_compressor = true,
    .infinite_sums = true,
    .form_of = error_feedback_form,
    .accepts = error_feedback_accepts,
    .configure = error_feedback_configure,
    .plan = error_feedback_plan,
    .message_bound = error_feedback_message_bound,
    .sum_bound = error_feedback_sum_bound,
    .reduce = error_feedback_reduce,
    .cost = error_feedback_cost,
    .exchanges = error_feedback_exchanges,
};
