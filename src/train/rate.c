// SPDX-License-Identifier: MIT
// Finds a learning rate: the first steps of the run are made with a few rates,
// each from the initial model, and leave no trace.
//
// Rates rise by factors of two around the usual one. The score of a rate is the
// mean loss of the last third of its steps. A rate at which the loss exceeds
// twice the initial one ends the search, before values overflow. Half of the
// rate with the lowest score is taken: errors that a few steps do not show add
// up in a run. The same settings give the same rate.
#include <math.h>
#include <string.h>

#include "train/worker.h"

enum { RATES = 6, TRIAL_STEPS = 24, SCORED_STEPS = TRIAL_STEPS / 3 };

static const double smallest = 1.0 / 8; // of the usual rate
static const double too_high = 2;       // of the initial loss

// Sums over all workers since a trial began.
typedef struct rate_sums {
    double loss;
    double labels;
} rate_sums;

static double mean_between(const rate_sums *from, const rate_sums *to)
{
    return (to->loss - from->loss) / (to->labels - from->labels);
}

// Puts the worker back to the first step.
static lac_status rewind_worker(train_worker *w)
{
    train_optimiser_state state = train_optimiser_get_state(w->optimiser);
    nn_network_initialise(
        train_compute_learner(w->compute), w->run->plan.seed, w->x, w->running);
    for (size_t k = 0; k < state.count; k++) {
        memset(state.vector[k], 0, w->n * sizeof(float));
    }
    *state.steps = 0;
    w->step = 0;
    w->loss = 0;
    w->labels = 0;
    w->trace = (train_trace){0};
    return lac_algorithm_load(w->algorithm, w->state, w->state_len);
}

// Worker 0 sums the losses of all workers, and decides whether to go on: unless
// the loss of the last step is above `limit`.
static lac_status sum_losses(
    train_worker *w, double limit, rate_sums *sums_inout)
{
    const rate_sums before = *sums_inout;
    train_report report = {0};
    const train_report *reports = NULL;
    LAC_TRY(train_worker_gather(w, &report, &reports));
    if (reports != NULL) {
        *sums_inout = (rate_sums){0};
        for (uint32_t k = 0; k < w->world; k++) {
            sums_inout->loss += reports[k].loss;
            sums_inout->labels += (double)reports[k].labels;
        }
        w->decision.diverged = !(mean_between(&before, sums_inout) <= limit);
    }
    return train_worker_broadcast(w);
}

// On worker 0, writes the score of a rate; infinite if the loss rose too far.
static lac_status try_rate(train_worker *w, double rate, double *score_out)
{
    const uint64_t steps =
        w->total_steps < TRIAL_STEPS ? w->total_steps : TRIAL_STEPS;
    const uint64_t scored = steps < SCORED_STEPS ? steps : SCORED_STEPS;
    rate_sums sums = {0}, before = {0};
    double limit = (double)INFINITY;
    *score_out = (double)INFINITY;
    w->schedule.rate = rate;
    w->decision.diverged = 0;
    LAC_TRY(rewind_worker(w));
    while (w->step < steps) {
        before = w->step == steps - scored ? sums : before;
        LAC_TRY(train_worker_step(w, w->step + 1));
        LAC_TRY(sum_losses(w, limit, &sums));
        if (w->decision.diverged != 0) {
            return LAC_OK;
        }
        limit = w->step == 1 ? too_high * sums.loss / sums.labels : limit;
    }
    *score_out = mean_between(&before, &sums);
    return LAC_OK;
}

// Worker 0 finds the best rate, and half of it becomes that of all workers.
static lac_status search_rate(train_worker *w)
{
    double best = (double)INFINITY, rate = smallest * w->run->plan.usual_rate;
    const train_claim claim = {0};
    const train_claim *claims = NULL;
    w->origin.rate = rate / 2;
    w->decision.diverged = 0;
    for (int i = 0; i < RATES && w->decision.diverged == 0; i++, rate *= 2) {
        double score = 0;
        LAC_TRY(try_rate(w, rate, &score));
        if (score < best) {
            best = score;
            w->origin.rate = rate / 2;
        }
    }
    LAC_TRY(train_worker_claim(w, &claim, &claims));
    return train_worker_origin(w);
}

static lac_traffic traffic_since(const train_worker *w, const lac_traffic *then)
{
    const lac_traffic now = lac_algorithm_traffic(w->algorithm);
    return (lac_traffic){
        now.payload_bytes - then->payload_bytes,
        now.wire_bytes - then->wire_bytes,
        now.messages - then->messages,
    };
}

lac_status train_worker_find_rate(train_worker *w)
{
    const lac_traffic traffic = lac_algorithm_traffic(w->algorithm);
    const double computed = train_compute_seconds(w->compute);
    LAC_TRY(lac_algorithm_save(w->algorithm, w->state, w->state_len));
    w->schedule.course = TRAIN_CONSTANT;
    w->schedule.warmup = 0;
    LAC_TRY(search_rate(w));
    LAC_TRY(rewind_worker(w));
    w->schedule = w->run->plan.schedule;
    w->schedule.rate = w->origin.rate;
    w->algorithm_seconds = 0;
    w->searched.traffic = traffic_since(w, &traffic);
    w->searched.compute_seconds = train_compute_seconds(w->compute) - computed;
    return LAC_OK;
}
