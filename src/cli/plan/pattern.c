// SPDX-License-Identifier: MIT
// The time of the exchanges of a step. A call can begin when the part `ready`
// of the computation C is over; its hidden exchanges H, which need none of it,
// begin as soon as the previous call is over, and the others, V, follow:
//
//     end_i = max(ready_i C, end_(i-1) + H_i) + V_i
//
// and what remains visible is end - C. Without overlap there is one call with
// ready = 1 and all its exchanges count as V. With overlap, a model algorithm
// has one call with ready = 1, which gives max(C, H) + V. A gradient algorithm
// has a call for each bucket and H = 0.
//
// The fragments of a streaming algorithm are exchanged at different times. With
// overlap, as many steps as the delay has hide the H of each:
//
//     exposed_i = max(0, H_i - delay C) + V_i
//
// Buckets are those of PyTorch's DistributedDataParallel: tensors from the last
// to the first, a bucket is complete when it has at least 25 MiB, the first one
// when it has 1 MiB. The backward pass is taken as two thirds of the
// computation, and gradients as ready in proportion to their values.
#include "cli/plan/pattern.h"

#include <math.h>
#include <stdlib.h>

#include "cli/size/fragments.h"

enum { FIRST_BUCKET = 1 << 20, BUCKET = 25 << 20 };

static const double forward = 1.0 / 3;

static lac_status pattern_no_memory(const lac_algorithm_options *options)
{
    return lac_fail(
        LAC_ERR_NOMEM, "plan: no memory for the exchanges of %s",
        options->spec);
}

static lac_status open_call(
    const lac_algorithm_options *options, double ready, plan_call *out)
{
    *out = (plan_call){.ready = ready};
    LAC_TRY(
        lac_algorithm_exchanges(options, NULL, 0, &out->count, &out->period));
    out->exchanges = calloc(out->count + 1, sizeof(*out->exchanges));
    return out->exchanges == NULL ? pattern_no_memory(options)
                                  : lac_algorithm_exchanges(
                                        options, out->exchanges, out->count,
                                        &out->count, &out->period);
}

// Opens the call of tensors first[0..count).
static lac_status open_bucket(
    const lac_algorithm_options *options, size_t first, size_t count,
    plan_call *out)
{
    lac_tensor *const tensors = calloc(count, sizeof(*tensors));
    if (tensors == NULL) {
        return pattern_no_memory(options);
    }
    for (size_t i = 0; i < count; i++) {
        tensors[i] = *lac_layout_tensor(options->layout, first + i);
    }
    lac_layout *layout = NULL;
    lac_status status = lac_layout_open(&layout, tensors, count);
    if (status == LAC_OK) {
        lac_algorithm_options bucket = *options;
        bucket.layout = layout;
        const double values = (double)lac_layout_values(options->layout);
        const double missing = (double)tensors[0].offset / fmax(values, 1);
        status = open_call(&bucket, 1 - (1 - forward) * missing, out);
    }
    lac_layout_close(layout);
    free(tensors);
    return status;
}

static lac_status open_buckets(
    plan_pattern *p, const lac_algorithm_options *options)
{
    size_t bytes = 0, end = lac_layout_count(options->layout);
    for (size_t i = end; i > 0; i--) {
        const lac_tensor *const t = lac_layout_tensor(options->layout, i - 1);
        bytes += lac_shape_values(t->shape) * sizeof(float);
        const size_t enough = p->count == 0 ? FIRST_BUCKET : BUCKET;
        if (bytes >= enough || i == 1) {
            plan_call *const call = &p->calls[p->count++];
            LAC_TRY(open_bucket(options, i - 1, end - (i - 1), call));
            bytes = 0;
            end = i - 1;
        }
    }
    return LAC_OK;
}

static lac_status open_fragments(
    plan_pattern *p, const lac_algorithm_options *options)
{
    cli_fragments f;
    LAC_TRY(cli_fragments_open(&f, options));
    lac_status status = LAC_OK;
    for (uint32_t k = 0; status == LAC_OK && k < f.count; k++) {
        lac_algorithm_options alone = *options;
        alone.layout = f.layouts[k];
        if (alone.layout != NULL) {
            status = open_call(&alone, 1, &p->calls[p->count++]);
        }
    }
    cli_fragments_close(&f);
    return status;
}

// Opens the calls that the pattern needs.
static lac_status open_calls(
    plan_pattern *p, const lac_algorithm_options *options, bool buckets)
{
    if (p->apart) {
        return open_fragments(p, options);
    }
    if (buckets) {
        return open_buckets(p, options);
    }
    p->count = 1;
    return open_call(options, 1, &p->calls[0]);
}

lac_status plan_pattern_open(
    plan_pattern *out, const lac_algorithm_options *options, lac_family family,
    bool overlap)
{
    lac_cost cost;
    *out = (plan_pattern){0};
    LAC_TRY(lac_algorithm_cost(options, &cost));
    const bool buckets = overlap && family == LAC_FAMILY_GRADIENT;
    const size_t calls =
        buckets ? lac_layout_count(options->layout) : cost.fragments;
    plan_pattern p = {
        .workers = options->workers,
        .overlap = overlap,
        .apart = cost.fragments > 1 || cost.delay > 0,
        .delay = cost.delay,
        .calls = calloc(calls, sizeof(*p.calls)),
    };
    if (p.calls == NULL) {
        return pattern_no_memory(options);
    }
    const lac_status status = open_calls(&p, options, buckets);
    if (status == LAC_OK) {
        *out = p;
    } else {
        plan_pattern_close(&p);
    }
    return status;
}

void plan_pattern_close(plan_pattern *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free(p->calls[i].exchanges);
    }
    free(p->calls);
    *p = (plan_pattern){0};
}

// The seconds of one call in one round.
typedef struct call_seconds {
    double hidden, visible;
} call_seconds;

static call_seconds sum_call(
    const plan_pattern *p, const plan_call *call, uint32_t round,
    const plan_network *n)
{
    plan_clock hidden = plan_clock_start(), visible = hidden;
    for (size_t i = 0; i < call->count; i++) {
        const lac_exchange *const e = &call->exchanges[i];
        const bool hides = p->overlap && (e->flags & LAC_EXCHANGE_HIDDEN) != 0;
        if (e->round == round % call->period) {
            plan_clock_advance(hides ? &hidden : &visible, n, e, p->workers);
        }
    }
    return (call_seconds){hidden.done, visible.done};
}

// The mean over a period of one round of all fragments.
static plan_wait wait_for_fragments(
    const plan_pattern *p, const plan_network *n, double compute)
{
    plan_wait wait = {0, 0};
    for (size_t i = 0; i < p->count; i++) {
        const plan_call *const call = &p->calls[i];
        for (uint32_t round = 0; round < call->period; round++) {
            const call_seconds s = sum_call(p, call, round, n);
            const double late = fmax(0, s.hidden - p->delay * compute);
            wait.network += (s.hidden + s.visible) / call->period;
            wait.exposed += (late + s.visible) / call->period;
        }
    }
    return wait;
}

plan_wait plan_pattern_wait(
    const plan_pattern *p, const plan_network *n, double compute)
{
    if (p->apart) {
        return wait_for_fragments(p, n, compute);
    }
    plan_wait wait = {0, 0};
    uint32_t period = 1;
    for (size_t i = 0; i < p->count; i++) {
        period = p->calls[i].period > period ? p->calls[i].period : period;
    }
    for (uint32_t round = 0; round < period; round++) {
        double end = 0;
        for (size_t i = 0; i < p->count; i++) {
            const plan_call *const call = &p->calls[i];
            const call_seconds s = sum_call(p, call, round, n);
            end = fmax(call->ready * compute, end + s.hidden) + s.visible;
            wait.network += (s.hidden + s.visible) / period;
        }
        wait.exposed += (end - compute) / period;
    }
    return wait;
}
