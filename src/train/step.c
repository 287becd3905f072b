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
        " is not finite; a smaller --lr, or --warmup, may help",
        w->step + 1, what, w->rank);
}

// x += step, and whether all of it is finite.
static bool add(float *restrict x, const float *restrict step, size_t n)
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

static bool is_finite(const float *x, size_t n)
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
    const lac_status status = train_compute_finish(w->compute, &score);
    if (status != LAC_OK) {
        return status;
    }
    if (!isfinite(score.loss)) {
        return diverged(w, "the loss");
    }
    w->loss += score.loss;
    w->labels += score.count;
    const double norm = train_clip(w->gradient, w->n, w->run->plan.clip);
    return isfinite(norm) ? LAC_OK : diverged(w, "the gradient");
}

// Algorithms refuse values that are not finite, those of a peer or of their own
// memory too, and say whose. Nothing else of theirs is invalid by now.
static lac_status judge(const train_worker *w, lac_status status)
{
    return status != LAC_ERR_INVALID
               ? status
               : lac_fail(
                     status, "the run diverges: in step %" PRIu64 " %s",
                     w->step + 1, lac_error_message());
}

// Replaces the gradient by the step.
static void choose_step(train_worker *w)
{
    const double rate =
        train_rate(&w->run->plan.schedule, w->step, w->epoch_steps);
    train_optimiser_step(w->optimiser, rate, w->x, w->gradient);
}

static double now(const train_worker *w)
{
    return lac_transport_now(w->transport);
}

static lac_status reduce_step(train_worker *w)
{
    start_gradient(w);
    lac_status status = finish_gradient(w);
    if (status != LAC_OK) {
        return status;
    }
    const double begun = now(w);
    status = lac_algorithm_reduce(
        w->algorithm, w->step, w->gradient_slices, w->tensors);
    status = judge(w, status);
    w->talked += now(w) - begun;
    if (status != LAC_OK) {
        return status;
    }
    choose_step(w);
    return add(w->x, w->gradient, w->n) ? LAC_OK : diverged(w, "the model");
}

static lac_status end_round(train_worker *w, const float *const *updates)
{
    const double begun = now(w);
    const lac_status status = lac_algorithm_end(
        w->algorithm, w->step, w->model_slices, updates, w->tensors);
    w->talked += now(w) - begun;
    return judge(w, status);
}

static lac_status gossip_step(train_worker *w)
{
    start_gradient(w);
    const double begun = now(w);
    lac_status status =
        lac_algorithm_begin(w->algorithm, w->step, w->model_slices, w->tensors);
    status = judge(w, status);
    w->talked += now(w) - begun;
    // Also after a failure: the job reads the model until it is finished.
    const lac_status computed = finish_gradient(w);
    status = status == LAC_OK ? computed : status;
    if (status != LAC_OK) {
        return status;
    }
    if (lac_algorithm_takes_update(w->algorithm)) {
        choose_step(w);
        if (!is_finite(w->gradient, w->n)) {
            return diverged(w, "the step");
        }
        status = end_round(w, w->updates);
        return status != LAC_OK || is_finite(w->x, w->n)
                   ? status
                   : diverged(w, "the model");
    }
    status = end_round(w, NULL);
    if (status != LAC_OK) {
        return status;
    }
    choose_step(w);
    return add(w->x, w->gradient, w->n) ? LAC_OK : diverged(w, "the model");
}

lac_status train_worker_step(train_worker *w)
{
    const lac_status status =
        lac_algorithm_family(w->algorithm) == LAC_FAMILY_MODEL ? gossip_step(w)
                                                               : reduce_step(w);
    if (status == LAC_OK) {
        w->step++;
    }
    return status;
}
