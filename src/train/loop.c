// SPDX-License-Identifier: MIT
// The training loop of a worker.
//
// The workers synchronise (sync.h) about every half second, so that worker 0
// can report the progress and all of them end after the same step when one was
// asked to. The interval does not affect the results. After some steps, usually
// the last of an epoch, they test their models, and at the end of an epoch they
// write a checkpoint.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "train/checkpoint.h"
#include "train/uncompressed.h"
#include "train/worker.h"

// Seconds between synchronisations.
#define INTERVAL 0.5

static double loop_now(const train_worker *w)
{
    return lac_transport_now(w->transport);
}

lac_status train_worker_gather(
    train_worker *w, train_report *report, const train_report **reports_out)
{
    const void *reports = NULL;
    const float *const *rows = NULL;
    const atomic_int *const stop = w->run->hooks.stop;
    report->step = w->step;
    report->loss = w->loss;
    report->labels = w->labels;
    report->trace = w->trace;
    report->usage = train_worker_usage(w);
    report->stop = stop == NULL ? 0 : (uint32_t)*stop;
    *reports_out = NULL;
    LAC_TRY(train_sync_gather(w->sync, report, NULL, 0, &reports, &rows));
    *reports_out = reports;
    return LAC_OK;
}

lac_status train_worker_broadcast(train_worker *w)
{
    return train_sync_broadcast(w->sync, &w->decision, NULL, 0);
}

// The signal that asked one of the workers to end, or 0.
static uint32_t stop_of(const train_worker *w, const train_report *reports)
{
    uint32_t stop = 0;
    for (uint32_t k = 0; k < w->world; k++) {
        stop = reports[k].stop > stop ? reports[k].stop : stop;
    }
    return stop;
}

lac_status train_worker_check(train_worker *w)
{
    train_report report = {0};
    const train_report *reports = NULL;
    LAC_TRY(train_worker_gather(w, &report, &reports));
    if (reports != NULL) {
        w->decision.stop = stop_of(w, reports);
        w->decision.loss = 0;
        w->decision.labels = 0;
        for (uint32_t k = 0; k < w->world; k++) {
            w->decision.loss += reports[k].loss;
            w->decision.labels += reports[k].labels;
        }
    }
    return train_worker_broadcast(w);
}

static void report_progress(train_worker *w, train_progress progress)
{
    const train_hooks *const hooks = &w->run->hooks;
    if (w->rank == 0 && hooks->progress != NULL) {
        progress.step = w->step;
        progress.total = w->total_steps;
        progress.epoch = w->step == 0 ? 0 : (w->step - 1) / w->epoch_steps;
        progress.epochs = w->run->plan.epochs;
        progress.payload_bytes =
            train_worker_usage(w).traffic.payload_bytes * w->world;
        hooks->progress(hooks->context, &progress);
    }
}

void train_worker_testing(train_worker *w, uint64_t done, uint64_t total)
{
    report_progress(
        w, (train_progress){
               .loss = (double)NAN,
               .labels_per_second = (double)NAN,
               .tests_done = done,
               .tests = total});
}

void train_worker_searching(
    train_worker *w, double rate, uint64_t done, uint64_t total)
{
    report_progress(
        w, (train_progress){
               .loss = (double)NAN,
               .labels_per_second = (double)NAN,
               .trials_done = done,
               .trials = total,
               .trial_rate = rate});
}

// The step of the next synchronisation, at most the end of the epoch.
static uint64_t next_sync(const train_worker *w, double elapsed)
{
    const uint64_t made = w->step - w->last_step;
    const double step = made == 0 ? INTERVAL : elapsed / (double)made;
    const double count = INTERVAL / fmax(step, 1e-6);
    const uint64_t epoch_end = (w->step / w->epoch_steps + 1) * w->epoch_steps;
    const uint64_t next = w->step + (count < 1 ? 1 : (uint64_t)count);
    return next < epoch_end ? next : epoch_end;
}

// Worker 0 sums the reports and decides.
static void decide(train_worker *w, const train_report *reports)
{
    double loss = 0;
    uint64_t labels = 0;
    train_decision decision = {.stop = stop_of(w, reports)};
    for (uint32_t k = 0; k < w->world; k++) {
        loss += reports[k].loss;
        labels += reports[k].labels;
    }
    const double time = loop_now(w);
    const double elapsed = time - w->last_time;
    decision.next = next_sync(w, elapsed);
    // A run that resumes within an epoch starts with the counts of its
    // checkpoint.
    if (w->step > w->last_step && labels > w->last_labels) {
        const double seen = (double)(labels - w->last_labels);
        report_progress(
            w, (train_progress){
                   .loss = (loss - w->last_loss) / seen,
                   .labels_per_second = seen / elapsed});
    }
    w->last_time = time;
    w->last_step = w->step;
    w->last_loss = loss;
    w->last_labels = labels;
    w->decision = decision;
}

static lac_status loop_synchronise(train_worker *w)
{
    train_report report = {0};
    const train_report *reports = NULL;
    LAC_TRY(train_worker_gather(w, &report, &reports));
    if (reports != NULL) {
        decide(w, reports);
    }
    return train_worker_broadcast(w);
}

static bool ended_epoch(const train_worker *w)
{
    return w->step % w->epoch_steps == 0;
}

static bool test_is_due(const train_worker *w)
{
    return w->step == w->total_steps ||
           (w->test_every != 0 && w->step % w->test_every == 0);
}

// Called before the step after an epoch or a test: the checkpoint at its end
// still contains its loss.
static void reset_loss(train_worker *w)
{
    w->loss = w->last_loss = 0;
    w->labels = w->last_labels = 0;
}

// Gradient algorithms have no topology, nor has outer over one of them.
static train_identity loop_identity(const train_worker *w)
{
    const train_plan *const p = &w->run->plan;
    const bool model = w->run->result.facts.family == LAC_FAMILY_MODEL;
    return (train_identity){
        .model = p->model,
        .data = data_set_info(p->set)->name,
        .algorithm = p->algorithm.spec,
        .compressor = p->algorithm.compressor,
        .topology = model ? p->topology : NULL,
        .workers = w->world,
        .seed = p->seed,
    };
}

static double epochs_done(const train_worker *w)
{
    return (double)w->step / (double)w->epoch_steps;
}

// What a worker other than 0 knows after a test.
static void report_passed(const train_worker *w)
{
    const train_hooks *const hooks = &w->run->hooks;
    if (hooks->passed != NULL && w->origin.apart != 0) {
        hooks->passed(
            hooks->context, epochs_done(w),
            w->labels == 0 ? (double)NAN : w->loss / (double)w->labels);
    }
}

// Worker 0 stores the metrics of a test and reports them.
static lac_status record_metrics(
    train_worker *w, train_metrics *metrics, bool append)
{
    train_result *const result = &w->run->result;
    const train_hooks *const hooks = &w->run->hooks;
    const char *const folder = w->run->plan.folder;
    metrics->epoch = epochs_done(w);
    metrics->step = w->step;
    metrics->rate = train_rate(
        &w->schedule, w->step == 0 ? 0 : w->step - 1, w->epoch_steps);
    metrics->identity = loop_identity(w);
    result->metrics = *metrics;
    result->tested = true;
    if (hooks->tested != NULL) {
        hooks->tested(hooks->context, metrics);
    }
    return append ? train_checkpoint_explain(
                        folder, train_metrics_append(folder, metrics))
                  : LAC_OK;
}

// Evaluates the models and records the metrics, unless the run is asked to
// stop.
static lac_status test_models(train_worker *w, bool append)
{
    train_metrics metrics = {0};
    LAC_TRY(train_worker_test(w, &metrics));
    if (w->untested) {
        return LAC_OK;
    }
    if (w->rank == 0) {
        LAC_TRY(record_metrics(w, &metrics, append));
    } else {
        report_passed(w);
    }
    if (append && w->run->plan.tests.spectra) {
        LAC_TRY(train_worker_differences(w));
    }
    w->last_time = loop_now(w);
    return w->decision.diverged == 0
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "the run diverges: after step %" PRIu64
                     " a model has no finite loss on the test set; try a "
                     "smaller --lr or --warmup",
                     w->step);
}

static bool checkpoint_is_due(const train_worker *w)
{
    const uint64_t every = w->run->plan.checkpoint_every;
    return ended_epoch(w) || w->decision.stop != 0 ||
           (every != 0 && w->step % every == 0);
}

static void limit_steps(uint64_t *until, uint64_t step, uint64_t every)
{
    const uint64_t next = every == 0 ? *until : (step / every + 1) * every;
    *until = next < *until ? next : *until;
}

// The next step after which the loop may have something to do.
static uint64_t next_pause(const train_worker *w)
{
    uint64_t until = w->total_steps;
    limit_steps(&until, w->step, w->epoch_steps);
    limit_steps(&until, w->step, w->test_every);
    limit_steps(&until, w->step, w->run->plan.checkpoint_every);
    const uint64_t next = w->decision.next;
    return next > w->step && next < until ? next : until;
}

// Makes the test that a stop had ended. The checkpoint of its step is written
// again, now as tested.
static lac_status make_up_test(train_worker *w)
{
    LAC_TRY(test_models(w, true));
    return w->untested ? LAC_OK : train_worker_save(w);
}

static lac_status run_steps(train_worker *w)
{
    LAC_TRY(loop_synchronise(w));
    // A resumed run has a checkpoint already.
    if (w->decision.stop != 0 && w->step == 0) {
        return train_worker_save(w);
    }
    if (w->untested) {
        LAC_TRY(make_up_test(w));
    }
    while (w->step < w->total_steps && w->decision.stop == 0) {
        if (ended_epoch(w) || test_is_due(w)) {
            reset_loss(w);
        }
        LAC_TRY(train_worker_step(w, next_pause(w)));
        if (w->step == w->total_steps) {
            LAC_TRY(train_worker_last_round(w));
        }
        if (w->step == w->decision.next || ended_epoch(w) || test_is_due(w)) {
            LAC_TRY(loop_synchronise(w));
        }
        if (test_is_due(w)) {
            LAC_TRY(test_models(w, true));
        }
        if (checkpoint_is_due(w)) {
            LAC_TRY(train_worker_save(w));
        }
    }
    return LAC_OK;
}

static bool is_complete(const train_worker *w)
{
    return w->step >= w->total_steps && !w->untested;
}

static lac_status run_all(train_worker *w)
{
    LAC_TRY(train_worker_open(w));
    LAC_TRY(train_worker_start(w));
    if (isnan(w->origin.rate)) { // a stop ended the search
        return LAC_OK;
    }
    w->started = w->last_time = loop_now(w);
    w->last_step = w->step;
    const bool was_complete = is_complete(w);
    LAC_TRY(run_steps(w));
    if (was_complete) {
        LAC_TRY(test_models(w, false)); // evaluate a finished run again
    }
    return is_complete(w) ? train_worker_export(w) : LAC_OK;
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
    train_mark_remove(&w->mark); // after a failure
    // Only processes write their own result: threads have that of worker 0.
    if (rank == 0 || w->origin.apart != 0) {
        run->result.here = rank == 0;
        run->result.owner = w->owner;
        run->result.interrupted = status == LAC_OK && !is_complete(w);
        run->result.stop = w->decision.stop;
        run->result.searching = isnan(w->origin.rate);
    }
    if (rank == 0) {
        run->result.seconds = train_worker_elapsed(w);
        run->result.seconds_before = w->elapsed_before;
        if (w->algorithm != NULL) {
            run->result.uncompressed_bytes = train_uncompressed_bytes(
                run->result.facts.family, run->plan.algorithm.topology, w->n,
                w->step);
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
