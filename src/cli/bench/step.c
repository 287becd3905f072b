// SPDX-License-Identifier: MIT
// Whole steps of algorithms, on the tensors of ResNet-50.
#include "cli/bench/step.h"

#include <stdlib.h>
#include <string.h>

#include "cli/bench/compressor.h"
#include "cli/launch/threads.h"
#include "nn/layouts.h"

enum {
    // Rounds before the first measured one: algorithms with two sets of buffers
    // have then used both.
    WARMUP_ROUNDS = 3,
    NEIGHBOURS = 2, // workers that mix their models
};

static const char model[] = "resnet50";

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

// Two workers that are neighbours. Gradient algorithms ignore the topology.
static lac_status open_network(
    const cli_bench_step_options *options, lac_layout **layout_out,
    lac_topology **topology_out)
{
    *topology_out = NULL;
    LAC_TRY(nn_layout_open(layout_out, model));
    return lac_topology_open(
        topology_out, "complete", NEIGHBOURS, options->seed);
}

static lac_algorithm_options options_of(
    const cli_bench_step *step, const cli_bench_step_options *options,
    const lac_layout *layout, const lac_topology *topology)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = step->spec;
    o.compressor = step->compressor;
    o.layout = layout;
    o.topology = topology;
    o.seed = options->seed;
    o.timing = true;
    return o;
}

lac_status cli_bench_step_check(
    cli_bench_step *step, const cli_bench_step_options *options)
{
    lac_layout *layout = NULL;
    lac_topology *topology = NULL;
    lac_cost cost;
    lac_status status = open_network(options, &layout, &topology);
    if (status == LAC_OK) {
        const lac_algorithm_options o =
            options_of(step, options, layout, topology);
        status = lac_algorithm_cost(&o, &cost);
    }
    if (status == LAC_OK) {
        step->layout = model;
        step->values = lac_layout_values(layout);
        step->payload_bytes = cost.payload_bytes;
        step->workers = cost.family == LAC_FAMILY_GRADIENT ? 1 : NEIGHBOURS;
    }
    lac_topology_close(topology);
    lac_layout_close(layout);
    return status;
}

// The buffers and the algorithm of one worker.
typedef struct worker {
    cli_bench bench;
    lac_algorithm *a;
    float *values; // of the model, which rounds change; NULL for gradients
    lac_slice *slices;
    const float **updates;
    size_t count; // of slices
    double *times;
} worker;

// One measurement; the context of its workers.
typedef struct measurement {
    cli_bench_step *step;
    const cli_bench_step_options *options;
    lac_layout *layout;
    lac_topology *topology;
    worker workers[NEIGHBOURS];
} measurement;

static lac_status step_allocate(
    worker *w, const lac_layout *layout, bool is_model)
{
    const size_t count = lac_layout_count(layout);
    w->count = count;
    w->slices = calloc(count, sizeof(*w->slices));
    w->updates = calloc(count, sizeof(*w->updates));
    w->times = calloc(w->bench.runs, sizeof(*w->times));
    w->values = is_model ? calloc(w->bench.n, sizeof(float)) : NULL;
    return w->slices == NULL || w->updates == NULL || w->times == NULL ||
                   (is_model && w->values == NULL)
               ? lac_fail(
                     LAC_ERR_NOMEM, "bench: no memory for %zu values",
                     w->bench.n)
               : LAC_OK;
}

// Gradients are reduced from x to y. A model starts as x, and its local update
// is y. Both differ between the workers, so the models never become equal.
static lac_status start_worker(worker *w, const lac_layout *layout)
{
    const bool is_model = w->values != NULL;
    for (size_t i = 0; i < w->count; i++) {
        const size_t offset = lac_layout_tensor(layout, i)->offset;
        float *const in = (is_model ? w->values : w->bench.x) + offset;
        float *const out = (is_model ? w->values : w->bench.y) + offset;
        w->slices[i] = (lac_slice){i, LAC_F32, in, out};
        w->updates[i] = w->bench.y + offset;
    }
    if (!is_model) {
        return LAC_OK;
    }
    memcpy(w->values, w->bench.x, w->bench.n * sizeof(float));
    return lac_algorithm_start(w->a, w->slices, w->count);
}

static lac_status open_step_worker(
    measurement *s, worker *w, lac_transport *transport)
{
    const cli_bench_step_options *const options = s->options;
    const bool is_model = s->step->workers > 1;
    lac_algorithm_options o =
        options_of(s->step, options, s->layout, is_model ? s->topology : NULL);
    o.transport = transport;
    LAC_TRY(cli_bench_init(
        &w->bench, s->step->values, options->runs,
        options->seed + lac_transport_rank(transport)));
    LAC_TRY(lac_algorithm_open(&w->a, &o));
    LAC_TRY(lac_algorithm_use_kernels(w->a, options->kernels));
    LAC_TRY(step_allocate(w, s->layout, is_model));
    return start_worker(w, s->layout);
}

static lac_status step_round(worker *w, uint64_t round)
{
    return w->values == NULL
               ? lac_algorithm_reduce(w->a, round, w->slices, w->count)
               : lac_algorithm_mix(
                     w->a, round, w->slices, w->updates, w->count);
}

// The time that a worker waits for the other does not count.
static lac_status time_round(
    worker *w, uint64_t round, double *memcpy_out, double *step_out)
{
    const double waited = lac_algorithm_waited(w->a);
    *memcpy_out = cli_bench_memcpy(&w->bench, w->bench.n * sizeof(float));
    cli_bench_flush_caches(&w->bench);
    const double begun = cli_bench_now();
    LAC_TRY(step_round(w, round));
    *step_out = cli_bench_now() - begun - (lac_algorithm_waited(w->a) - waited);
    return LAC_OK;
}

static lac_status measure_worker(worker *w)
{
    uint64_t round = 0;
    double unused[2];
    for (; round < WARMUP_ROUNDS; round++) {
        LAC_TRY(time_round(w, round, &unused[0], &unused[1]));
    }
    for (size_t run = 0; run < w->bench.runs; run++) {
        LAC_TRY(time_round(w, round++, &w->bench.times[run], &w->times[run]));
    }
    return LAC_OK;
}

static lac_status step_work(void *context, lac_transport *transport)
{
    measurement *const s = context;
    const uint32_t rank = lac_transport_rank(transport);
    worker *const w = &s->workers[rank];
    LAC_TRY(open_step_worker(s, w, transport));
    LAC_TRY(measure_worker(w));
    if (rank == 0) {
        s->step->memcpy = cli_bench_median(w->bench.times, w->bench.runs);
        s->step->seconds = cli_bench_median(w->times, w->bench.runs);
    }
    return LAC_OK;
}

static void step_release(void *context, uint32_t rank)
{
    worker *const w = &((measurement *)context)->workers[rank];
    lac_algorithm_close(w->a);
    cli_bench_fini(&w->bench);
    free(w->values);
    free(w->slices);
    free(w->updates);
    free(w->times);
    *w = (worker){0};
}

lac_status cli_bench_step_measure(
    cli_bench_step *step, const cli_bench_step_options *options)
{
    static const cli_workers workers = {
        .work = step_work, .release = step_release};
    measurement s = {.step = step, .options = options};
    lac_status status = open_network(options, &s.layout, &s.topology);
    if (status == LAC_OK) {
        status = cli_run_threads(&workers, &s, "local", step->workers);
    }
    lac_topology_close(s.topology);
    lac_layout_close(s.layout);
    return status;
}
