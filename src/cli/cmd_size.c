// SPDX-License-Identifier: MIT
// laconic size: the bytes and the memory of an algorithm for a model, computed
// from the shapes of its tensors.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files/layout.h"
#include "cli/launch/launch.h"
#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "cli/report/table.h"
#include "cli/size/fragments.h"
#include "cli/size/report.h"
#include "cli/topology/network.h"

typedef struct settings {
    const char *model;
    const char *layout;
    const char *algorithm;
    const char *compressor;
    const char *topology;
    uint64_t workers;
    uint64_t local_steps;
    uint64_t seed;
    bool json;
} settings;

static const cli_option options[] = {
    CLI_OPTIONS_LAYOUT(settings),
    {.name = "algorithm",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, algorithm),
     .value = "SPEC",
     .help = "such as powergossip:iterations=2"},
    CLI_OPTION_COMPRESSOR(settings),
    CLI_OPTION_TOPOLOGY(settings),
    {.name = "workers",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, workers),
     .value = "N",
     .default_value = "8",
     .min = 1,
     .max = CLI_WORKERS_MAX,
     .help = "number of workers"},
    CLI_OPTION_LOCAL_STEPS(settings),
    CLI_OPTION_SEED(settings),
    CLI_OPTION_JSON(settings),
    {0},
};

// One run of the command. Everything is NULL or owned by it.
typedef struct job {
    const settings *s;
    lac_layout *layout;
    lac_topology *topology;
    cli_size size;
} job;

static int open_size_layout(job *j)
{
    return cli_layout_open("size", j->s->model, j->s->layout, &j->layout);
}

static int open_size_topology(job *j)
{
    const settings *const s = j->s;
    return cli_network_open(
        "size", s->topology, (uint32_t)s->workers, s->seed, &j->topology);
}

// Counts the values that the compressor keeps of all tensors.
static int count_kept(job *j)
{
    lac_compressor *c = NULL;
    if (*j->s->compressor == '\0') {
        return CLI_GOOD;
    }
    if (lac_compressor_open(&c, j->s->compressor, LAC_FORM_PLAIN) != LAC_OK) {
        return cli_bad_spec("size", "compressors", j->s->compressor);
    }
    for (size_t i = 0; i < lac_layout_count(j->layout); i++) {
        j->size.values_kept +=
            lac_compressor_kept(c, lac_layout_tensor(j->layout, i)->shape);
    }
    lac_compressor_close(c);
    return CLI_GOOD;
}

// Writes the payload of one tensor: the cost of a layout with it alone.
static lac_status tensor_bytes(
    const lac_algorithm_options *all, size_t index, double *out)
{
    lac_algorithm_options alone = *all;
    lac_layout *layout = NULL;
    lac_cost cost = {0};
    LAC_TRY(lac_layout_open(&layout, lac_layout_tensor(all->layout, index), 1));
    alone.layout = layout;
    const lac_status status = lac_algorithm_cost(&alone, &cost);
    lac_layout_close(layout);
    *out = cost.payload_bytes;
    return status;
}

// The bytes per tensor are optional: if they are unknown, the command succeeds.
static void split_bytes(job *j)
{
    const size_t count = lac_layout_count(j->layout);
    double *bytes = calloc(count, sizeof(*bytes));
    for (size_t i = 0; bytes != NULL && i < count; i++) {
        if (tensor_bytes(&j->size.algorithm, i, &bytes[i]) != LAC_OK) {
            free(bytes);
            bytes = NULL;
        } else {
            bytes[i] /= (double)j->s->local_steps;
        }
    }
    j->size.tensor_bytes = bytes;
}

// Spreads the cost of a round over the steps from one to the next.
static int spread_cost(job *j)
{
    const double steps = (double)j->s->local_steps;
    lac_cost *const cost = &j->size.cost;
    if (steps > 1 && (cost->flags & LAC_COST_LOCAL_STEPS) == 0) {
        return cli_rejected(
            "size", lac_fail(
                        LAC_ERR_INVALID,
                        "--local-steps %g: %.60s averages gradients in every "
                        "step, expected a model algorithm, such as "
                        "outer:inner=(%.60s)",
                        steps, j->s->algorithm, j->s->algorithm));
    }
    cost->payload_bytes /= steps;
    cost->messages /= steps;
    cost->phases /= steps;
    return CLI_GOOD;
}

static int find_cost(job *j)
{
    const settings *const s = j->s;
    lac_algorithm_options *const o = &j->size.algorithm;
    *o = lac_algorithm_options_default();
    o->spec = s->algorithm;
    o->compressor = cli_given(s->compressor);
    o->layout = j->layout;
    o->topology = j->topology;
    o->seed = s->seed;
    const lac_status status = cli_fragments_cost(o, &j->size.cost);
    if (status == LAC_OK) {
        return CLI_GOOD;
    }
    return status == LAC_ERR_INVALID || status == LAC_ERR_NOTFOUND
               ? cli_bad_spec("size", "algorithms", s->algorithm)
               : cli_failed();
}

static int size_report(job *j)
{
    const settings *const s = j->s;
    j->size.model = cli_given(s->model);
    j->size.layout = cli_given(s->layout);
    j->size.topology = s->topology;
    j->size.local_steps = s->local_steps;
    if (s->json) {
        return cli_json_print(cli_size_json(&j->size), stdout);
    }
    split_bytes(j);
    cli_size_table(&j->size, stdout);
    return CLI_GOOD;
}

static int size_run(const void *given, size_t count, char *const *arguments)
{
    static int (*const steps[])(job *) = {open_size_layout, open_size_topology,
                                          count_kept,       find_cost,
                                          spread_cost,      size_report};
    (void)count;
    (void)arguments;
    job j = {.s = given};
    int code = CLI_GOOD;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && code == CLI_GOOD;
         i++) {
        code = steps[i](&j);
    }
    free(j.size.tensor_bytes);
    lac_topology_close(j.topology);
    lac_layout_close(j.layout);
    return code;
}

const cli_command cmd_size = {
    .name = "size",
    .summary = "compute the bytes and memory of an algorithm for a model",
    .arguments = "",
    .details =
        "From the shapes of the tensors alone, compute for one step: the"
        " bytes\n"
        "of payload (in gossip to one neighbour, else the contribution of one\n"
        "worker), the messages, the memory of a worker, and the time to send\n"
        "its bytes once over common links (in gossip to each neighbour). The\n"
        "time has no latency, no computation and no overhead of a collective.\n"
        "If the size depends on the data, it is the maximum; if it differs\n"
        "between rounds, it is the mean; with --local-steps too.\n"
        "A layout file has a line per tensor: its name, rows and columns.",
    .example = "Compute the bytes of PowerSGD for ResNet-18:\n"
               "\n"
               "    laconic size --model resnet18 --algorithm powersgd:rank=2",
    .options = options,
    .settings_size = sizeof(settings),
    .run = size_run,
};
