// SPDX-License-Identifier: MIT
// The step time of a candidate is
//
//     C + K + T - H
//
// where C is the computation, K the compression, T the exchanges and H the part
// of T that is hidden behind C. Compression uses the processor that computes
// and is never hidden.
#include "cli/plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/spec.h"
#include "cli/size/report.h"

// Bandwidths between which a break-even is sought, in bytes a second, and the
// factor between two that are tried before the bisection.
static const double slowest = 1, fastest = 1e15, stride = 1.3;

// Times below this part of a sum of times are rounding errors.
#define ROUNDING 1e-9

// The number of workers whose payloads the busiest worker adds, mean over a
// period: all others wait for it.
static double busiest_degree(const plan_task *task, lac_family family)
{
    if (family == LAC_FAMILY_GRADIENT) {
        return task->workers - 1.0;
    }
    const uint32_t period = lac_topology_period(task->topology);
    double sum = 0;
    for (uint32_t round = 0; round < period; round++) {
        uint32_t most = 0;
        for (uint32_t i = 0; i < task->workers; i++) {
            const lac_edge *list;
            const uint32_t edges =
                lac_topology_edges(task->topology, i, round, &list);
            most = edges > most ? edges : most;
        }
        sum += most;
    }
    return sum / period;
}

lac_status plan_candidate_open(
    const plan_task *task, plan_speed *speed, plan_candidate *c)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = c->choice.algorithm;
    o.compressor = c->choice.unknown ? NULL : c->choice.compressor;
    o.layout = task->layout;
    o.topology = task->topology;
    o.seed = task->seed;
    o.workers = task->workers;
    o.transport_name = task->transport;
    lac_cost cost;
    lac_status status = lac_algorithm_cost(&o, &cost);
    if (status == LAC_ERR_INVALID && c->choice.unknown) {
        o.compressor = c->choice.compressor;
        status = lac_algorithm_cost(&o, &cost);
    }
    LAC_TRY(status);
    c->choice.compressor = o.compressor;
    c->family = cost.family;
    c->every = (cost.flags & LAC_COST_LOCAL_STEPS) != 0
                   ? fmax(1, task->local_steps)
                   : 1;
    c->payload = cli_size_sent(&cost, cost.payload_bytes) / c->every;
    LAC_TRY(plan_compression_seconds(
        speed, o.spec, o.compressor, task->layout, task->workers,
        busiest_degree(task, cost.family), &c->compress));
    c->compress /= c->every;
    // Only gradients are averaged in buckets.
    const lac_family family = (cost.flags & LAC_COST_LOCAL_STEPS) != 0
                                  ? LAC_FAMILY_MODEL
                                  : LAC_FAMILY_GRADIENT;
    return plan_pattern_open(&c->pattern, &o, family, task->overlap);
}

// Adds a choice, or the reason why it is refused.
static lac_status add_choice(plan *p, const plan_choice *choice, plan_speed *s)
{
    plan_candidate *const c = &p->candidates[p->count];
    *c = (plan_candidate){.choice = *choice};
    const lac_status status = plan_candidate_open(&p->task, s, c);
    if (status == LAC_OK) {
        const bool kept =
            !p->task.gradients || c->family == LAC_FAMILY_GRADIENT;
        if (kept) {
            p->count++;
        } else {
            plan_pattern_close(&c->pattern);
        }
        return LAC_OK;
    }
    if (status != LAC_ERR_INVALID || p->count == 0) {
        return status;
    }
    plan_refusal *const r = &p->refusals[p->refusal_count++];
    r->choice = *choice;
    (void)snprintf(r->why, sizeof(r->why), "%s", lac_error_message());
    return LAC_OK;
}

// With local steps, outer can send fragments behind them.
static lac_status add_streaming(plan *p, plan_speed *speed)
{
    static const char *const settings[PLAN_STREAMING] = {
        "", "inner=(error-feedback),lr=1,momentum=0,"};
    static const char *const compressors[PLAN_STREAMING] = {NULL, "rotated"};
    for (size_t i = 0; i < PLAN_STREAMING; i++) {
        const plan_choice choice = {p->streaming[i], compressors[i], false};
        if (plan_streaming(
                (uint64_t)p->task.local_steps, settings[i], p->streaming[i])) {
            LAC_TRY(add_choice(p, &choice, speed));
        }
    }
    return LAC_OK;
}

lac_status plan_open(plan *p, const plan_task *task, plan_speed *speed)
{
    plan_choice choices[PLAN_CHOICES_MAX];
    const size_t count = plan_choices(choices);
    *p = (plan){.task = *task};
    for (size_t i = 0; i < count; i++) {
        // Without local steps outer sends what its inner algorithm does.
        if (task->local_steps > 1 ||
            !cli_spec_names(choices[i].algorithm, "outer")) {
            LAC_TRY(add_choice(p, &choices[i], speed));
        }
    }
    return add_streaming(p, speed);
}

void plan_close(plan *p)
{
    for (size_t i = 0; i < p->count; i++) {
        plan_pattern_close(&p->candidates[i].pattern);
    }
    p->count = 0;
}

double plan_step(const plan *p, const plan_candidate *c, const plan_network *n)
{
    const plan_wait wait = plan_pattern_wait(&c->pattern, n, p->task.compute);
    return p->task.compute + c->compress + wait.exposed / c->every;
}

const plan_candidate *plan_baseline(const plan *p)
{
    const plan_candidate *c = p->candidates;
    while (strcmp(c->choice.algorithm, "allreduce") != 0) {
        c++;
    }
    return c;
}

const plan_candidate *plan_winner(const plan *p, const plan_network *n)
{
    const plan_candidate *const baseline = plan_baseline(p);
    const plan_candidate *best = baseline;
    double least = plan_step(p, baseline, n) / PLAN_GAIN;
    for (size_t i = 0; i < p->count; i++) {
        const double step = plan_step(p, &p->candidates[i], n);
        // Of equals the first, as in the table.
        if (&p->candidates[i] != baseline &&
            (step < least || (best == baseline && step == least))) {
            best = &p->candidates[i];
            least = step;
        }
    }
    return best;
}

// The faster first; of equals, the one that sends less.
static int compare_candidates(const void *a, const void *b)
{
    const plan_candidate *const x = a, *const y = b;
    if (x->step != y->step) {
        return x->step < y->step ? -1 : 1;
    }
    return (x->payload > y->payload) - (x->payload < y->payload);
}

void plan_rank(plan *p, const plan_network *n)
{
    for (size_t i = 0; i < p->count; i++) {
        plan_candidate *const c = &p->candidates[i];
        const plan_wait wait =
            plan_pattern_wait(&c->pattern, n, p->task.compute);
        c->network = wait.network / c->every;
        c->hidden = (wait.network - wait.exposed) / c->every;
        if (c->hidden < ROUNDING * c->network) {
            c->hidden = 0;
        }
        c->step = p->task.compute + c->compress + wait.exposed / c->every;
    }
    qsort(p->candidates, p->count, sizeof(plan_candidate), compare_candidates);
}

static bool gains_at(const plan *p, const plan_network *n, double bandwidth)
{
    plan_network other = *n;
    other.bandwidth = bandwidth;
    return plan_winner(p, &other) != plan_baseline(p);
}

// Gains need not fall steadily with the bandwidth, since the winner changes and
// overlap hides what is short. So the speeds are tried from the fastest down.
double plan_break_even(const plan *p, const plan_network *n)
{
    double high = fastest, low = fastest;
    if (gains_at(p, n, fastest)) {
        return (double)INFINITY;
    }
    while (low > slowest && !gains_at(p, n, low)) {
        high = low;
        low /= stride;
    }
    if (low <= slowest) {
        return 0;
    }
    while (high / low > 1 + 1e-9) {
        const double middle = sqrt(low * high);
        if (gains_at(p, n, middle)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static double baseline_step(
    const plan *p, const plan_network *n, double bandwidth)
{
    plan_network other = *n;
    other.bandwidth = bandwidth;
    return plan_step(p, plan_baseline(p), &other);
}

lac_status plan_effective_bandwidth(
    const plan *p, const plan_network *n, double seconds, double *out)
{
    double low = slowest, high = fastest;
    const double least = baseline_step(p, n, fastest);
    const double most = baseline_step(p, n, slowest);
    if (!(seconds > least && seconds <= most)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--measured-step is %.9g s, expected above %.9g s, the computation "
            "and the latency of an all-reduce, and at most %.4g s",
            seconds, least, most);
    }
    while (high / low > 1 + 1e-12) {
        const double middle = sqrt(low * high);
        if (baseline_step(p, n, middle) > seconds) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *out = low;
    return LAC_OK;
}

static bool has_local_steps(const plan *p, const plan_candidate *c)
{
    return p->task.local_steps > 1 && c->family == LAC_FAMILY_MODEL;
}

// Whether a candidate is exact, and so loses nothing.
static bool is_exact(const plan *p, const plan_candidate *c)
{
    return !has_local_steps(p, c) && c->choice.compressor == NULL &&
           cli_spec_is_exact(c->choice.algorithm);
}

const plan_loss *plan_candidate_loss(const plan *p, const plan_candidate *c)
{
    return has_local_steps(p, c) ? NULL
                                 : plan_loss_nearest(&c->choice, &p->task.near);
}

// Whether one candidate is the better of two ties.
static bool loses_less(
    const plan *p, const plan_candidate *c, const plan_candidate *than)
{
    const plan_near *const near = &p->task.near;
    const plan_loss *const a = plan_candidate_loss(p, c);
    const plan_loss *const b = plan_candidate_loss(p, than);
    if (is_exact(p, than) || is_exact(p, c)) {
        return !is_exact(p, than);
    }
    if (a == NULL || b == NULL) {
        return a != NULL;
    }
    const int nearer =
        plan_loss_distance(b, near) - plan_loss_distance(a, near);
    return nearer > 0 || (nearer == 0 && a->lost < b->lost);
}

const plan_candidate *plan_advised(const plan *p)
{
    const plan_candidate *const first = &p->candidates[0];
    const plan_candidate *best = first;
    const double all = plan_baseline(p)->step;
    if (all / first->step < PLAN_GAIN) {
        return plan_baseline(p);
    }
    for (size_t i = 1; i < p->count; i++) {
        const plan_candidate *const c = &p->candidates[i];
        if (c->step <= PLAN_GAIN * first->step && c->step < all &&
            loses_less(p, c, best)) {
            best = c;
        }
    }
    return best;
}
