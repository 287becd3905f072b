// SPDX-License-Identifier: MIT
// laconic topology: who talks to whom in a network, and how fast it agrees.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/catalog.h"
#include "cli/command.h"
#include "cli/network.h"
#include "cli/report.h"

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
     .help = "how many there are"},
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

static int report_json(
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
    if (lac_topology_period(t) > 1) {
        cli_table_add(
            table, "in a round; the network repeats after %" PRIu32 " rounds",
            lac_topology_period(t));
    } else if (least == most) {
        cli_table_add(table, "everyone has as many");
    } else {
        cli_table_add(
            table, "the fewest are %" PRIu32 ", the mean is %.4g", least,
            2 * (double)lac_topology_edge_count(t) / n);
    }
}

// A number near 0 is not shown as -0.
static void add_number(
    cli_table *table, const char *name, double value, const char *note)
{
    cli_table_add(table, "%s", name);
    cli_table_add(table, "%.6f", fabs(value) < 0.5e-6 ? 0 : value);
    cli_table_add(table, "%s", note);
}

static void report_table(
    const lac_topology *t, const lac_spectrum *s, FILE *stream)
{
    char text[CLI_GROUPED_SIZE];
    const bool varies = lac_topology_period(t) > 1;
    cli_table table = cli_table_make("lrl", NULL);
    cli_table_row(
        &table, "workers", cli_grouped(lac_topology_workers(t), text), "");
    cli_table_row(
        &table, "edges", cli_grouped(lac_topology_edge_count(t), text),
        varies ? "in all rounds together" : "");
    add_degrees(t, &table);
    if (isfinite(s->gap)) {
        add_number(
            &table, "lambda 2", s->lambda2,
            varies ? "second largest eigenvalue of W, the product of a period"
                   : "second largest eigenvalue of W");
        add_number(&table, "lambda n", s->lambdan, "smallest eigenvalue");
        add_number(
            &table, "gap", s->gap,
            varies ? "share of the disagreement that a period takes away"
                   : "share of the disagreement that a round takes away");
        add_number(&table, "beta", s->beta, "norm of I - W");
    }
    cli_table_print(&table, stream);
    cli_network_print(t, stream);
}

static int report(const lac_topology *t, const settings *s, FILE *stream)
{
    const double unknown = (double)NAN;
    lac_spectrum spectrum = {
        .lambda2 = unknown,
        .lambdan = unknown,
        .gap = unknown,
        .beta = unknown};
    const lac_status status = lac_topology_spectrum(t, &spectrum);
    if (status == LAC_ERR_UNSUPPORTED) {
        (void)fprintf(stderr, "laconic: %s\n", lac_error_message());
    } else if (status != LAC_OK) {
        return cli_failed();
    }
    if (s->json) {
        return report_json(t, &spectrum, stream);
    }
    report_table(t, &spectrum, stream);
    return CLI_GOOD;
}

// What the user typed does not fit, or a file that it names is wrong.
static int refuse(lac_status status, const char *spec)
{
    const bool file = strncmp(spec, "file:", 5) == 0;
    return status == LAC_ERR_NOMEM || (status == LAC_ERR_INVALID && file)
               ? cli_failed()
               : cli_bad_spec_of("topology", "topologies", spec);
}

static int run(const void *given, size_t count, char *const *arguments)
{
    (void)count;
    const settings *const s = given;
    lac_topology *t = NULL;
    const lac_status status =
        lac_topology_open(&t, arguments[0], (uint32_t)s->workers, s->seed);
    if (status != LAC_OK) {
        return refuse(status, arguments[0]);
    }
    int code = CLI_GOOD;
    FILE *stream = stdout;
    if (s->matrix[0] != '\0') {
        stream = data_file_is_stdout(s->matrix) ? stderr : stdout;
        if (cli_network_write(t, s->matrix) != LAC_OK) {
            code = cli_failed();
        }
    }
    if (code == CLI_GOOD) {
        code = report(t, s, stream);
    }
    lac_topology_close(t);
    return code;
}

const cli_command cmd_topology = {
    .name = "topology",
    .summary = "show a network of workers and how fast it agrees",
    .arguments = "SPEC",
    .arguments_min = 1,
    .arguments_max = 1,
    .details =
        "Show who talks to whom in the network SPEC, with which weights, and\n"
        "the spectrum of its mixing matrix W. `laconic list` shows the\n"
        "networks there are. If it varies from round to round, W is the\n"
        "product over one period.",
    .options = options,
    .settings_size = sizeof(settings),
    .run = run,
};
