// SPDX-License-Identifier: MIT
// laconic topology: the neighbours, weights and spectrum of a network.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/options/command.h"
#include "cli/report/table.h"
#include "cli/topology/network.h"

typedef struct settings {
    uint64_t workers;
    const char *matrix;
    uint64_t seed;
    bool json;
} settings;

static const cli_option options[] = {
    {.name = "workers",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, workers),
     .value = "N",
     .min = 1,
     .max = UINT32_MAX,
     .help = "number of workers"},
    {.name = "matrix",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, matrix),
     .value = "W.npy",
     .default_value = "",
     .help = "write the mixing matrix as float64"},
    CLI_OPTION_SEED(settings),
    CLI_OPTION_JSON(settings),
    {0},
};

static int topology_json(
    const lac_topology *t, const lac_spectrum *s, FILE *stream)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "workers", lac_topology_workers(t));
    cJSON_AddNumberToObject(o, "edges", (double)lac_topology_edge_count(t));
    cJSON_AddNumberToObject(o, "max_degree", lac_topology_max_degree(t));
    cJSON_AddNumberToObject(o, "period", lac_topology_period(t));
    cJSON_AddNumberToObject(o, "lambda2", s->lambda2);
    cJSON_AddNumberToObject(o, "lambdan", s->lambdan);
    cJSON_AddNumberToObject(o, "gap", s->gap);
    cJSON_AddNumberToObject(o, "beta", s->beta);
    return cli_json_print(o, stream);
}

static void add_degrees(const lac_topology *t, cli_table *table)
{
    const uint32_t n = lac_topology_workers(t);
    uint32_t least = UINT32_MAX;
    const lac_edge *edges;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t degree = lac_topology_edges(t, i, 0, &edges);
        least = degree < least ? degree : least;
    }
    const uint32_t most = lac_topology_max_degree(t);
    cli_table_add(table, "most neighbours");
    cli_table_add(table, "%" PRIu32, most);
    if (lac_topology_is_drawn(t)) {
        cli_table_add(
            table, "per round; drawn for %" PRIu32 " rounds, which repeat",
            lac_topology_period(t));
    } else if (lac_topology_period(t) > 1) {
        cli_table_add(
            table, "per round; the network repeats after %" PRIu32 " rounds",
            lac_topology_period(t));
    } else if (least == most) {
        cli_table_add(table, "the same for all workers");
    } else {
        cli_table_add(
            table, "the fewest are %" PRIu32 ", the mean is %.4g", least,
            2 * (double)lac_topology_edge_count(t) / n);
    }
}

// A value near 0 is not printed as -0.
static void add_eigenvalue(
    cli_table *table, const char *name, double value, const char *note)
{
    cli_table_add(table, "%s", name);
    cli_table_add(table, "%.6f", fabs(value) < 0.5e-6 ? 0 : value);
    cli_table_add(table, "%s", note);
}

static void topology_table(
    const lac_topology *t, const lac_spectrum *s, FILE *stream)
{
    char text[CLI_GROUPED_SIZE];
    const bool drawn = lac_topology_is_drawn(t);
    const bool varies = lac_topology_period(t) > 1;
    cli_table table = cli_table_make("lrl", NULL);
    cli_table_row(
        &table, "workers", cli_grouped(lac_topology_workers(t), text), "");
    cli_table_row(
        &table, "edges", cli_grouped(lac_topology_edge_count(t), text),
        varies ? "in all rounds together" : "");
    add_degrees(t, &table);
    if (isfinite(s->gap)) {
        add_eigenvalue(
            &table, "lambda 2", s->lambda2,
            drawn    ? "second largest eigenvalue of the mean of W"
            : varies ? "second largest eigenvalue of W, over one period"
                     : "second largest eigenvalue of W");
        add_eigenvalue(&table, "lambda n", s->lambdan, "smallest eigenvalue");
        add_eigenvalue(
            &table, "gap", s->gap,
            drawn ? "part of the squared distance to the mean lost in a round"
            : varies ? "part of the distance to the mean lost in a period"
                     : "part of the distance to the mean lost in a round");
        add_eigenvalue(&table, "beta", s->beta, "norm of I - W");
    }
    cli_table_print(&table, stream);
    cli_network_print(t, stream);
}

static int topology_report(
    const lac_topology *t, const settings *s, FILE *stream)
{
    const double unknown = (double)NAN;
    lac_spectrum spectrum = {
        .lambda2 = unknown,
        .lambdan = unknown,
        .gap = unknown,
        .beta = unknown};
    const lac_status status = cli_network_spectrum(t, &spectrum);
    if (status == LAC_ERR_UNSUPPORTED) {
        cli_print_message("");
    } else if (status != LAC_OK) {
        return cli_failed();
    }
    if (s->json) {
        return topology_json(t, &spectrum, stream);
    }
    topology_table(t, &spectrum, stream);
    return CLI_GOOD;
}

static int topology_run(const void *given, size_t count, char *const *arguments)
{
    (void)count;
    const settings *const s = given;
    lac_topology *t = NULL;
    int code = cli_network_open(
        "topology", arguments[0], (uint32_t)s->workers, s->seed, &t);
    if (code != CLI_GOOD) {
        return code;
    }
    FILE *stream = stdout;
    if (s->matrix[0] != '\0') {
        stream = data_file_is_stdout(s->matrix) ? stderr : stdout;
        if (cli_network_write(t, s->matrix) != LAC_OK) {
            code = cli_failed();
        }
    }
    if (code == CLI_GOOD) {
        code = topology_report(t, s, stream);
    }
    lac_topology_close(t);
    return code;
}

const cli_command cmd_topology = {
    .name = "topology",
    .summary = "show a network of workers and its spectrum",
    .arguments = "SPEC",
    .arguments_min = 1,
    .arguments_max = 1,
    .completes = "@topologies",
    .details =
        "Show the neighbours and weights of the network SPEC and the spectrum\n"
        "of its mixing matrix W. `laconic list` shows the available networks.\n"
        "For a network that varies from round to round, W is the product over\n"
        "one period; if every round is drawn, W is the mean over all draws.",
    .example = "Show a torus of 16 workers, and write its mixing matrix:\n"
               "\n"
               "    laconic topology torus --workers 16 --matrix w.npy",
    .options = options,
    .settings_size = sizeof(settings),
    .run = topology_run,
};
