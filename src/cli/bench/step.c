// SPDX-License-Identifier: MIT
#include "cli/bench/step.h"

#include <stdlib.h>
#include <string.h>

#include "cli/bench/compressor.h"
#include "cli/launch/threads.h"
#include "nn/layouts.h"

enum {
    // Rounds before the first that counts: algorithms with two sets of buffers
    // have used both by then.
    ROUNDS_BEFORE = 3,
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

// With one neighbour where there are any, whatever the algorithm.
static lac_status open_network(
    const cli_bench_step_options *options, lac_layout **layout_out,
    lac_topology **topology_out)
{
    *topology_out = NULL;
    const lac_status status = nn_layout_open(layout_out, model);
    return status == LAC_OK
               ? lac_topology_open(
                     topology_out, "complete", NEIGHBOURS, options->seed)
               : status;
}

static lac_algorithm_options options_of(
    const cli_bench_step *step, const cli_bench_step_options *options,
    const lac_layout *layout, const lac_topology *topology)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = step->spec;
    o.compressor = options->compressor;
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

// What one worker works with.
typedef struct worker {
    cli_bench bench;
    lac_algorithm *a;
    float *values; // of a model, which a round changes; NULL for gradients
    lac_slice *slices;
    const float **updates;
    size_t count; // of slices
    double *times;
} worker;

typedef struct stand {
    cli_bench_step *step;
    const cli_bench_step_options *options;
    lac_layout *layout;
    lac_topology *topology;
    worker workers[NEIGHBOURS];
} stand;

static lac_status allocate(worker *w, const lac_layout *layout, bool is_model)
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

// Gradients are reduced from x to y. A model begins as x, and its local step is
// y: both differ between the workers, so that there is always something to mix.
static lac_status begin(worker *w, const lac_layout *layout)
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

static lac_status open_worker(stand *s, worker *w, lac_transport *transport)
{
    const cli_bench_step_options *const options = s->options;
    const bool is_model = s->step->workers > 1;
    lac_algorithm_options o =
        options_of(s->step, options, s->layout, is_model ? s->topology : NULL);
    o.transport = transport;
    lac_status status = cli_bench_init(
        &w->bench, s->step->values, options->runs,
        options->seed + lac_transport_rank(transport));
    if (status == LAC_OK) {
        status = lac_algorithm_open(&w->a, &o);
    }
    if (status == LAC_OK) {
        status = lac_algorithm_use_kernels(w->a, options->kernels);
    }
    if (status == LAC_OK) {
        status = allocate(w, s->layout, is_model);
    }
    return status == LAC_OK ? begin(w, s->layout) : status;
}

static lac_status run_round(worker *w, uint64_t round)
{
    return w->values == NULL
               ? lac_algorithm_reduce(w->a, round, w->slices, w->count)
               : lac_algorithm_mix(
                     w->a, round, w->slices, w->updates, w->count);
}

// The time that a worker waits for the other is not its own.
static lac_status run_once(
    worker *w, uint64_t round, double *memcpy_out, double *step_out)
{
    const double waited = lac_algorithm_waited(w->a);
    *memcpy_out = cli_bench_memcpy(&w->bench, w->bench.n * sizeof(float));
    cli_bench_forget(&w->bench);
    const double begun = cli_bench_now();
    const lac_status status = run_round(w, round);
    *step_out = cli_bench_now() - begun - (lac_algorithm_waited(w->a) - waited);
    return status;
}

static lac_status measure(worker *w)
{
    uint64_t round = 0;
    double unused[2];
    lac_status status = LAC_OK;
    for (; round < ROUNDS_BEFORE && status == LAC_OK; round++) {
        status = run_once(w, round, &unused[0], &unused[1]);
    }
    for (size_t run = 0; run < w->bench.runs && status == LAC_OK; run++) {
        status = run_once(w, round++, &w->bench.times[run], &w->times[run]);
    }
    return status;
}

static lac_status work(void *context, lac_transport *transport)
{
    stand *const s = context;
    const uint32_t rank = lac_transport_rank(transport);
    worker *const w = &s->workers[rank];
    lac_status status = open_worker(s, w, transport);
    if (status == LAC_OK) {
        status = measure(w);
    }
    if (status == LAC_OK && rank == 0) {
        s->step->memcpy = cli_bench_median(w->bench.times, w->bench.runs);
        s->step->seconds = cli_bench_median(w->times, w->bench.runs);
    }
    return status;
}

static void release(void *context, uint32_t rank)
{
    worker *const w = &((stand *)context)->workers[rank];
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
    static const cli_crew crew = {.work = work, .release = release};
    stand s = {.step = step, .options = options};
    lac_status status = open_network(options, &s.layout, &s.topology);
    if (status == LAC_OK) {
        status = cli_crew_threads(&crew, &s, "local", step->workers);
    }
    lac_topology_close(s.topology);
    lac_layout_close(s.layout);
    return status;
}
