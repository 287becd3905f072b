// SPDX-License-Identifier: MIT
// The workers of `laconic average`.
//
// They meet (sync.h) before the first round, after the last, after every
// round that is traced, and otherwise every few rounds, so that a run whose
// values grow without end is stopped on all workers after the same round, while
// its numbers are still numbers that algorithms and compressors can handle.
#include "cli/average.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/distance.h"
#include "cli/progress.h"
#include "train/sync.h"

// A worker whose values have grown this much needs watching; one with values
// like these, or this much larger than all were at the start, has diverged.
#define GROWTH_SUSPECT 1e3
#define GROWTH_LIMIT   1e6
#define DIVERGED       1e30

enum { INTERVAL_MOST = 8 };

// What a worker says at a meeting.
typedef struct report {
    double magnitude; // of its largest value; infinite also for NaN
    lac_traffic traffic;
} report;

// What worker 0 decides.
typedef struct verdict {
    uint64_t next;        // meet again when so many rounds are done
    uint32_t with_values; // and bring your values
    uint32_t stop;        // no round follows
} verdict;

// What worker 0 needs beyond the others.
typedef struct chair {
    double *mean; // of the initial values
    double initial_magnitude;
    uint64_t interval;
    double begun, last; // when the run began and the last meeting was
    cli_progress progress;
} chair;

struct cli_average_worker {
    cli_average *run;
    lac_transport *transport;
    uint32_t rank;
    size_t n;
    const float *start; // X_i
    float *own;         // room for X_i unless it is part of the input
    float *x;           // the worker's value
    float *reduced;     // gradient algorithms: the result of a round
    double *sum;        // and of all rounds
    lac_algorithm *algorithm;
    train_sync *sync;
    chair chair;
};

static void fill_normal(
    const cli_average *run, uint32_t rank, float *x, size_t n)
{
    const lac_key key = lac_key_make(
        run->algorithm.seed, LAC_PURPOSE_DATA, 0, lac_scope_worker(rank), 0);
    for (size_t i = 0; i < n; i++) {
        x[i] = lac_key_normal(&key, (uint32_t)i);
    }
}

static bool is_model(const cli_average_worker *w)
{
    return lac_algorithm_family(w->algorithm) == LAC_FAMILY_MODEL;
}

static lac_status allocate(cli_average_worker *w)
{
    const size_t room = w->n == 0 ? 1 : w->n;
    const bool gradient = !is_model(w);
    w->x = calloc(room, sizeof(float));
    bool good = w->x != NULL;
    if (gradient) {
        w->reduced = calloc(room, sizeof(float));
        w->sum = calloc(room, sizeof(double));
        good = good && w->reduced != NULL && w->sum != NULL;
        if (w->run->input == NULL) {
            w->own = calloc(room, sizeof(float));
            good = good && w->own != NULL;
        }
    }
    if (w->rank == 0) {
        w->chair.mean = calloc(room, sizeof(double));
        good = good && w->chair.mean != NULL;
    }
    return good
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_NOMEM, "no memory for the %zu values of worker %u",
                     w->n, w->rank);
}

// x = X_i, and for gradient algorithms X_i is kept.
static void take_start(cli_average_worker *w)
{
    const cli_average *const run = w->run;
    if (run->input != NULL) {
        w->start = run->input + w->rank * w->n;
        memcpy(w->x, w->start, w->n * sizeof(float));
        return;
    }
    fill_normal(run, w->rank, w->x, w->n);
    if (w->own != NULL) {
        memcpy(w->own, w->x, w->n * sizeof(float));
        w->start = w->own;
    }
}

static lac_status open_worker(cli_average_worker *w)
{
    lac_algorithm_options options = w->run->algorithm;
    options.transport = w->transport;
    lac_status status = lac_algorithm_open(&w->algorithm, &options);
    if (status == LAC_OK) {
        status = allocate(w);
    }
    if (status == LAC_OK) {
        status = train_sync_open(
            &w->sync, &(train_sync_options){
                             .transport = w->transport,
                             .report_size = sizeof(report),
                             .decision_size = sizeof(verdict),
                             .timeout = options.timeout,
                         });
    }
    if (status == LAC_OK) {
        take_start(w);
        const lac_slice slice = {0, LAC_F32, w->x, w->x};
        status =
            is_model(w) ? lac_algorithm_start(w->algorithm, &slice, 1) : LAC_OK;
    }
    return status;
}

// One round of a gradient algorithm: everybody gives its X_i again, and its
// value is the mean of what came out so far.
static lac_status reduce(cli_average_worker *w, uint64_t round)
{
    const lac_slice slice = {0, LAC_F32, w->start, w->reduced};
    const lac_status status =
        lac_algorithm_reduce(w->algorithm, round, &slice, 1);
    for (size_t i = 0; i < w->n && status == LAC_OK; i++) {
        w->sum[i] += (double)w->reduced[i];
        w->x[i] = (float)(w->sum[i] / (double)(round + 1));
    }
    return status;
}

static lac_status run_round(cli_average_worker *w, uint64_t round)
{
    if (!is_model(w)) {
        return reduce(w, round);
    }
    const lac_slice slice = {0, LAC_F32, w->x, w->x};
    return lac_algorithm_mix(w->algorithm, round, &slice, NULL, 1);
}

static double take_reports(cli_average_worker *w, const report *reports)
{
    cli_average_result *const result = &w->run->result;
    double most = 0;
    result->traffic = (lac_traffic){0};
    for (uint32_t k = 0; k < w->run->world; k++) {
        result->traffic.payload_bytes += reports[k].traffic.payload_bytes;
        result->traffic.wire_bytes += reports[k].traffic.wire_bytes;
        result->traffic.messages += reports[k].traffic.messages;
        most = fmax(most, reports[k].magnitude);
    }
    return most;
}

static void take_rows(
    cli_average_worker *w, uint64_t done, const float *const *rows)
{
    const cli_average *const run = w->run;
    cli_average_result *const result = &w->run->result;
    cli_distance(
        rows, run->world, w->n, w->chair.mean, &result->final_error,
        &result->mean_drift);
    if (done == 0) {
        result->initial_error = result->final_error;
    }
    if (run->trace != NULL) {
        (void)fprintf(
            run->trace, "%" PRIu64 ",%.17g,%.17g,%" PRIu64 "\n", done,
            result->final_error, result->mean_drift,
            result->traffic.payload_bytes);
    }
    const bool last = done == run->rounds || result->diverged;
    for (uint32_t k = 0; last && run->values_out != NULL && k < run->world;
         k++) {
        memcpy(run->values_out + k * w->n, rows[k], w->n * sizeof(float));
    }
}

// How many rounds until the next meeting: more and more as long as nothing
// grows and they are quick, so that nobody waits long for the others.
static uint64_t choose_interval(
    chair *c, double most, double now, double patience)
{
    const bool calm = most <= GROWTH_SUSPECT * c->initial_magnitude &&
                      now - c->last < patience;
    c->interval = !calm                          ? 1
                  : c->interval >= INTERVAL_MOST ? INTERVAL_MOST
                                                 : 2 * c->interval;
    c->last = now;
    return c->interval;
}

// Worker 0 looks at what it was told after `done` rounds.
static verdict judge(
    cli_average_worker *w, uint64_t done, const report *reports,
    const float *const *rows)
{
    const cli_average *const run = w->run;
    chair *const c = &w->chair;
    cli_average_result *const result = &w->run->result;
    const double most = take_reports(w, reports);
    const double now = lac_transport_now(w->transport);
    if (done == 0) {
        cli_mean(rows, run->world, w->n, c->mean);
        c->initial_magnitude = most;
        c->interval = 1;
    }
    result->rounds = done;
    result->seconds = now - c->begun;
    result->diverged =
        done > 0 && most > fmax(DIVERGED, GROWTH_LIMIT * c->initial_magnitude);
    if (rows[0] != NULL) {
        take_rows(w, done, rows);
    }
    const uint64_t interval = choose_interval(
        c, most, now, run->algorithm.timeout / (2 * INTERVAL_MOST));
    const uint64_t left = run->rounds - done;
    const bool traced = run->trace != NULL;
    const uint64_t ahead = traced ? 1 : interval;
    return (verdict){
        .next = done + (ahead < left ? ahead : left),
        .with_values = traced || ahead >= left,
        .stop = result->diverged,
    };
}

static lac_status meet(
    cli_average_worker *w, uint64_t done, bool with_values, verdict *out)
{
    const report said = {
        .magnitude = cli_magnitude(w->x, w->n),
        .traffic = lac_algorithm_traffic(w->algorithm),
    };
    const void *reports = NULL;
    const float *const *rows = NULL;
    const lac_status status = train_sync_gather(
        w->sync, &said, with_values ? w->x : NULL, w->n, &reports, &rows);
    if (status != LAC_OK) {
        return status;
    }
    if (reports != NULL) {
        *out = judge(w, done, reports, rows);
    }
    return train_sync_broadcast(w->sync, out, NULL, 0);
}

static lac_status run_rounds(cli_average_worker *w)
{
    verdict decided = {0};
    uint64_t done = 0;
    bool with_values = true;
    lac_status status = meet(w, done, with_values, &decided);
    while (status == LAC_OK && done < w->run->rounds && decided.stop == 0) {
        if (w->rank == 0) {
            cli_progress_step(&w->chair.progress, done, "rounds");
        }
        status = run_round(w, done++);
        if (status == LAC_OK && done == decided.next) {
            with_values = decided.with_values != 0;
            status = meet(w, done, with_values, &decided);
        }
    }
    // Worker 0 has not seen what a run that is stopped ends with.
    return status == LAC_OK && decided.stop != 0 && !with_values
               ? meet(w, done, true, &decided)
               : status;
}

static void finish_chair(cli_average_worker *w)
{
    cli_average_result *const result = &w->run->result;
    const char *const warning = lac_algorithm_warning(w->algorithm);
    result->here = true;
    if (result->diverged) {
        // What more rounds would have led to.
        result->final_error = (double)NAN;
        result->mean_drift = (double)NAN;
    }
    result->gamma = lac_algorithm_gamma(w->algorithm);
    result->family = lac_algorithm_family(w->algorithm);
    if (warning != NULL) {
        (void)snprintf(result->warning, sizeof(result->warning), "%s", warning);
    }
}

lac_status cli_average_work(void *average, lac_transport *transport)
{
    cli_average *const run = average;
    const uint32_t rank = lac_transport_rank(transport);
    cli_average_worker *const w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for worker %u", rank);
    }
    run->workers[rank] = w;
    w->run = run;
    w->transport = transport;
    w->rank = rank;
    w->n = lac_layout_values(run->algorithm.layout);
    w->chair.begun = w->chair.last = lac_transport_now(transport);
    if (rank == 0) {
        w->chair.progress = cli_progress_begin(run->rounds);
    }
    lac_status status = open_worker(w);
    if (status == LAC_OK) {
        status = run_rounds(w);
    }
    if (rank == 0) {
        cli_progress_end(&w->chair.progress);
    }
    if (status == LAC_OK && rank == 0) {
        finish_chair(w);
    }
    return status;
}

void cli_average_release(void *average, uint32_t rank)
{
    cli_average *const run = average;
    cli_average_worker *const w = run->workers[rank];
    run->workers[rank] = NULL;
    if (w == NULL) {
        return;
    }
    train_sync_close(w->sync);
    lac_algorithm_close(w->algorithm);
    free(w->chair.mean);
    free(w->sum);
    free(w->reduced);
    free(w->own);
    free(w->x);
    free(w);
}
