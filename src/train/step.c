// SPDX-License-Identifier: MIT
// One step of a worker.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "train/worker.h"

static lac_status diverged(const train_worker *w, const char *what)
{
    return lac_fail(
        LAC_ERR_INVALID,
        "the run diverges: in step %" PRIu64 " %s of worker %" PRIu32
        " is not finite; try a smaller --lr or --warmup",
        w->step + 1, what, w->rank);
}

// Adds the step to x and returns whether the sum is finite.
static bool add_step(float *restrict x, const float *restrict step, size_t n)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        const float sum = x[i] + step[i];
        uint32_t bits;
        memcpy(&bits, &sum, sizeof(bits));
        bad |= (bits & exponent) == exponent;
        x[i] = sum;
    }
    return bad == 0;
}

static bool step_all_finite(const float *x, size_t n)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        bad |= (bits & exponent) == exponent;
    }
    return bad == 0;
}

static void start_gradient(train_worker *w)
{
    const uint64_t epoch = w->step / w->epoch_steps;
    const uint64_t within = w->step % w->epoch_steps;
    const nn_network *const net = train_compute_learner(w->compute);
    if (within == 0) {
        memset(w->carry, 0, nn_network_carry(net) * sizeof(float));
    }
    train_job job = {
        .state = {w->x, w->running, w->carry},
        .noise = lac_key_make(
            w->run->plan.seed, LAC_PURPOSE_DROPOUT, w->step,
            lac_scope_worker(w->rank), 0),
        .gradient = w->gradient,
    };
    train_feed_batch(w->feed, epoch, within, &job.batch);
    train_compute_start(w->compute, &job);
}

static lac_status finish_gradient(train_worker *w)
{
    nn_score score;
    LAC_TRY(train_compute_finish(w->compute, &score));
    if (!isfinite(score.loss)) {
        return diverged(w, "the loss");
    }
    w->loss += score.loss;
    w->labels += score.count;
    train_trace_add(
        &w->trace, score.loss, score.count, w->step < w->first_steps);
    const double norm = train_clip(w->gradient, w->n, w->run->plan.clip);
    return isfinite(norm) ? LAC_OK : diverged(w, "the gradient");
}

// An algorithm rejects non-finite values, its own and those of a peer, and
// names the worker. LAC_ERR_INVALID here means a non-finite value. `step` steps
// were done.
static lac_status explain_divergence(uint64_t step, lac_status status)
{
    return status != LAC_ERR_INVALID
               ? status
               : lac_fail(
                     status, "the run diverges: in step %" PRIu64 " %s",
                     step + 1, lac_error_message());
}

static double step_rate(const train_worker *w)
{
    return train_rate(&w->schedule, w->step, w->epoch_steps);
}

// Replaces the gradient by the step of the optimiser.
static void choose_step(train_worker *w)
{
    train_optimiser_step(w->optimiser, step_rate(w), w->x, w->gradient);
}

static double step_now(const train_worker *w)
{
    return lac_transport_now(w->transport);
}

static lac_status reduce_step(train_worker *w)
{
    LAC_TRY(lac_algorithm_set_rate(w->algorithm, step_rate(w)));
    start_gradient(w);
    LAC_TRY(finish_gradient(w));
    const double begun = step_now(w);
    const lac_status status = lac_algorithm_reduce(
        w->algorithm, w->step, w->gradient_slices, w->tensors);
    w->algorithm_seconds += step_now(w) - begun;
    LAC_TRY(explain_divergence(w->step, status));
    choose_step(w);
    return add_step(w->x, w->gradient, w->n) ? LAC_OK
                                             : diverged(w, "the model");
}

// Rounds are counted by the algorithm: there are fewer of them than steps if
// there are local steps.
static uint64_t next_round(const train_worker *w)
{
    return lac_algorithm_round(w->algorithm, 0);
}

static lac_status step_end_round(train_worker *w, const float *const *updates)
{
    const double begun = step_now(w);
    const lac_status status = lac_algorithm_end(
        w->algorithm, next_round(w), w->model_slices, updates, w->tensors);
    w->algorithm_seconds += step_now(w) - begun;
    return explain_divergence(w->step, status);
}

static lac_status gossip_step(train_worker *w)
{
    LAC_TRY(lac_algorithm_set_rate(w->algorithm, step_rate(w)));
    train_optimiser_begin(w->optimiser, w->x);
    start_gradient(w);
    const double begun = step_now(w);
    lac_status status = lac_algorithm_begin(
        w->algorithm, next_round(w), w->model_slices, w->tensors);
    status = explain_divergence(w->step, status);
    w->algorithm_seconds += step_now(w) - begun;
    // After a failure too: the job reads the model until it is finished.
    const lac_status computed = finish_gradient(w);
    LAC_TRY(status);
    LAC_TRY(computed);
    if (lac_algorithm_takes_update(w->algorithm)) {
        choose_step(w);
        if (!step_all_finite(w->gradient, w->n)) {
            return diverged(w, "the step");
        }
        LAC_TRY(step_end_round(w, w->updates));
        return step_all_finite(w->x, w->n) ? LAC_OK : diverged(w, "the model");
    }
    LAC_TRY(step_end_round(w, NULL));
    choose_step(w);
    return add_step(w->x, w->gradient, w->n) ? LAC_OK
                                             : diverged(w, "the model");
}

// A value of a hostile worker: far from those of any model, yet so small that
// no distance between two models overflows.
static const float hostile_value = 1e6F;

static bool is_hostile(const train_worker *w)
{
    return w->run->plan.hostile == w->rank + 1;
}

// All values are the same, so that their effect on the neighbours adds up from
// round to round.
static void fill_hostile(train_worker *w)
{
    for (size_t i = 0; i < w->n; i++) {
        w->x[i] = hostile_value;
    }
}

// Takes part in a round of the others without a step of its own.
static lac_status hostile_round(train_worker *w)
{
    LAC_TRY(lac_algorithm_set_rate(w->algorithm, step_rate(w)));
    fill_hostile(w);
    const double begun = step_now(w);
    const lac_status status = lac_algorithm_begin(
        w->algorithm, next_round(w), w->model_slices, w->tensors);
    w->algorithm_seconds += step_now(w) - begun;
    LAC_TRY(explain_divergence(w->step, status));
    memset(w->gradient, 0, w->n * sizeof(float));
    return step_end_round(
        w, lac_algorithm_takes_update(w->algorithm) ? w->updates : NULL);
}

static lac_status local_step(train_worker *w)
{
    start_gradient(w);
    LAC_TRY(finish_gradient(w));
    choose_step(w);
    return add_step(w->x, w->gradient, w->n) ? LAC_OK
                                             : diverged(w, "the model");
}

static bool step_mixes(const train_worker *w, uint64_t step)
{
    return train_local_steps_mix(
        &w->run->plan.local_steps, step, w->epoch_steps);
}

// Calls one part of a round of a fragment, between two steps.
static lac_status step_fragment(
    train_worker *w, lac_status (*part)(train_stream *, uint32_t),
    uint32_t fragment)
{
    const double begun = step_now(w);
    const lac_status status = part(w->stream, fragment);
    w->algorithm_seconds += step_now(w) - begun;
    return status;
}

// Returns whether a fragment has its turn when `done` steps are done, and
// which.
static bool step_turn(
    const train_worker *w, uint64_t done, uint32_t *fragment_out)
{
    if (done == 0 || !step_mixes(w, done - 1)) {
        return false;
    }
    *fragment_out = train_local_steps_fragment(
        &w->run->plan.local_steps, done - 1, w->epoch_steps);
    return true;
}

// Local steps up to a number of them.
typedef struct local_steps_task {
    train_worker *w;
    uint64_t until;
} local_steps_task;

static lac_status make_local_steps(void *context)
{
    const local_steps_task *const t = context;
    while (t->w->step < t->until) {
        LAC_TRY(local_step(t->w));
        t->w->step++;
    }
    return LAC_OK;
}

// Begins the round of a fragment and makes the steps up to `until`, in the
// thread of the networks if they have one. That changes the model and w->step
// meanwhile.
static lac_status begin_beside_steps(
    train_worker *w, uint32_t fragment, uint64_t until)
{
    local_steps_task steps = {w, until};
    const uint64_t step = w->step;
    if (!w->run->plan.overlap) {
        const lac_status status =
            step_fragment(w, train_stream_begin, fragment);
        LAC_TRY(explain_divergence(step, status));
        return make_local_steps(&steps);
    }
    train_stream_copy(w->stream, fragment);
    train_compute_start_task(w->compute, make_local_steps, &steps);
    lac_status status = step_fragment(w, train_stream_begin_copied, fragment);
    status = explain_divergence(step, status);
    // After a failure too: the steps use the worker until they are made.
    const lac_status made = train_compute_finish_task(w->compute);
    LAC_TRY(status);
    return made;
}

// A round begins before the step that follows its turn, so that a checkpoint
// between the two does not have it. A run that ended and is continued has no
// round to end where its last one has.
static lac_status stream_steps(train_worker *w, uint64_t until)
{
    const uint32_t delay = w->run->plan.local_steps.delay;
    const uint64_t step = w->step;
    uint32_t fragment = 0;
    if (delay > 0 && step_turn(w, step, &fragment)) {
        const uint64_t end = step + delay;
        LAC_TRY(begin_beside_steps(w, fragment, end < until ? end : until));
    } else {
        local_steps_task one = {w, step + 1};
        LAC_TRY(make_local_steps(&one));
    }
    if (w->step < delay || !step_turn(w, w->step - delay, &fragment)) {
        return LAC_OK;
    }
    lac_status status = LAC_OK;
    if (delay == 0) {
        status = step_fragment(w, train_stream_mix, fragment);
    } else if (train_stream_begun(w->stream, fragment)) {
        status = step_fragment(w, train_stream_end, fragment);
    }
    return explain_divergence(w->step - 1, status);
}

lac_status train_worker_step(train_worker *w, uint64_t until)
{
    if (w->stream != NULL) {
        return stream_steps(w, until);
    }
    if (lac_algorithm_family(w->algorithm) != LAC_FAMILY_MODEL) {
        LAC_TRY(reduce_step(w));
    } else if (is_hostile(w)) {
        LAC_TRY(step_mixes(w, w->step) ? hostile_round(w) : LAC_OK);
    } else if (step_mixes(w, w->step)) {
        LAC_TRY(gossip_step(w));
        train_optimiser_end(w->optimiser, step_rate(w), w->x);
    } else {
        LAC_TRY(local_step(w));
    }
    w->step++;
    return LAC_OK;
}

// Ends the rounds that were begun, and mixes all fragments but one that was
// mixed after the last step.
static lac_status last_stream_rounds(train_worker *w)
{
    const bool late = w->run->plan.local_steps.delay > 0;
    uint32_t last = UINT32_MAX;
    const bool mixed = step_turn(w, w->step, &last) && !late;
    for (uint32_t f = 0; f < w->stream->fragments; f++) {
        if (train_stream_begun(w->stream, f)) {
            LAC_TRY(explain_divergence(
                w->step, step_fragment(w, train_stream_end, f)));
        }
        if (!mixed || f != last) {
            LAC_TRY(explain_divergence(
                w->step, step_fragment(w, train_stream_mix, f)));
        }
    }
    return LAC_OK;
}

// A round of an algorithm that takes the step contains it; the others add it
// after the round.
lac_status train_worker_last_round(train_worker *w)
{
    if (w->stream != NULL) {
        return last_stream_rounds(w);
    }
    const train_local_steps *const l = &w->run->plan.local_steps;
    const uint64_t last = w->step - 1;
    const bool contained =
        lac_algorithm_takes_update(w->algorithm) && step_mixes(w, last);
    if (lac_algorithm_family(w->algorithm) != LAC_FAMILY_MODEL ||
        train_local_steps_at(l, last, w->epoch_steps) == 1 || contained) {
        return LAC_OK;
    }
    if (is_hostile(w)) {
        fill_hostile(w);
    }
    const double begun = step_now(w);
    const lac_status status = lac_algorithm_mix(
        w->algorithm, next_round(w), w->model_slices, NULL, w->tensors);
    w->algorithm_seconds += step_now(w) - begun;
    return explain_divergence(w->step, status);
}
