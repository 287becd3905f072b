// SPDX-License-Identifier: MIT
// laconic average: workers with different values compute their mean; how close
// they get, and how many bytes they send.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/average/files.h"
#include "cli/average/initial.h"
#include "cli/average/report.h"
#include "cli/average/sweep.h"
#include "cli/average/worker.h"
#include "cli/files/layout.h"
#include "cli/files/npy.h"
#include "cli/launch/place.h"
#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "cli/options/units.h"
#include "cli/report/table.h"
#include "cli/topology/network.h"
#include "data/output.h"

typedef struct settings {
    const char *algorithm;
    const char *compressor;
    const char *topology;
    uint64_t rounds;
    const char *input;
    const char *dimension;
    uint64_t low_rank;
    const char *model;
    const char *layout;
    bool time_only;
    const char *step_time;
    const char *output;
    const char *trace;
    const char *sweep;
    uint64_t seed;
    cli_launch_options launch;
    bool json;
} settings;

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
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, dimension),
     .value = "D|RxC",
     .default_value = "",
     .help = "random values per worker, or rows x columns (1000)"},
    {.name = "low-rank",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, low_rank),
     .value = "R",
     .default_value = "",
     .min = 1,
     .max = UINT32_MAX,
     .help = "random matrices of rank R, with --dimension RxC"},
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
    {.name = "sweep",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, sweep),
     .value = "KEY=VALUES",
     .default_value = "",
     .help = "repeat it for gamma=0.01..0.1 or gamma=0.1,0.2"},
    {.name = "time-only",
     .type = CLI_OPTION_FLAG,
     .offset = offsetof(settings, time_only),
     .help = "measure the time of the rounds, but no errors"},
    CLI_OPTION_STEP_TIME(settings),
    CLI_OPTION_SEED(settings),
    CLI_OPTIONS_LAUNCH(settings),
    CLI_OPTION_THREADS(settings),
    CLI_OPTION_JSON(settings),
    {0},
};

// One run of the command. Everything is NULL or owned by it.
typedef struct job {
    const settings *s;
    double step_time;
    cli_dimensions drawn;      // those of a worker if its values are drawn
    cli_dimensions dimensions; // those of all workers
    float *input;
    lac_layout *layout;
    lac_topology *topology;
    float *values_out;
    cli_sweep sweep;
    size_t count; // of runs: one, or one for each value of the sweep
    cli_average *runs;
    cli_trace *traces;
} job;

// Reads X, or decides on its shape.
static lac_status take_input(job *j, uint32_t world)
{
    const settings *const s = j->s;
    if (*s->input == '\0') {
        const cli_dimensions *const d = &j->drawn;
        j->dimensions =
            (cli_dimensions){1 + d->count, {world, d->size[0], d->size[1]}};
        return LAC_OK;
    }
    cli_npy npy;
    LAC_TRY(cli_npy_read(s->input, CLI_NPY_F32, &npy, &j->input));
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

static lac_status average_no_memory(uint32_t world, size_t n)
{
    return lac_fail(
        LAC_ERR_NOMEM, "no memory for %u workers of %zu values", world, n);
}

// Prepares one run.
static lac_status prepare_run(job *j, uint32_t world, size_t index)
{
    const settings *const s = j->s;
    cli_average *const a = &j->runs[index];
    if (*s->trace != '\0') {
        LAC_TRY(cli_trace_open(&j->traces[index]));
        a->trace = j->traces[index].stream;
    }
    a->workers = calloc(world, sizeof(cli_average_worker *));
    a->values_out = j->values_out;
    a->input = j->input;
    a->low_rank = (size_t)s->low_rank;
    a->world = world;
    a->topology = s->topology;
    a->rounds = s->rounds;
    a->step_time = j->step_time;
    a->time_only = s->time_only;
    return a->workers != NULL
               ? LAC_OK
               : average_no_memory(world, lac_layout_values(j->layout));
}

static lac_status allocate_runs(job *j, uint32_t world)
{
    const size_t n = lac_layout_values(j->layout);
    const size_t count = *j->s->sweep == '\0' ? 1 : j->sweep.count;
    j->runs = calloc(count, sizeof(*j->runs));
    j->traces = calloc(count, sizeof(*j->traces));
    bool good = j->runs != NULL && j->traces != NULL;
    if (*j->s->output != '\0') {
        j->values_out = calloc(n == 0 ? 1 : n, world * sizeof(float));
        good = good && j->values_out != NULL;
    }
    if (!good) {
        return average_no_memory(world, n);
    }
    j->count = count;
    for (size_t i = 0; i < count; i++) {
        LAC_TRY(prepare_run(j, world, i));
    }
    return LAC_OK;
}

// Checks the algorithm, and with it the values of a sweep.
static lac_status set_algorithms(job *j, const lac_algorithm_options *given)
{
    lac_cost cost;
    for (size_t i = 0; i < j->count; i++) {
        cli_average *const a = &j->runs[i];
        const cli_sweep_point *const p = &j->sweep.points[i];
        a->algorithm = *given;
        a->progress = "rounds";
        if (*j->s->sweep != '\0') {
            a->algorithm.spec = p->algorithm;
            a->algorithm.compressor = p->compressor;
            a->progress = p->progress;
        }
        LAC_TRY(lac_algorithm_cost(&a->algorithm, &cost));
    }
    return LAC_OK;
}

// Checks everything that the user typed before any worker starts.
static int average_prepare(void *context, uint32_t world)
{
    job *const j = context;
    const settings *const s = j->s;
    int code =
        cli_network_open("average", s->topology, world, s->seed, &j->topology);
    if (code == CLI_GOOD) {
        code = average_open_layout(j, world);
    }
    if (code != CLI_GOOD) {
        return code;
    }
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = s->algorithm;
    o.compressor = cli_given(s->compressor);
    o.layout = j->layout;
    o.topology = j->topology;
    o.seed = s->seed;
    o.timeout = s->launch.timeout;
    o.threads = cli_place_threads(&s->launch, world);
    lac_cost cost;
    lac_status status = lac_algorithm_cost(&o, &cost);
    if (status != LAC_OK) {
        return cli_bad_algorithm(
            "average", status, s->algorithm, s->compressor);
    }
    if (*s->sweep != '\0') {
        status = cli_sweep_open(&j->sweep, s->sweep, o.spec, o.compressor);
    }
    if (status == LAC_OK) {
        status = allocate_runs(j, world);
    }
    if (status == LAC_OK) {
        status = set_algorithms(j, &o);
    }
    return status == LAC_OK ? CLI_GOOD : cli_rejected("average", status);
}

// A run is released after the next one, whose exchanges end all borrowing.
static lac_status average_work(void *context, lac_transport *transport)
{
    job *const j = context;
    for (size_t i = 0; i < j->count; i++) {
        LAC_TRY(cli_average_work(&j->runs[i], transport));
        if (i > 0) {
            cli_average_release(&j->runs[i - 1], lac_transport_rank(transport));
        }
    }
    return LAC_OK;
}

static void average_release(void *context, uint32_t rank)
{
    job *const j = context;
    for (size_t i = 0; i < j->count; i++) {
        cli_average_release(&j->runs[i], rank);
    }
}

static const cli_workers workers = {
    .prepare = average_prepare,
    .work = average_work,
    .release = average_release,
};

static lac_status write_files(job *j)
{
    const settings *const s = j->s;
    if (*s->output != '\0') {
        LAC_TRY(cli_values_write(s->output, &j->dimensions, j->values_out));
    }
    for (size_t i = 0; *s->trace != '\0' && i < j->count; i++) {
        LAC_TRY(cli_trace_write(
            &j->traces[i], s->trace,
            *s->sweep == '\0' ? NULL : j->sweep.points[i].value));
    }
    return LAC_OK;
}

// Whether a run compresses nothing because its values are a vector. Then
// `*side_out` is the side of a square matrix with as many values or more.
static bool needs_matrix(const job *j, const cli_average *a, size_t *side_out)
{
    const settings *const s = j->s;
    const size_t n = lac_layout_values(j->layout);
    const size_t side = (size_t)ceil(sqrt((double)n));
    const lac_tensor square = {.name = "x", .shape = {side, side}};
    lac_algorithm_options o = a->algorithm;
    lac_layout *layout = NULL;
    lac_cost vector, matrix;
    if (*s->input != '\0' || *s->model != '\0' || *s->layout != '\0' ||
        lac_algorithm_cost(&o, &vector) != LAC_OK ||
        lac_layout_open(&layout, &square, 1) != LAC_OK) {
        return false;
    }
    o.layout = layout;
    const bool needed =
        vector.payload_bytes >= (double)(n * sizeof(float)) &&
        lac_algorithm_cost(&o, &matrix) == LAC_OK &&
        matrix.payload_bytes < (double)(side * side * sizeof(float));
    lac_layout_close(layout);
    *side_out = side;
    return needed;
}

// Prints the first warning of the runs, which repeat each other.
static void print_warning(const job *j)
{
    size_t i = 0, side = 0;
    while (i < j->count && *j->runs[i].result.warning == '\0') {
        i++;
    }
    if (i < j->count) {
        (void)fprintf(stderr, "laconic: %s\n", j->runs[i].result.warning);
        if (needs_matrix(j, &j->runs[i], &side)) {
            (void)fprintf(
                stderr, "try --dimension %zux%zu, or fold=yes\n", side, side);
        }
    }
}

// Writes the files and prints the result of worker 0.
static int average_report(job *j)
{
    const settings *const s = j->s;
    const bool to_stdout =
        (*s->output != '\0' && data_file_is_stdout(s->output)) ||
        (*s->trace != '\0' && data_file_is_stdout(s->trace));
    const bool sweep = *s->sweep != '\0';
    print_warning(j);
    if (write_files(j) != LAC_OK) {
        return cli_failed();
    }
    FILE *const stream = to_stdout ? stderr : stdout;
    if (s->json) {
        return cli_json_print(
            sweep ? cli_sweep_json(&j->sweep, j->runs)
                  : cli_average_json(j->runs),
            stream);
    }
    if (sweep) {
        cli_sweep_table(&j->sweep, j->runs, stream);
    } else {
        cli_average_table(j->runs, stream);
    }
    return CLI_GOOD;
}

static void average_clear(job *j)
{
    for (size_t i = 0; i < j->count; i++) {
        cli_trace_close(&j->traces[i]);
        free(j->runs[i].workers);
    }
    free(j->traces);
    free(j->runs);
    cli_sweep_close(&j->sweep);
    free(j->values_out);
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
        {"dimension", *s->dimension != '\0'},
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
    if (s->low_rank > 0 && first != NULL && *s->dimension == '\0') {
        return lac_fail(
            LAC_ERR_INVALID,
            "average: --low-rank and --%s were given, expected --dimension RxC "
            "with it",
            first);
    }
    if (s->time_only && (*s->output != '\0' || *s->trace != '\0')) {
        return lac_fail(
            LAC_ERR_INVALID,
            "average: --time-only gathers no values, expected no --%s",
            *s->output != '\0' ? "output" : "trace");
    }
    if (*s->sweep != '\0' && *s->output != '\0') {
        return lac_fail(
            LAC_ERR_INVALID,
            "average: --sweep has final values of several runs, expected no "
            "--output");
    }
    if (*s->sweep != '\0' && *s->trace != '\0' &&
        data_file_is_stdout(s->trace)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "average: --sweep has a trace for each value, expected files "
            "instead of the standard output");
    }
    return LAC_OK;
}

// Reads the options that the table of options leaves as text.
static lac_status average_read_texts(job *j)
{
    const settings *const s = j->s;
    LAC_TRY(check_exclusive(s));
    LAC_TRY(cli_initial_parse(s->dimension, &j->drawn));
    if (s->low_rank > 0) {
        LAC_TRY(cli_initial_check(&j->drawn, s->low_rank));
    }
    return *s->step_time == '\0'
               ? LAC_OK
               : units_seconds(s->step_time, "step-time", &j->step_time);
}

static int average_run(const void *given, size_t count, char *const *arguments)
{
    (void)count;
    (void)arguments;
    const settings *const s = given;
    job j = {.s = s};
    if (average_read_texts(&j) != LAC_OK) {
        return cli_misused("average");
    }
    int code = cli_launch("average", &s->launch, &workers, &j);
    if (code == CLI_GOOD && j.count > 0 && j.runs[0].result.here) {
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
        "vector, a matrix, or the tensors of a model or layout), run an\n"
        "algorithm for some rounds, and report their distance to the mean and\n"
        "the bytes sent. Workers are threads or, under mpirun, its processes.\n"
        "A model algorithm gossips. A gradient algorithm reduces the same X "
        "in\n"
        "every round, and a worker's value is the mean of the results so "
        "far.\n" CLI_THREADS_HELP CLI_MPIRUN_HELP
        "A run that diverges is stopped, and its error is null. The trace has\n"
        "a line per round: round, error, mean_drift, and payload_bytes so "
        "far;\n"
        "a plot of the error follows the table.\n"
        "--dimension 100x100 gives each worker a matrix, and --low-rank 5 one\n"
        "that is a product of normal factors with 5 columns, scaled to\n"
        "variance 1. --sweep repeats the run for values of a setting of the\n"
        "algorithm or of the compressor, with the same X: ten values of a\n"
        "range, each the same multiple of the one before, or those of a list.\n"
        "It prints a row per value and a plot; the trace t.csv of the value\n"
        "0.1 becomes t-0.1.csv.\n"
        "--time-only runs the rounds without synchronisation between them, so\n"
        "that their time is that of the algorithm. --step-time lets workers\n"
        "sleep before each round, in simulated time on a simulated cluster.",
    .example =
        "Average the values of 25 workers on a ring; a message has one of a\n"
        "hundred:\n"
        "\n"
        "    laconic average --workers 25 --algorithm choco:gamma=0.04 \\\n"
        "        --compressor top-k:0.01 --rounds 500 --trace trace.csv",
    .options = options,
    .settings_size = sizeof(settings),
    .run = average_run,
};
