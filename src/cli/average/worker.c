// SPDX-License-Identifier: MIT
// The workers of `laconic average`.
//
// The workers synchronise before the first round, after the last, after every
// traced round, and otherwise every few rounds. Worker 0, the coordinator, then
// measures the distance to the mean and stops a run whose values diverge. All
// workers stop after the same round, while algorithms and compressors can still
// handle the values.
//
// A run that is only timed has no synchronisation between its rounds. Worker 0
// then starts one latency before the others, which receive its decision, so its
// rounds take longer; hence the median over workers.
#include "cli/average/worker.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/average/distance.h"
#include "cli/average/initial.h"
#include "cli/report/progress.h"
#include "train/pause.h"
#include "train/sync.h"

// Growth over the initial values from which the workers synchronise after every
// round.
#define GROWTH_SUSPECT 1e3

enum { INTERVAL_MAX = 8 }; // rounds

// What each worker sends to the coordinator.
typedef struct report {
    double magnitude; // of its largest value; infinite if one is NaN
    double seconds;   // in rounds
    lac_traffic traffic;
} report;

// What the coordinator sends to each worker.
typedef struct decision {
    uint64_t next;        // synchronise again after so many rounds
    uint32_t with_values; // and send the values too
    uint32_t stop;        // run no further round
} decision;

// The state that only worker 0 needs.
typedef struct coordinator {
    double *mean;    // of the initial values
    double *seconds; // of the workers, in rounds
    double initial_magnitude;
    uint64_t interval;  // rounds between synchronisations
    double start, last; // times of the start and of the last synchronisation
    cli_progress progress;
} coordinator;

struct cli_average_worker {
    cli_average *run;
    lac_transport *transport;
    uint32_t rank;
    size_t n;
    const float *initial; // X_i
    float *own;           // storage of X_i if it is not part of the input
    float *x;             // the worker's value
    float *reduced;       // gradient algorithms: the result of a round
    double *sum;          // gradient algorithms: the sum over all rounds
    lac_slice *slices;    // of a round, one per tensor
    size_t tensors;
    double seconds; // in rounds
    lac_algorithm *algorithm;
    train_sync *sync;
    coordinator coordinator;
};

static bool is_model(const cli_average_worker *w)
{
    return lac_algorithm_family(w->algorithm) == LAC_FAMILY_MODEL;
}

static lac_status average_allocate(cli_average_worker *w)
{
    const size_t room = w->n == 0 ? 1 : w->n;
    const bool gradient = !is_model(w);
    const bool measured = !w->run->time_only;
    w->x = calloc(room, sizeof(float));
    w->tensors = lac_layout_count(w->run->algorithm.layout);
    w->slices = calloc(w->tensors, sizeof(*w->slices));
    bool good = w->x != NULL && w->slices != NULL;
    if (gradient) {
        w->reduced = calloc(room, sizeof(float));
        good = good && w->reduced != NULL;
    }
    if (gradient && measured) {
        w->sum = calloc(room, sizeof(double));
        good = good && w->sum != NULL;
        if (w->run->input == NULL) {
            w->own = calloc(room, sizeof(float));
            good = good && w->own != NULL;
        }
    }
    if (w->rank == 0) {
        coordinator *const c = &w->coordinator;
        c->mean = calloc(measured ? room : 1, sizeof(double));
        c->seconds = calloc(w->run->world, sizeof(double));
        good = good && c->mean != NULL && c->seconds != NULL;
    }
    return good
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_NOMEM, "no memory for the %zu values of worker %u",
                     w->n, w->rank);
}

static lac_status draw_initial(cli_average_worker *w)
{
    const lac_algorithm_options *const o = &w->run->algorithm;
    if (w->run->low_rank > 0) {
        return cli_initial_low_rank(
            o->seed, w->rank, lac_layout_tensor(o->layout, 0)->shape,
            w->run->low_rank, w->x);
    }
    cli_initial_normal(o->seed, w->rank, w->x, w->n);
    return LAC_OK;
}

// Sets x to X_i. Gradient algorithms need X_i in every round, so they keep it.
// In a run that is only timed x does not change.
static lac_status set_initial(cli_average_worker *w)
{
    const cli_average *const run = w->run;
    if (run->input != NULL) {
        w->initial = run->input + w->rank * w->n;
        memcpy(w->x, w->initial, w->n * sizeof(float));
        return LAC_OK;
    }
    LAC_TRY(draw_initial(w));
    w->initial = w->x;
    if (w->own != NULL) {
        memcpy(w->own, w->x, w->n * sizeof(float));
        w->initial = w->own;
    }
    return LAC_OK;
}

// A model algorithm replaces x. A gradient algorithm reduces X_i.
static void set_slices(cli_average_worker *w)
{
    const lac_layout *const layout = w->run->algorithm.layout;
    const float *const in = is_model(w) ? w->x : w->initial;
    float *const out = is_model(w) ? w->x : w->reduced;
    for (size_t t = 0; t < w->tensors; t++) {
        const size_t offset = lac_layout_tensor(layout, t)->offset;
        w->slices[t] = (lac_slice){t, LAC_F32, in + offset, out + offset};
    }
}

static lac_status open_average_worker(cli_average_worker *w)
{
    lac_algorithm_options options = w->run->algorithm;
    options.transport = w->transport;
    LAC_TRY(lac_algorithm_open(&w->algorithm, &options));
    LAC_TRY(average_allocate(w));
    LAC_TRY(train_sync_open(
        &w->sync, &(train_sync_options){
                      .transport = w->transport,
                      .report_size = sizeof(report),
                      .decision_size = sizeof(decision),
                      .timeout = options.timeout,
                  }));
    LAC_TRY(set_initial(w));
    set_slices(w);
    return is_model(w)
               ? lac_algorithm_start(w->algorithm, w->slices, w->tensors)
               : LAC_OK;
}

// One round of a gradient algorithm: every worker contributes its X_i again,
// and its value is the mean of all results so far, unless it is only timed.
static lac_status average_reduce(cli_average_worker *w, uint64_t round)
{
    LAC_TRY(lac_algorithm_reduce(w->algorithm, round, w->slices, w->tensors));
    for (size_t i = 0; w->sum != NULL && i < w->n; i++) {
        w->sum[i] += (double)w->reduced[i];
        w->x[i] = (float)(w->sum[i] / (double)(round + 1));
    }
    return LAC_OK;
}

static lac_status average_round(cli_average_worker *w, uint64_t round)
{
    const double start = lac_transport_now(w->transport);
    train_pause(w->run->step_time);
    if (is_model(w)) {
        LAC_TRY(lac_algorithm_mix(
            w->algorithm, round, w->slices, NULL, w->tensors));
    } else {
        LAC_TRY(average_reduce(w, round));
    }
    w->seconds += lac_transport_now(w->transport) - start;
    return LAC_OK;
}

static int compare_seconds(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The median over workers of the seconds in rounds.
static double median_seconds(cli_average_worker *w, const report *reports)
{
    const uint32_t world = w->run->world;
    double *const seconds = w->coordinator.seconds;
    for (uint32_t k = 0; k < world; k++) {
        seconds[k] = reports[k].seconds;
    }
    qsort(seconds, world, sizeof(*seconds), compare_seconds);
    return seconds[(world - 1) / 2];
}

// Sums the traffic and returns the largest magnitude of all workers.
static double combine_reports(cli_average_worker *w, const report *reports)
{
    cli_average_result *const result = &w->run->result;
    double largest = 0;
    result->traffic = (lac_traffic){0};
    for (uint32_t k = 0; k < w->run->world; k++) {
        result->traffic.payload_bytes += reports[k].traffic.payload_bytes;
        result->traffic.wire_bytes += reports[k].traffic.wire_bytes;
        result->traffic.messages += reports[k].traffic.messages;
        largest = fmax(largest, reports[k].magnitude);
    }
    return largest;
}

// Keeps an error for the plot. Rounds that share a place leave the last one.
static void keep_error(cli_average *run, uint64_t done)
{
    const double part =
        run->rounds == 0 ? 0 : (double)done / (double)run->rounds;
    run->result.curve[(size_t)(part * (CLI_AVERAGE_CURVE - 1))] =
        run->result.final_error;
}

static void measure_rows(
    cli_average_worker *w, uint64_t done, const float *const *rows)
{
    const cli_average *const run = w->run;
    cli_average_result *const result = &w->run->result;
    cli_distance(
        rows, run->world, w->n, w->coordinator.mean, &result->final_error,
        &result->mean_drift);
    if (done == 0) {
        result->initial_error = result->final_error;
    }
    if (run->trace != NULL) {
        keep_error(w->run, done);
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

// Returns the number of rounds until the next synchronisation. It doubles while
// the values do not grow and the rounds take less than `quick` seconds, so that
// no worker waits long for another.
static uint64_t choose_interval(
    coordinator *c, double largest, double now, double quick)
{
    const bool calm = largest <= GROWTH_SUSPECT * c->initial_magnitude &&
                      now - c->last < quick;
    c->interval = !calm                         ? 1
                  : c->interval >= INTERVAL_MAX ? INTERVAL_MAX
                                                : 2 * c->interval;
    c->last = now;
    return c->interval;
}

// What the coordinator does with the reports after `done` rounds.
static decision coordinate(
    cli_average_worker *w, uint64_t done, const report *reports,
    const float *const *rows)
{
    const cli_average *const run = w->run;
    coordinator *const c = &w->coordinator;
    cli_average_result *const result = &w->run->result;
    const double largest = combine_reports(w, reports);
    const double now = lac_transport_now(w->transport);
    if (done == 0) {
        c->initial_magnitude = largest;
        c->interval = 1;
    }
    if (done == 0 && !run->time_only) {
        cli_mean(rows, run->world, w->n, c->mean);
    }
    result->rounds = done;
    result->seconds = now - c->start;
    result->round_seconds =
        done == 0 ? 0 : median_seconds(w, reports) / (double)done;
    result->diverged = done > 0 && cli_diverged(c->initial_magnitude, largest);
    if (rows[0] != NULL) {
        measure_rows(w, done, rows);
    }
    const uint64_t interval = choose_interval(
        c, largest, now, run->algorithm.timeout / (2 * INTERVAL_MAX));
    const uint64_t left = run->rounds - done;
    const bool traced = run->trace != NULL;
    const uint64_t ahead = traced ? 1 : run->time_only ? left : interval;
    return (decision){
        .next = done + (ahead < left ? ahead : left),
        .with_values = !run->time_only && (traced || ahead >= left),
        .stop = result->diverged,
    };
}

static lac_status synchronise(
    cli_average_worker *w, uint64_t done, bool with_values, decision *out)
{
    const report own = {
        .magnitude = cli_magnitude(w->x, w->n),
        .seconds = w->seconds,
        .traffic = lac_algorithm_traffic(w->algorithm),
    };
    const void *reports = NULL;
    const float *const *rows = NULL;
    LAC_TRY(train_sync_gather(
        w->sync, &own, with_values ? w->x : NULL, w->n, &reports, &rows));
    if (reports != NULL) {
        *out = coordinate(w, done, reports, rows);
    }
    return train_sync_broadcast(w->sync, out, NULL, 0);
}

static lac_status average_rounds(cli_average_worker *w)
{
    decision decided = {0};
    uint64_t done = 0;
    bool with_values = !w->run->time_only;
    LAC_TRY(synchronise(w, done, with_values, &decided));
    while (done < w->run->rounds && decided.stop == 0) {
        if (w->rank == 0) {
            cli_progress_step(&w->coordinator.progress, done, w->run->progress);
        }
        LAC_TRY(average_round(w, done++));
        if (done == decided.next) {
            with_values = decided.with_values != 0;
            LAC_TRY(synchronise(w, done, with_values, &decided));
        }
    }
    // The coordinator has not received the last values of a stopped run.
    return decided.stop != 0 && !with_values && !w->run->time_only
               ? synchronise(w, done, true, &decided)
               : LAC_OK;
}

static void finish_result(cli_average_worker *w)
{
    cli_average_result *const result = &w->run->result;
    const char *const warning = lac_algorithm_warning(w->algorithm);
    result->here = true;
    if (w->run->time_only) {
        result->initial_error = (double)NAN;
    }
    if (result->diverged || w->run->time_only) {
        // The errors of the round that stopped it mean nothing.
        result->final_error = (double)NAN;
        result->mean_drift = (double)NAN;
    }
    result->gamma = lac_algorithm_gamma(w->algorithm);
    result->family = lac_algorithm_family(w->algorithm);
    if (warning != NULL) {
        (void)snprintf(result->warning, sizeof(result->warning), "%s", warning);
    }
}

static lac_status run_average_worker(cli_average_worker *w)
{
    LAC_TRY(open_average_worker(w));
    return average_rounds(w);
}

lac_status cli_average_work(cli_average *run, lac_transport *transport)
{
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
    w->coordinator.start = w->coordinator.last = lac_transport_now(transport);
    if (rank == 0) {
        w->coordinator.progress = cli_progress_begin(run->rounds);
    }
    const lac_status status = run_average_worker(w);
    if (rank == 0) {
        cli_progress_end(&w->coordinator.progress);
    }
    if (status == LAC_OK && rank == 0) {
        finish_result(w);
    }
    return status;
}

void cli_average_release(cli_average *run, uint32_t rank)
{
    cli_average_worker *const w = run->workers[rank];
    run->workers[rank] = NULL;
    if (w == NULL) {
        return;
    }
    train_sync_close(w->sync);
    lac_algorithm_close(w->algorithm);
    free(w->coordinator.seconds);
    free(w->coordinator.mean);
    free(w->slices);
    free(w->sum);
    free(w->reduced);
    free(w->own);
    free(w->x);
    free(w);
}
