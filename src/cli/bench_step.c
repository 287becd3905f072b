// SPDX-License-Identifier: MIT
#include "cli/bench_step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/report.h"
#include "nn/layouts.h"

// Rounds before the first that counts: algorithms with two sets of buffers
// have used both by then.
enum { ROUNDS_BEFORE = 3 };

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

lac_status cli_bench_step_check(cli_bench_step *step)
{
    lac_layout *layout = NULL;
    lac_cost cost;
    lac_algorithm_options o = lac_algorithm_options_default();
    lac_status status = nn_layout_open(&layout, model);
    if (status == LAC_OK) {
        o.spec = step->spec;
        o.layout = layout;
        step->layout = model;
        step->values = lac_layout_values(layout);
        status = lac_algorithm_cost(&o, &cost);
    }
    if (status == LAC_OK) {
        step->payload_bytes = cost.payload_bytes;
    }
    lac_layout_close(layout);
    return status;
}

// What one measurement works with.
typedef struct stand {
    cli_bench bench;
    lac_hub *hub;
    lac_transport *transport;
    lac_layout *layout;
    lac_algorithm *a;
    lac_slice *slices;
    double *times; // of the algorithm
} stand;

static lac_status open_algorithm(
    stand *s, const cli_bench_step *step, const cli_bench_step_options *options)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = step->spec;
    o.layout = s->layout;
    o.transport = s->transport;
    o.seed = options->seed;
    const lac_status status = lac_algorithm_open(&s->a, &o);
    return status == LAC_OK ? lac_algorithm_use_kernels(s->a, options->kernels)
                            : status;
}

static lac_status stand_init(
    stand *s, const cli_bench_step *step, const cli_bench_step_options *options)
{
    lac_status status =
        cli_bench_init(&s->bench, step->values, options->runs, options->seed);
    if (status == LAC_OK) {
        status = nn_layout_open(&s->layout, step->layout);
    }
    if (status == LAC_OK) {
        status = lac_hub_open(&s->hub, 1);
    }
    if (status == LAC_OK) {
        status = lac_transport_join(&s->transport, "local", s->hub, 0, 1);
    }
    if (status == LAC_OK) {
        status = open_algorithm(s, step, options);
    }
    if (status != LAC_OK) {
        return status;
    }
    const size_t count = lac_layout_count(s->layout);
    s->slices = calloc(count, sizeof(*s->slices));
    s->times = calloc(options->runs, sizeof(*s->times));
    if (s->slices == NULL || s->times == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "bench: no memory for %zu slices", count);
    }
    for (size_t i = 0; i < count; i++) {
        const size_t offset = lac_layout_tensor(s->layout, i)->offset;
        s->slices[i] =
            (lac_slice){i, LAC_F32, s->bench.x + offset, s->bench.y + offset};
    }
    return LAC_OK;
}

static void stand_fini(stand *s)
{
    lac_transport_leave(s->transport);
    lac_algorithm_close(s->a);
    lac_hub_close(s->hub);
    lac_layout_close(s->layout);
    cli_bench_fini(&s->bench);
    free(s->slices);
    free(s->times);
}

static lac_status run_once(
    stand *s, uint64_t round, double *memcpy_out, double *step_out)
{
    const double start = cli_bench_now();
    memcpy(s->bench.y, s->bench.x, s->bench.n * sizeof(float));
    const double copied = cli_bench_now();
    const lac_status status = lac_algorithm_reduce(
        s->a, round, s->slices, lac_layout_count(s->layout));
    *memcpy_out = copied - start;
    *step_out = cli_bench_now() - copied;
    return status;
}

static lac_status measure(stand *s, cli_bench_step *step)
{
    const size_t runs = s->bench.runs;
    uint64_t round = 0;
    double unused[2];
    lac_status status = LAC_OK;
    for (; round < ROUNDS_BEFORE && status == LAC_OK; round++) {
        status = run_once(s, round, &unused[0], &unused[1]);
    }
    for (size_t run = 0; run < runs && status == LAC_OK; run++) {
        status = run_once(s, round++, &s->bench.times[run], &s->times[run]);
    }
    if (status == LAC_OK) {
        step->memcpy = cli_bench_median(s->bench.times, runs);
        step->seconds = cli_bench_median(s->times, runs);
    }
    return status;
}

lac_status cli_bench_step_measure(
    cli_bench_step *step, const cli_bench_step_options *options)
{
    stand s = {0};
    lac_status status = stand_init(&s, step, options);
    if (status == LAC_OK) {
        status = measure(&s, step);
    }
    stand_fini(&s);
    return status;
}

// Link speed, in Mbit/s, at which the time to send the bytes saved equals the
// time of the step. NaN when nothing is saved.
static double break_even(const cli_bench_step *step)
{
    const double saved =
        sizeof(float) * (double)step->values - step->payload_bytes;
    return saved > 0 ? 8e-6 * saved / step->seconds : (double)NAN;
}

cJSON *cli_bench_step_json(const cli_bench_step *step)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "spec", step->spec);
    cJSON_AddStringToObject(o, "layout", step->layout);
    cJSON_AddNumberToObject(o, "ms", 1e3 * step->seconds);
    cJSON_AddNumberToObject(o, "memcpy_ratio", step->seconds / step->memcpy);
    cJSON_AddNumberToObject(o, "break_even_mbit", break_even(step));
    cJSON_AddNumberToObject(o, "payload_bytes", step->payload_bytes);
    return o;
}

void cli_bench_step_table(const cli_bench_step *steps, size_t count)
{
    cli_table t = cli_table_make("llrrr", NULL);
    cli_table_add(&t, "a whole step of");
    cli_table_add(&t, "on");
    cli_table_add(&t, "ms");
    cli_table_add(&t, "memcpys");
    cli_table_add(&t, "break-even Gbit/s");
    for (size_t i = 0; i < count; i++) {
        const double mbit = break_even(&steps[i]);
        cli_table_add(&t, "%s", steps[i].spec);
        cli_table_add(&t, "%s", steps[i].layout);
        cli_table_add(&t, "%.2f", 1e3 * steps[i].seconds);
        cli_table_add(&t, "%.2f", steps[i].seconds / steps[i].memcpy);
        if (isnan(mbit)) {
            cli_table_add(&t, "-");
        } else {
            cli_table_add(&t, "%.2f", mbit / 1000);
        }
    }
    cli_table_print(&t, stdout);
    printf(
        "\nA step is what one worker computes, without a network. Over a link "
        "slower than\nthe break-even, sending less outweighs it.\n");
}
