// SPDX-License-Identifier: MIT
// laconic average: workers with different values compute their mean; how close
// they get, and how many bytes they send.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/average/report.h"
#include "cli/average/worker.h"
#include "cli/files/layout.h"
#include "cli/files/npy.h"
#include "cli/launch/launch.h"
#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "cli/options/units.h"
#include "cli/report/table.h"
#include "data/output.h"

typedef struct settings {
    const char *algorithm;
    const char *compressor;
    const char *topology;
    uint64_t rounds;
    const char *input;
    uint64_t dimension;
    const char *model;
    const char *layout;
    bool time_only;
    const char *step_time;
    const char *output;
    const char *trace;
    uint64_t seed;
    cli_launch_options launch;
    bool json;
} settings;

enum { DIMENSION_DEFAULT = 1000, DIMENSION_MAX = 1000000000 };

static const cli_option options[] = {
    {.name = "algorithm",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, algorithm),
     .value = "SPEC",
     .help = "such as choco:gamma=0.04; see `laconic list`"},
    CLI_OPTION_COMPRESSOR(settings),
    CLI_OPTION_TOPOLOGY(settings),
    {.name = "rounds",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, rounds),
     .value = "N",
     .default_value = "100",
     .max = UINT32_MAX,
     .help = "rounds of communication"},
    {.name = "input",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, input),
     .value = "X.npy",
     .default_value = "",
     .help = "initial values of the workers; else random"},
    {.name = "dimension",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, dimension),
     .value = "D",
     .default_value = "",
     .min = 1,
     .max = DIMENSION_MAX,
     .help = "random values per worker (1000)"},
    CLI_OPTIONS_LAYOUT(settings),
    {.name = "output",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, output),
     .value = "Y.npy",
     .default_value = "",
     .help = "file for the final values"},
    {.name = "trace",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, trace),
     .value = "T.csv",
     .default_value = "",
     .help = "file for the error after every round"},
    {.name = "time-only",
     .type = CLI_OPTION_FLAG,
     .offset = offsetof(settings, time_only),
     .help = "measure the time of the rounds, but no errors"},
    CLI_OPTION_STEP_TIME(settings),
    CLI_OPTION_SEED(settings),
    CLI_OPTIONS_LAUNCH(settings),
    CLI_OPTION_JSON(settings),
    {0},
};

// One run of the command. Everything is NULL or owned by it.
typedef struct job {
    const settings *s;
    cli_average average;
    cli_dimensions dimensions;
    float *input;
    lac_layout *layout;
    lac_topology *topology;
    float *values_out;
    char *trace_text;
    size_t trace_len;
} job;

// Reads X, or decides on its shape.
static lac_status take_input(job *j, uint32_t world)
{
    const settings *const s = j->s;
    if (*s->input == '\0') {
        const uint64_t d = s->dimension == 0 ? DIMENSION_DEFAULT : s->dimension;
        j->dimensions = (cli_dimensions){2, {world, d}};
        return LAC_OK;
    }
    cli_npy npy;
    LAC_TRY(cli_npy_read(s->input, &npy, &j->input));
    const cli_dimensions *const found = &npy.dimensions;
    char text[CLI_DIMENSIONS_SIZE];
    if (found->count != 2 && found->count != 3) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: has %zu dimensions, expected workers x values or workers x "
            "rows x columns",
            s->input, found->count);
    }
    if (found->size[0] != world) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: is %s, expected its first dimension to be the %u workers",
            s->input, cli_dimensions_text(found, text), world);
    }
    j->dimensions = *found;
    return LAC_OK;
}

// X_i is one tensor: a vector, or a matrix if X has three dimensions.
static lac_status open_input_layout(job *j)
{
    const cli_dimensions *const d = &j->dimensions;
    const lac_tensor tensor = {
        .name = "x",
        .shape = {(size_t)d->size[1], d->count == 3 ? (size_t)d->size[2] : 1},
    };
    return lac_layout_open(&j->layout, &tensor, 1);
}

// Opens the layout of X_i and reads X. Returns an exit code.
static int average_open_layout(job *j, uint32_t world)
{
    const settings *const s = j->s;
    if (*s->model == '\0' && *s->layout == '\0') {
        return take_input(j, world) == LAC_OK && open_input_layout(j) == LAC_OK
                   ? CLI_GOOD
                   : cli_failed();
    }
    const int code =
        cli_layout_open("average", s->model, s->layout, &j->layout);
    if (code == CLI_GOOD) {
        j->dimensions =
            (cli_dimensions){2, {world, lac_layout_values(j->layout)}};
    }
    return code;
}

static lac_status allocate_outputs(job *j, uint32_t world)
{
    cli_average *const a = &j->average;
    const size_t n = lac_layout_values(j->layout);
    a->workers = calloc(world, sizeof(cli_average_worker *));
    bool good = a->workers != NULL;
    if (*j->s->output != '\0') {
        j->values_out = calloc(n == 0 ? 1 : n, world * sizeof(float));
        good = good && j->values_out != NULL;
    }
    if (*j->s->trace != '\0') {
        a->trace = open_memstream(&j->trace_text, &j->trace_len);
        good = good && a->trace != NULL &&
               fputs("round,error,mean_drift,payload_bytes\n", a->trace) >= 0;
    }
    a->values_out = j->values_out;
    a->input = j->input;
    a->world = world;
    a->topology = j->s->topology;
    a->rounds = j->s->rounds;
    a->time_only = j->s->time_only;
    return good ? LAC_OK
                : lac_fail(
                      LAC_ERR_NOMEM, "no memory for %u workers of %zu values",
                      world, n);
}

// Checks everything that the user typed before any worker starts.
static int average_prepare(void *context, uint32_t world)
{
    job *const j = context;
    const settings *const s = j->s;
    lac_algorithm_options *const o = &j->average.algorithm;
    lac_status status =
        lac_topology_open(&j->topology, s->topology, world, s->seed);
    if (status != LAC_OK) {
        return cli_rejected("average", status);
    }
    const int code = average_open_layout(j, world);
    if (code != CLI_GOOD) {
        return code;
    }
    *o = lac_algorithm_options_default();
    o->spec = s->algorithm;
    o->compressor = cli_given(s->compressor);
    o->layout = j->layout;
    o->topology = j->topology;
    o->seed = s->seed;
    o->timeout = s->launch.timeout;
    lac_cost cost;
    status = lac_algorithm_cost(o, &cost);
    if (status != LAC_OK) {
        return cli_rejected("average", status);
    }
    return allocate_outputs(j, world) == LAC_OK ? CLI_GOOD : cli_failed();
}

static lac_status average_work(void *context, lac_transport *transport)
{
    job *const j = context;
    return cli_average_work(&j->average, transport);
}

static void average_release(void *context, uint32_t rank)
{
    job *const j = context;
    cli_average_release(&j->average, rank);
}

static const cli_workers workers = {
    .prepare = average_prepare,
    .work = average_work,
    .release = average_release,
};

static lac_status write_trace(job *j)
{
    const int closed = fclose(j->average.trace);
    j->average.trace = NULL;
    if (closed != 0) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for the trace", j->s->trace);
    }
    return data_file_write(
        j->s->trace, (const uint8_t *)j->trace_text, j->trace_len);
}

static lac_status write_values(job *j)
{
    uint8_t header[CLI_NPY_HEADER_MAX];
    const size_t offset = cli_npy_header(CLI_NPY_F32, &j->dimensions, header);
    const size_t n = lac_layout_values(j->layout) * j->average.world;
    uint8_t *const file = malloc(offset + n * sizeof(float));
    if (file == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for %zu values", j->s->output, n);
    }
    cli_npy_put_values(j->values_out, n);
    memcpy(file, header, offset);
    memcpy(file + offset, j->values_out, n * sizeof(float));
    const lac_status status =
        data_file_write(j->s->output, file, offset + n * sizeof(float));
    free(file);
    return status;
}

// Writes the files and prints the result of worker 0.
static int average_report(job *j)
{
    const settings *const s = j->s;
    const char *const warning = j->average.result.warning;
    const bool to_stdout =
        (*s->output != '\0' && data_file_is_stdout(s->output)) ||
        (*s->trace != '\0' && data_file_is_stdout(s->trace));
    if (*warning != '\0') {
        (void)fprintf(stderr, "laconic: %s\n", warning);
    }
    if ((*s->output != '\0' && write_values(j) != LAC_OK) ||
        (*s->trace != '\0' && write_trace(j) != LAC_OK)) {
        return cli_failed();
    }
    FILE *const stream = to_stdout ? stderr : stdout;
    if (s->json) {
        return cli_json_print(cli_average_json(&j->average), stream);
    }
    cli_average_table(&j->average, stream);
    return CLI_GOOD;
}

static void average_clear(job *j)
{
    if (j->average.trace != NULL) {
        (void)fclose(j->average.trace);
    }
    free(j->trace_text);
    free(j->values_out);
    free(j->average.workers);
    lac_topology_close(j->topology);
    lac_layout_close(j->layout);
    free(j->input);
}

// Rejects options that exclude each other.
static lac_status check_exclusive(const settings *s)
{
    const struct {
        const char *name;
        bool given;
    } values[] = {
        {"input", *s->input != '\0'},
        {"dimension", s->dimension != 0},
        {"model", *s->model != '\0'},
        {"layout", *s->layout != '\0'},
    };
    const char *first = NULL;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (values[i].given && first != NULL) {
            return lac_fail(
                LAC_ERR_INVALID,
                "average: --%s and --%s were given, expected one", first,
                values[i].name);
        }
        first = values[i].given ? values[i].name : first;
    }
    if (s->time_only && (*s->output != '\0' || *s->trace != '\0')) {
        return lac_fail(
            LAC_ERR_INVALID,
            "average: --time-only gathers no values, expected no --%s",
            *s->output != '\0' ? "output" : "trace");
    }
    return LAC_OK;
}

static int average_run(const void *given, size_t count, char *const *arguments)
{
    (void)count;
    (void)arguments;
    const settings *const s = given;
    job j = {.s = s};
    if (check_exclusive(s) != LAC_OK ||
        (*s->step_time != '\0' &&
         units_seconds(s->step_time, "step-time", &j.average.step_time) !=
             LAC_OK)) {
        return cli_misused("average");
    }
    int code = cli_launch("average", &s->launch, &workers, &j);
    if (code == CLI_GOOD && j.average.result.here) {
        code = average_report(&j);
    }
    average_clear(&j);
    return code;
}

const cli_command cmd_average = {
    .name = "average",
    .summary = "let workers compute the mean of their values",
    .arguments = "",
    .details =
        "Workers start from the rows of X (workers x values, or workers x\n"
        "rows x columns; float32, C order) or from standard normal values (a\n"
        "vector, or the tensors of a model or layout), run an algorithm for\n"
        "some rounds, and report their distance to the mean and the bytes\n"
        "sent. Workers are threads or, under mpirun, its processes. A model\n"
        "algorithm gossips. A gradient algorithm reduces the same X in every\n"
        "round, and a worker's value is the mean of the results so far. A run\n"
        "that diverges is stopped, and its error is null. The trace has a\n"
        "line per round: round, error, mean_drift, and payload_bytes so far.\n"
        "--time-only runs the rounds without synchronisation between them, so\n"
        "that their time is that of the algorithm. --step-time lets workers\n"
        "sleep before each round, in simulated time on a simulated cluster.",
    .options = options,
    .settings_size = sizeof(settings),
    .run = average_run,
};
