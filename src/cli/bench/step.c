// SPDX-License-Identifier: MIT
// Whole steps of algorithms. The workers share their gradients, and only the
// measured one, worker 0, has a local update of its model, so that each of the
// others needs little memory. The update keeps the models apart: equal ones
// would have differences of zero, or of subnormal numbers, which are slow.
#include "cli/bench/step.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench/compressor.h"
#include "cli/bench/turns.h"
#include "cli/launch/threads.h"
#include "cli/report/table.h"

enum {
    // Rounds before the first measured one: algorithms with two sets of buffers
    // have then used both.
    WARMUP_ROUNDS = 3,
};

// A worker waits until all others have computed, one after the other.
#define STEP_TIMEOUT 1e8

bool cli_bench_is_algorithm(const char *spec)
{
    const size_t len = strcspn(spec, ":+");
    size_t count;
    const lac_plugin *const *const plugins = lac_algorithms(&count);
    for (size_t i = 0; i < count; i++) {
        if (strlen(plugins[i]->name) == len &&
            strncmp(plugins[i]->name, spec, len) == 0) {
            return true;
        }
    }
    return false;
}

static lac_algorithm_options options_of(
    const cli_bench_step *step, const cli_bench_step_options *options,
    const lac_topology *topology)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = step->spec;
    o.compressor = step->compressor;
    o.layout = options->layout;
    o.topology = topology;
    o.seed = options->seed;
    o.timeout = STEP_TIMEOUT;
    o.timing = true;
    o.threads = options->threads;
    return o;
}

// Writes the cost for worker 0 of a star, or for any of `workers` that average
// gradients.
static lac_status step_cost(
    const cli_bench_step *step, const cli_bench_step_options *options,
    uint32_t workers, lac_cost *out)
{
    lac_topology *topology = NULL;
    LAC_TRY(lac_topology_open(&topology, "star", workers, options->seed));
    const lac_algorithm_options o = options_of(step, options, topology);
    const lac_status status = lac_algorithm_cost(&o, out);
    lac_topology_close(topology);
    return status;
}

lac_status cli_bench_step_check(
    cli_bench_step *step, const cli_bench_step_options *options)
{
    const uint32_t degree = options->degree;
    lac_cost cost;
    LAC_TRY(step_cost(step, options, degree == 0 ? 2 : degree + 1, &cost));
    step->values = lac_layout_values(options->layout);
    step->family = (cost.flags & LAC_COST_LOCAL_STEPS) != 0
                       ? LAC_FAMILY_MODEL
                       : LAC_FAMILY_GRADIENT;
    step->degree = degree == 0 && cost.family == LAC_FAMILY_MODEL ? 1 : degree;
    step->payload_bytes = cost.payload_bytes;
    return LAC_OK;
}

static double machine_memory(void)
{
    double pages = 0;
#ifdef _SC_PHYS_PAGES
    pages = (double)sysconf(_SC_PHYS_PAGES);
#endif
    return pages * (double)sysconf(_SC_PAGESIZE);
}

// Fails if the workers would fill the memory: the system would end this
// program, or others.
static lac_status check_memory(
    const cli_bench_step *step, const cli_bench_step_options *options)
{
    char need[CLI_BYTES_SIZE], have[CLI_BYTES_SIZE];
    const bool gossip = step->family == LAC_FAMILY_MODEL;
    const uint32_t others = step->degree;
    const double model = sizeof(float) * (double)step->values;
    lac_cost measured, other;
    LAC_TRY(step_cost(step, options, others + 1, &measured));
    LAC_TRY(step_cost(step, options, gossip ? 2 : others + 1, &other));
    const double total = 2 * model + (double)measured.memory_bytes +
                         others * (double)other.memory_bytes +
                         (gossip ? (others + 1) * model : 0);
    const double memory = machine_memory();
    return memory <= 0 || total < memory
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_NOMEM,
                     "bench: %s with %u other workers needs %s of memory, this "
                     "machine has %s",
                     step->spec, others, cli_bytes(total, need),
                     cli_bytes(memory, have));
}

// One worker, and its model or the gradients of all.
typedef struct worker {
    cli_turn turn;
    lac_algorithm *a;
    float *values; // of the model, which rounds change; NULL for gradients
    lac_slice *slices;
    const float **updates;
    size_t count; // of slices
} worker;

// One measurement; the context of its workers.
typedef struct measurement {
    cli_bench_step *step;
    const cli_bench_step_options *options;
    lac_topology *topology; // NULL for gradients
    cli_bench bench;
    double *times; // of the steps
    pthread_mutex_t turns;
    worker *workers;
} measurement;

static lac_status step_no_memory(const measurement *m)
{
    return lac_fail(
        LAC_ERR_NOMEM, "bench: no memory for %zu values", m->step->values);
}

static lac_status step_allocate(const measurement *m, worker *w)
{
    const bool is_model = m->step->family == LAC_FAMILY_MODEL;
    w->count = lac_layout_count(m->options->layout);
    w->slices = calloc(w->count, sizeof(*w->slices));
    w->updates = calloc(w->count, sizeof(*w->updates));
    w->values = is_model ? calloc(m->step->values, sizeof(float)) : NULL;
    return w->slices == NULL || w->updates == NULL ||
                   (is_model && w->values == NULL)
               ? step_no_memory(m)
               : LAC_OK;
}

// Gradients are reduced from x to y. A model starts as x, and its local update
// is y.
static lac_status start_worker(const measurement *m, worker *w)
{
    const bool is_model = w->values != NULL;
    for (size_t i = 0; i < w->count; i++) {
        const size_t offset = lac_layout_tensor(m->options->layout, i)->offset;
        float *const in = (is_model ? w->values : m->bench.x) + offset;
        float *const out = (is_model ? w->values : m->bench.y) + offset;
        w->slices[i] = (lac_slice){i, LAC_F32, in, out};
        w->updates[i] = m->bench.y + offset;
    }
    if (!is_model) {
        return LAC_OK;
    }
    memcpy(w->values, m->bench.x, m->bench.n * sizeof(float));
    return lac_algorithm_start(w->a, w->slices, w->count);
}

static lac_status open_step_worker(const measurement *m, worker *w)
{
    lac_algorithm_options o = options_of(m->step, m->options, m->topology);
    o.transport = w->turn.outer;
    LAC_TRY(lac_algorithm_open(&w->a, &o));
    LAC_TRY(lac_algorithm_use_kernels(w->a, m->options->kernels));
    LAC_TRY(step_allocate(m, w));
    return start_worker(m, w);
}

static lac_status step_round(worker *w, uint64_t round)
{
    const bool measured = lac_transport_rank(w->turn.outer) == 0;
    return w->values == NULL
               ? lac_algorithm_reduce(w->a, round, w->slices, w->count)
               : lac_algorithm_mix(
                     w->a, round, w->slices, measured ? w->updates : NULL,
                     w->count);
}

// The time that the worker waits for the others does not count.
static lac_status time_round(
    const measurement *m, worker *w, uint64_t round, cli_bench_time *out)
{
    const double waited = lac_algorithm_waited(w->a);
    out->memcpy = cli_bench_memcpy(&m->bench, m->bench.n * sizeof(float));
    cli_bench_flush_caches(&m->bench);
    const double begun = cli_bench_now();
    LAC_TRY(step_round(w, round));
    out->seconds =
        cli_bench_now() - begun - (lac_algorithm_waited(w->a) - waited);
    return LAC_OK;
}

static lac_status measure_worker(measurement *m, worker *w)
{
    const size_t runs = m->bench.runs;
    cli_bench_time once;
    for (size_t round = 0; round < WARMUP_ROUNDS + runs; round++) {
        LAC_TRY(time_round(m, w, round, &once));
        if (round >= WARMUP_ROUNDS) {
            m->bench.times[round - WARMUP_ROUNDS] = once.memcpy;
            m->times[round - WARMUP_ROUNDS] = once.seconds;
        }
    }
    m->step->memcpy = cli_bench_median(m->bench.times, runs);
    m->step->seconds = cli_bench_median(m->times, runs);
    return LAC_OK;
}

static lac_status run_rounds(const measurement *m, worker *w)
{
    for (size_t round = 0; round < WARMUP_ROUNDS + m->bench.runs; round++) {
        LAC_TRY(step_round(w, round));
    }
    return LAC_OK;
}

static lac_status step_work(void *context, lac_transport *transport)
{
    measurement *const m = context;
    const uint32_t rank = lac_transport_rank(transport);
    worker *const w = &m->workers[rank];
    LAC_TRY(cli_turn_join(&w->turn, &m->turns, transport));
    lac_status status = open_step_worker(m, w);
    if (status == LAC_OK) {
        status = rank == 0 ? measure_worker(m, w) : run_rounds(m, w);
    }
    cli_turn_end(&w->turn);
    return status;
}

static void step_release(void *context, uint32_t rank)
{
    worker *const w = &((measurement *)context)->workers[rank];
    lac_algorithm_close(w->a);
    cli_turn_leave(&w->turn);
    free(w->values);
    free(w->slices);
    free(w->updates);
    *w = (worker){0};
}

static lac_status run_workers(measurement *m)
{
    static const cli_workers workers = {
        .work = step_work, .release = step_release};
    const cli_bench_step_options *const o = m->options;
    const uint32_t count = m->step->degree + 1;
    LAC_TRY(cli_bench_init(&m->bench, m->step->values, o->runs, o->seed));
    m->times = calloc(o->runs, sizeof(*m->times));
    m->workers = calloc(count, sizeof(*m->workers));
    if (m->times == NULL || m->workers == NULL) {
        return step_no_memory(m);
    }
    if (m->step->family == LAC_FAMILY_MODEL) {
        LAC_TRY(lac_topology_open(&m->topology, "star", count, o->seed));
    }
    return cli_run_threads(&workers, m, "local", count);
}

lac_status cli_bench_step_measure(
    cli_bench_step *step, const cli_bench_step_options *options)
{
    measurement m = {
        .step = step,
        .options = options,
        .turns = PTHREAD_MUTEX_INITIALIZER,
    };
    LAC_TRY(check_memory(step, options));
    const lac_status status = run_workers(&m);
    lac_topology_close(m.topology);
    free(m.workers);
    free(m.times);
    cli_bench_fini(&m.bench);
    return status;
}
