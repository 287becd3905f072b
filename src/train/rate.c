// SPDX-License-Identifier: MIT
// Finds a learning rate: the first steps of the run are made with a few rates,
// each from the initial model, and leave no trace.
//
// The search starts at the usual rate. It doubles the rate as long as that
// helps, and if the first doubling does not help, it halves the rate likewise.
// The score of a rate is the mean loss of the last sixth of its steps. A rate
// must lower the score by 5 % to replace another, so that noise keeps the
// usual one. Trials are long, and no rate is abandoned early unless it
// diverges: in the first 40 steps of LeNet a rate of a quarter often looks
// best that is worst after 100. A rate diverges if the loss of a step exceeds
// twice the initial one, before values overflow.
//
// All trials see the same batches in the same order, and all workers the same
// sums of losses, so the workers agree, and the same settings give the same
// rate.
#include <math.h>
#include <string.h>

#include "train/worker.h"

enum {
    TRIAL_STEPS = 48, // at least, unless the run is shorter
    RUN_PART = 64,    // of the steps of a long run that a trial has
    SCORED_PART = 6,  // of the steps of a trial that are scored
    FULL_TRIALS = 4,  // all trials together have no more steps
};

static const double smallest = 1.0 / 8; // of the usual rate
static const double largest = 4;        // likewise
static const double too_high = 2;       // of the initial loss
static const double better_by = 0.95;   // of the score of another rate

// Sums over all workers since a trial began.
typedef struct rate_sums {
    double loss;
    double labels;
} rate_sums;

typedef struct rate_search {
    uint64_t trial_steps;
    uint64_t made; // steps of all trials
    train_trial best;
} rate_search;

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

static bool is_stopped(const train_worker *w)
{
    return w->decision.stop != 0;
}

// Adds a trial to the record of the search.
static void note_trial(train_worker *w, const train_trial *trial)
{
    train_search *const s = &w->origin.search;
    if (s->count < TRAIN_TRIALS_MAX) {
        s->trials[s->count++] = *trial;
    }
}

// Makes the steps of a trial with trial->rate and writes its loss, infinite if
// the rate diverges. A stop ends it, and nothing is written.
static lac_status try_rate(train_worker *w, rate_search *s, train_trial *trial)
{
    const uint64_t part = s->trial_steps / SCORED_PART;
    const uint64_t scored = part == 0 ? 1 : part;
    rate_sums sums = {0}, scored_from = {0}, previous = {0};
    double limit = (double)INFINITY;
    bool diverges = false;
    w->schedule.rate = trial->rate;
    LAC_TRY(rewind_worker(w));
    while (w->step < s->trial_steps && !diverges) {
        train_worker_searching(
            w, trial->rate, s->made, FULL_TRIALS * s->trial_steps);
        scored_from = w->step == s->trial_steps - scored ? sums : scored_from;
        previous = sums;
        LAC_TRY(train_worker_step(w, w->step + 1));
        s->made++;
        LAC_TRY(train_worker_check(w));
        if (is_stopped(w)) {
            return LAC_OK;
        }
        sums = (rate_sums){w->decision.loss, (double)w->decision.labels};
        diverges = !(mean_between(&previous, &sums) <= limit);
        limit = w->step == 1 ? too_high * sums.loss / sums.labels : limit;
    }
    trial->loss =
        diverges ? (double)INFINITY : mean_between(&scored_from, &sums);
    note_trial(w, trial);
    return LAC_OK;
}

// Tries rates in one direction as long as they are better. From a rate that
// diverges on, any is.
static lac_status rate_climb(train_worker *w, rate_search *s, double factor)
{
    const double usual = w->run->plan.usual_rate;
    train_trial t = {.rate = s->best.rate * factor};
    while (t.rate >= smallest * usual && t.rate <= largest * usual &&
           s->made + s->trial_steps <= FULL_TRIALS * s->trial_steps) {
        LAC_TRY(try_rate(w, s, &t));
        if (is_stopped(w) ||
            (isfinite(s->best.loss) && !(t.loss < better_by * s->best.loss))) {
            return LAC_OK;
        }
        s->best = t;
        t.rate *= factor;
    }
    return LAC_OK;
}

static uint64_t trial_steps(const train_worker *w)
{
    const uint64_t part = w->total_steps / RUN_PART;
    const uint64_t steps = part > TRIAL_STEPS ? part : TRIAL_STEPS;
    return steps < w->total_steps ? steps : w->total_steps;
}

// Sets the rate of w->origin, unless there is a stop.
static lac_status search_rate(train_worker *w)
{
    const double usual = w->run->plan.usual_rate;
    rate_search s = {.trial_steps = trial_steps(w), .best = {.rate = usual}};
    LAC_TRY(try_rate(w, &s, &s.best));
    if (!is_stopped(w) && isfinite(s.best.loss)) {
        LAC_TRY(rate_climb(w, &s, 2));
    }
    if (!is_stopped(w) && s.best.rate <= usual) {
        LAC_TRY(rate_climb(w, &s, 0.5));
    }
    if (!is_stopped(w)) {
        w->origin.rate = isfinite(s.best.loss) ? s.best.rate : s.best.rate / 2;
    }
    return LAC_OK;
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
    const double begun = lac_transport_now(w->transport);
    LAC_TRY(lac_algorithm_save(w->algorithm, w->state, w->state_len));
    w->schedule.course = TRAIN_CONSTANT;
    w->schedule.warmup = 0;
    w->origin.search = (train_search){0};
    LAC_TRY(search_rate(w));
    LAC_TRY(rewind_worker(w));
    w->schedule = w->run->plan.schedule;
    w->schedule.rate = w->origin.rate;
    w->algorithm_seconds = 0;
    w->search_seconds = lac_transport_now(w->transport) - begun;
    w->searched.traffic = traffic_since(w, &traffic);
    w->searched.compute_seconds = train_compute_seconds(w->compute) - computed;
    return LAC_OK;
}
