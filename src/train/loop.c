// SPDX-License-Identifier: MIT
// The training loop of a worker.
//
// The workers meet (meeting.h) about every half second, so that worker 0 can
// show how far they are and all of them end after the same step when one was
// asked to; when they meet changes nothing in what they compute. At the end of
// an epoch they test their models and make a checkpoint.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "train/checkpoint.h"
#include "train/uncompressed.h"
#include "train/worker.h"

// Seconds between meetings.
#define INTERVAL 0.5

static double now(const train_worker *w)
{
    return lac_transport_now(w->transport);
}

lac_status train_worker_meet(
    train_worker *w, train_report *report, const train_report **reports_out)
{
    const void *reports = NULL;
    const float *const *rows = NULL;
    const atomic_int *const stop = w->run->hooks.stop;
    report->step = w->step;
    report->loss = w->loss;
    report->labels = w->labels;
    report->usage = train_worker_usage(w);
    report->stop = stop != NULL && *stop != 0;
    const lac_status status =
        train_meeting_gather(w->meeting, report, NULL, 0, &reports, &rows);
    *reports_out = reports;
    return status;
}

lac_status train_worker_agree(train_worker *w)
{
    return train_meeting_decide(w->meeting, &w->agreed, NULL, 0);
}

static void tell(train_worker *w, bool testing, double loss, double speed)
{
    const train_hooks *const hooks = &w->run->hooks;
    if (w->rank == 0 && hooks->tell != NULL) {
        const train_progress progress = {
            .step = w->step,
            .total = w->total_steps,
            .epoch = w->step == 0 ? 0 : (w->step - 1) / w->epoch_steps,
            .epochs = w->run->plan.epochs,
            .loss = loss,
            .labels_a_second = speed,
            .payload_bytes =
                train_worker_usage(w).traffic.payload_bytes * w->world,
            .testing = testing,
        };
        hooks->tell(hooks->context, &progress);
    }
}

// How many steps until the next meeting, and never beyond the epoch.
static uint64_t next_meeting(const train_worker *w, double elapsed)
{
    const uint64_t made = w->step - w->last_step;
    const double step = made == 0 ? INTERVAL : elapsed / (double)made;
    const double count = INTERVAL / fmax(step, 1e-6);
    const uint64_t epoch_end = (w->step / w->epoch_steps + 1) * w->epoch_steps;
    const uint64_t next = w->step + (count < 1 ? 1 : (uint64_t)count);
    return next < epoch_end ? next : epoch_end;
}

static void judge(train_worker *w, const train_report *reports)
{
    double loss = 0;
    uint64_t labels = 0;
    train_verdict verdict = {0};
    for (uint32_t k = 0; k < w->world; k++) {
        loss += reports[k].loss;
        labels += reports[k].labels;
        verdict.stop = verdict.stop || reports[k].stop != 0;
    }
    const double time = now(w);
    const double elapsed = time - w->last_time;
    verdict.next = next_meeting(w, elapsed);
    // A run that goes on within an epoch begins with what was counted before.
    if (w->step > w->last_step && labels > w->last_labels) {
        const double seen = (double)(labels - w->last_labels);
        tell(w, false, (loss - w->last_loss) / seen, seen / elapsed);
    }
    w->last_time = time;
    w->last_step = w->step;
    w->last_loss = loss;
    w->last_labels = labels;
    w->agreed = verdict;
}

static lac_status meet(train_worker *w)
{
    train_report report = {0};
    const train_report *reports = NULL;
    const lac_status status = train_worker_meet(w, &report, &reports);
    if (status != LAC_OK) {
        return status;
    }
    if (reports != NULL) {
        judge(w, reports);
    }
    return train_worker_agree(w);
}

static bool ended_epoch(const train_worker *w)
{
    return w->step % w->epoch_steps == 0;
}

// Not before the next one begins: a checkpoint at its end tells how it went.
static void forget_epoch(train_worker *w)
{
    w->loss = w->last_loss = 0;
    w->labels = w->last_labels = 0;
}

// Tests the models and writes down how the epoch went.
static lac_status finish_epoch(train_worker *w, bool record)
{
    train_result *const result = &w->run->result;
    train_metrics metrics = {0};
    tell(w, true, (double)NAN, (double)NAN);
    lac_status status = train_worker_test(w, &metrics);
    if (status != LAC_OK) {
        return status;
    }
    if (w->rank == 0) {
        metrics.epoch = w->step / w->epoch_steps;
        metrics.step = w->step;
        result->metrics = metrics;
        result->tested = true;
        if (record) {
            status = train_metrics_append(w->run->plan.folder, &metrics);
        }
        if (w->run->hooks.epoch != NULL) {
            w->run->hooks.epoch(w->run->hooks.context, &metrics);
        }
    }
    if (status == LAC_OK && w->agreed.diverged != 0) {
        status = lac_fail(
            LAC_ERR_INVALID,
            "the run diverges: after epoch %llu a model has no finite loss on "
            "the test set; a smaller --lr, or --warmup, may help",
            (unsigned long long)(w->step / w->epoch_steps));
    }
    w->last_time = now(w);
    return status;
}

static bool due(const train_worker *w)
{
    const uint64_t every = w->run->plan.checkpoint_every;
    return ended_epoch(w) || w->agreed.stop != 0 ||
           (every != 0 && w->step % every == 0);
}

static lac_status run_steps(train_worker *w)
{
    lac_status status = meet(w);
    // What was resumed has one already.
    if (status == LAC_OK && w->agreed.stop != 0 && w->step == 0) {
        return train_worker_save(w);
    }
    while (status == LAC_OK && w->step < w->total_steps &&
           w->agreed.stop == 0) {
        if (ended_epoch(w)) {
            forget_epoch(w);
        }
        status = train_worker_step(w);
        if (status == LAC_OK && (w->step == w->agreed.next || ended_epoch(w))) {
            status = meet(w);
        }
        if (status == LAC_OK && ended_epoch(w)) {
            status = finish_epoch(w, true);
        }
        if (status == LAC_OK && due(w)) {
            status = train_worker_save(w);
        }
    }
    return status;
}

static void gather_facts(train_worker *w, train_facts *out)
{
    lac_algorithm_options options = w->run->plan.algorithm;
    lac_cost cost = {0};
    const train_optimiser_memory memory =
        train_optimiser_remembers(w->optimiser);
    options.layout = nn_network_layout(train_compute_learner(w->compute));
    const lac_status status = lac_algorithm_cost(&options, &cost);
    const size_t model = w->n * sizeof(float);
    *out = (train_facts){
        .parameters = w->n,
        .epoch_steps = w->epoch_steps,
        .first_step = w->step,
        .family = lac_algorithm_family(w->algorithm),
        .gamma = lac_algorithm_gamma(w->algorithm),
        .warning = lac_algorithm_warning(w->algorithm),
        .memory =
            {
                .parameters = model,
                .gradient = model,
                .optimiser = memory.count * model,
                .activations = train_compute_memory(w->compute),
                .algorithm = status == LAC_OK ? cost.memory_bytes : 0,
            },
    };
}

// All have taken up the same checkpoint, or none.
// From here on nobody else changes the folder; but another run may have, since
// this one has loaded its checkpoint.
static lac_status hold_folder(const train_worker *w)
{
    const train_hooks *const hooks = &w->run->hooks;
    const char *const folder = w->run->plan.folder;
    uint64_t step = 0;
    lac_status status =
        hooks->hold == NULL ? LAC_OK : hooks->hold(hooks->context);
    if (status != LAC_OK || !w->run->plan.resume) {
        return status;
    }
    status = train_checkpoint_latest(folder, &step);
    if (status != LAC_OK && status != LAC_ERR_NOTFOUND) {
        return status;
    }
    return step == w->step ? LAC_OK
                           : lac_fail(
                                 LAC_ERR_INVALID,
                                 "%s: another run has gone on to step %" PRIu64
                                 " there since this one took up step %" PRIu64
                                 "; resume once more",
                                 folder, step, w->step);
}

static lac_status check_start(
    const train_worker *w, const train_report *reports)
{
    for (uint32_t k = 1; k < w->world; k++) {
        if (reports[k].step != w->step) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: worker 0 has made %" PRIu64 " steps there and worker "
                "%" PRIu32 " %" PRIu64 ", expected a folder that all machines "
                "share",
                w->run->plan.folder, w->step, k, reports[k].step);
        }
    }
    return LAC_OK;
}

// What worker 0 does when all are ready.
static lac_status announce(train_worker *w)
{
    const train_plan *const plan = &w->run->plan;
    const train_hooks *const hooks = &w->run->hooks;
    gather_facts(w, &w->run->result.facts);
    w->begun = w->last_time = now(w);
    w->last_step = w->step;
    lac_status status =
        plan->resume ? train_metrics_cut(plan->folder, w->step) : LAC_OK;
    if (status == LAC_OK && hooks->ready != NULL) {
        status = hooks->ready(hooks->context, &w->run->result.facts);
    }
    return status;
}

// The folder changes only after all workers could begin: until then another
// process may look at what it holds, and a worker that cannot load its part of
// a checkpoint leaves everything as it was.
static lac_status ready(train_worker *w)
{
    train_report report = {0};
    const train_report *reports = NULL;
    lac_status status = train_worker_meet(w, &report, &reports);
    if (status == LAC_OK && reports != NULL) {
        status = hold_folder(w);
    }
    if (status == LAC_OK && reports != NULL) {
        status = check_start(w, reports);
    }
    if (status == LAC_OK && reports != NULL) {
        status = announce(w);
    }
    return status == LAC_OK ? train_worker_agree(w) : status;
}

static lac_status run_all(train_worker *w)
{
    lac_status status = train_worker_open(w);
    if (status == LAC_OK) {
        status = ready(w);
    }
    // A run that was complete already is tested once more.
    const bool complete = status == LAC_OK && w->step >= w->total_steps;
    if (status == LAC_OK) {
        status = run_steps(w);
    }
    if (status == LAC_OK && complete) {
        status = finish_epoch(w, false);
    }
    if (status == LAC_OK && w->step >= w->total_steps) {
        status = train_worker_export(w);
    }
    return status;
}

lac_status train_work(train_run *run, lac_transport *transport)
{
    const uint32_t rank = lac_transport_rank(transport);
    train_worker *const w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for worker %u", rank);
    }
    run->workers[rank] = w;
    w->run = run;
    w->transport = transport;
    w->rank = rank;
    w->world = lac_transport_world(transport);
    const lac_status status = run_all(w);
    if (rank == 0) {
        run->result.here = true;
        run->result.interrupted = status == LAC_OK && w->step < w->total_steps;
        run->result.seconds = now(w) - w->begun;
        if (w->algorithm != NULL) {
            run->result.uncompressed_bytes = train_uncompressed_bytes(
                lac_algorithm_family(w->algorithm),
                run->plan.algorithm.topology, w->n, w->step);
        }
    }
    return status;
}

void train_release(train_run *run, uint32_t rank)
{
    train_worker *const w = run->workers[rank];
    run->workers[rank] = NULL;
    if (w != NULL) {
        train_worker_close(w);
    }
}
