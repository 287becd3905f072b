// SPDX-License-Identifier: MIT
// laconic bench: how fast compressors and algorithms are on this machine, next
// to memcpy.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/bench_step.h"
#include "cli/catalog.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/report.h"

typedef struct settings {
    const char *compressor;
    uint32_t kernels;
    uint64_t values;
    uint64_t runs;
    uint64_t seed;
    bool json;
} settings;

static const char *const kernel_names[] = {"best", "portable", "avx2"};

static const cli_option options[] = {
    CLI_OPTION_COMPRESSOR(settings),
    {.name = "kernels",
     .type = CLI_OPTION_CHOICE,
     .offset = offsetof(settings, kernels),
     .value = "NAME",
     .fallback = "best",
     .choices = "best|portable|avx2",
     .help = "which code runs"},
    {.name = "values",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, values),
     .value = "N",
     .fallback = "25557032",
     .min = 1,
     .max = 1 << 30,
     .help = "how many floats to compress"},
    {.name = "runs",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, runs),
     .value = "R",
     .fallback = "11",
     .min = 1,
     .max = 10000,
     .help = "how often, for the median"},
    CLI_OPTION_SEED(settings),
    CLI_OPTION_JSON(settings),
    {0},
};

// What is measured when the user names nothing. Those that this build lacks
// are passed over.
static const char *const usual[] = {
    "natural",
    "natural:bits=8",
    "natural-dithering",
    "dithering:bucket=512,norm=inf",
    "dithering:bucket=512,norm=2",
    "sign",
    "half",
    "bfloat16",
    "top-k",
    "random-k",
    "top-k:0.01+natural",
    "low-rank",
    "identity",
};

enum { USUAL_COUNT = sizeof(usual) / sizeof(usual[0]), SPECS_MAX = 64 };

typedef struct entry {
    const char *spec;
    lac_compressor *c;
    cli_bench_result result;
} entry;

typedef struct job {
    const settings *settings;
    entry entries[SPECS_MAX];
    size_t count;
    cli_bench_step steps[SPECS_MAX]; // of algorithms
    size_t step_count;
    cli_bench_step_options step_options;
    lac_compressor *kernels; // knows their name
    cli_bench bench;
} job;

// Link speed, in Mbit/s, at which the time to send the bytes saved equals the
// time to encode and decode-add. NaN when nothing is saved. It is honest in
// that the uncompressed way is taken to cost nothing but its bytes.
static double break_even(const entry *e)
{
    const cli_bench_result *const r = &e->result;
    const double saved =
        sizeof(float) * (double)(r->shape.rows * r->shape.cols) -
        (double)r->payload_len;
    const double seconds = r->encode.seconds + r->decode_add.seconds;
    return saved > 0 ? 8e-6 * saved / seconds : (double)NAN;
}

static double gbps(const entry *e, const cli_bench_time *t)
{
    const lac_shape shape = e->result.shape;
    return 1e-9 * sizeof(float) * (double)(shape.rows * shape.cols) /
           t->seconds;
}

static double memcpys(const cli_bench_time *t)
{
    return t->seconds / t->memcpy;
}

static double bits_per_value(const entry *e)
{
    const lac_shape shape = e->result.shape;
    return 8 * (double)e->result.payload_len /
           (double)(shape.rows * shape.cols);
}

// Of all values: the median over everything of its median, which may be of
// fewer or more values.
static double memcpy_seconds(const job *j)
{
    double times[4 * SPECS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < j->count; i++) {
        const cli_bench_result *const r = &j->entries[i].result;
        const double values = (double)(r->shape.rows * r->shape.cols);
        times[count++] = r->encode.memcpy / values;
        times[count++] = r->decode_add.memcpy / values;
        times[count++] = r->encode_add.memcpy / values;
    }
    for (size_t i = 0; i < j->step_count; i++) {
        times[count++] = j->steps[i].memcpy / (double)j->steps[i].values;
    }
    return count == 0 ? (double)NAN
                      : (double)j->bench.n * cli_bench_median(times, count);
}

static double memcpy_gbps(const job *j)
{
    return 1e-9 * sizeof(float) * (double)j->bench.n / memcpy_seconds(j);
}

static const char *kernels_in_use(const job *j)
{
    return j->kernels == NULL ? kernel_names[j->settings->kernels]
                              : lac_compressor_kernels(j->kernels);
}

static cJSON *entry_json(const entry *e)
{
    const cli_bench_result *const r = &e->result;
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "spec", e->spec);
    cJSON_AddNumberToObject(o, "encode_gbps", gbps(e, &r->encode));
    cJSON_AddNumberToObject(o, "decode_add_gbps", gbps(e, &r->decode_add));
    cJSON_AddNumberToObject(o, "encode_add_gbps", gbps(e, &r->encode_add));
    cJSON_AddNumberToObject(o, "bits_per_value", bits_per_value(e));
    cJSON_AddNumberToObject(o, "encode_memcpys", memcpys(&r->encode));
    cJSON_AddNumberToObject(o, "decode_add_memcpys", memcpys(&r->decode_add));
    cJSON_AddNumberToObject(o, "encode_add_memcpys", memcpys(&r->encode_add));
    cJSON_AddNumberToObject(o, "break_even_mbit", break_even(e));
    cJSON_AddNumberToObject(o, "rows", (double)r->shape.rows);
    cJSON_AddNumberToObject(o, "cols", (double)r->shape.cols);
    return o;
}

static cJSON *report_json(const job *j)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "values", (double)j->bench.n);
    cJSON_AddNumberToObject(o, "runs", (double)j->bench.runs);
    cJSON_AddStringToObject(o, "kernels", kernels_in_use(j));
    cJSON_AddNumberToObject(o, "memcpy_gbps", memcpy_gbps(j));
    cJSON *const compressors = cJSON_AddArrayToObject(o, "compressors");
    for (size_t i = 0; i < j->count; i++) {
        cJSON_AddItemToArray(compressors, entry_json(&j->entries[i]));
    }
    cJSON *const algorithms = cJSON_AddArrayToObject(o, "algorithms");
    for (size_t i = 0; i < j->step_count; i++) {
        cJSON_AddItemToArray(algorithms, cli_bench_step_json(&j->steps[i]));
    }
    return o;
}

static void read_machine(char *text, size_t size)
{
    char line[256];
    (void)snprintf(text, size, "an unknown processor");
    FILE *const info = fopen("/proc/cpuinfo", "r");
    while (info != NULL && fgets(line, sizeof(line), info) != NULL) {
        const char *const colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            const char *const model = colon + 1 + strspn(colon + 1, " \t");
            (void)snprintf(
                text, size, "%.*s", (int)strcspn(model, "\n"), model);
            break;
        }
    }
    if (info != NULL) {
        (void)fclose(info);
    }
}

// Both figures in one cell, so that one heading stands above them.
static void add_speed(cli_table *t, const entry *e, const cli_bench_time *time)
{
    cli_table_add(t, "%6.1f  %7.2f", gbps(e, time), memcpys(time));
}

static void add_words(cli_table *t, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cli_table_add(t, "%s", words[i]);
    }
}

static void add_speed_limit(cli_table *t, double mbit)
{
    if (isnan(mbit)) {
        cli_table_add(t, "-");
    } else {
        cli_table_add(t, "%.1f", mbit / 1000);
    }
}

static void report_compressors(const job *j)
{
    static const char *const heads[] = {
        "",
        "bits a",
        "encode    ",
        "decode-add  ",
        "with memory ",
        "break-even",
        "compressor",
        "value",
        "GB/s  memcpys",
        "GB/s  memcpys",
        "GB/s  memcpys",
        "Gbit/s"};
    cli_table t = cli_table_make("lrrrrr", NULL);
    add_words(&t, heads, sizeof(heads) / sizeof(heads[0]));
    for (size_t i = 0; i < j->count; i++) {
        const entry *const e = &j->entries[i];
        cli_table_add(&t, "%s", e->spec);
        cli_table_add(&t, "%.2f", bits_per_value(e));
        add_speed(&t, e, &e->result.encode);
        add_speed(&t, e, &e->result.decode_add);
        add_speed(&t, e, &e->result.encode_add);
        add_speed_limit(&t, break_even(e));
    }
    cli_table_print(&t, stdout);
    printf(
        "\nGB/s counts the floats, 4 bytes each; memcpys is the time next to a "
        "copy of them:\n1.00 is as fast, less is faster. With memory is "
        "encoding with error memory, settled.\nOver a link slower than the "
        "break-even, sending less outweighs encode and decode-add.\n");
}

static void report_table(const job *j)
{
    char machine[128], values[CLI_GROUPED_SIZE];
    read_machine(machine, sizeof(machine));
    printf("%s, %s kernels, one thread\n", machine, kernels_in_use(j));
    printf(
        "%s value%s, medians of %zu run%s; a memcpy takes %.2f ms, %.1f GB/s"
        "\n\n",
        cli_grouped(j->bench.n, values), j->bench.n == 1 ? "" : "s",
        j->bench.runs, j->bench.runs == 1 ? "" : "s", 1e3 * memcpy_seconds(j),
        memcpy_gbps(j));
    if (j->count > 0) {
        report_compressors(j);
    }
    if (j->count > 0 && j->step_count > 0) {
        printf("\n");
    }
    if (j->step_count > 0) {
        cli_bench_step_table(j->steps, j->step_count);
    }
}

static lac_status measure(job *j)
{
    const settings *const s = j->settings;
    cli_progress progress = cli_progress_begin(j->count + j->step_count);
    lac_status status = cli_bench_init(&j->bench, s->values, s->runs, s->seed);
    for (size_t i = 0; i < j->count && status == LAC_OK; i++) {
        cli_progress_step(&progress, i, j->entries[i].spec);
        status = cli_bench_measure(
            &j->bench, j->entries[i].c, &j->entries[i].result);
    }
    for (size_t i = 0; i < j->step_count && status == LAC_OK; i++) {
        cli_progress_step(&progress, j->count + i, j->steps[i].spec);
        status = cli_bench_step_measure(&j->steps[i], &j->step_options);
    }
    cli_progress_end(&progress);
    return status;
}

// Takes what the user named, or something usual. Returns an exit code.
static int add_spec(job *j, const char *spec, bool named)
{
    if (cli_bench_is_algorithm(spec)) {
        cli_bench_step *const step = &j->steps[j->step_count++];
        step->spec = spec;
        return cli_bench_step_check(step, &j->step_options) == LAC_OK
                   ? CLI_GOOD
                   : cli_bad_spec_of("bench", "algorithms", spec);
    }
    entry *const e = &j->entries[j->count];
    e->spec = spec;
    const lac_status status =
        lac_compressor_open(&e->c, e->spec, LAC_FORM_PLAIN);
    if (status == LAC_ERR_NOTFOUND && !named) {
        return CLI_GOOD;
    }
    if (status != LAC_OK) {
        return cli_bad_spec("bench", e->spec);
    }
    j->count++;
    return lac_compressor_use_kernels(
               e->c, kernel_names[j->settings->kernels]) == LAC_OK
               ? CLI_GOOD
               : cli_failed();
}

// Opens everything before anything is measured, so that a wrong spec is told
// at once. Returns an exit code.
static int open_entries(job *j, size_t count, char *const *arguments)
{
    const bool named = count > 0;
    const size_t specs = named ? count : USUAL_COUNT;
    for (size_t i = 0; i < specs; i++) {
        const int code = add_spec(j, named ? arguments[i] : usual[i], named);
        if (code != CLI_GOOD) {
            return code;
        }
    }
    if (j->step_options.compressor != NULL && j->step_count == 0) {
        (void)!lac_fail(
            LAC_ERR_INVALID,
            "--compressor: is the one that algorithms use, and none is named; "
            "a compressor by itself is measured as a SPEC");
        return cli_misused("bench");
    }
    if (lac_compressor_open(&j->kernels, "identity", LAC_FORM_PLAIN) !=
            LAC_OK ||
        lac_compressor_use_kernels(
            j->kernels, kernel_names[j->settings->kernels]) != LAC_OK) {
        return cli_failed();
    }
    return CLI_GOOD;
}

static int bench(job *j, size_t count, char *const *arguments)
{
    const int code = open_entries(j, count, arguments);
    if (code != CLI_GOOD) {
        return code;
    }
    if (measure(j) != LAC_OK) {
        return cli_failed();
    }
    if (j->settings->json) {
        return cli_json_print(report_json(j), stdout);
    }
    report_table(j);
    return CLI_GOOD;
}

static int run(const void *given, size_t count, char *const *arguments)
{
    const settings *const s = given;
    job j = {
        .settings = s,
        .step_options =
            {
                .runs = s->runs,
                .seed = s->seed,
                .kernels = kernel_names[s->kernels],
                .compressor = cli_given(s->compressor),
            },
    };
    const int code = bench(&j, count, arguments);
    for (size_t i = 0; i < j.count; i++) {
        lac_compressor_close(j.entries[i].c);
    }
    lac_compressor_close(j.kernels);
    cli_bench_fini(&j.bench);
    return code;
}

const cli_command cmd_bench = {
    .name = "bench",
    .summary = "measure how fast compressors and algorithms are",
    .arguments = "[SPEC]...",
    .arguments_max = SPECS_MAX,
    .details =
        "Measure encoding, decoding with addition, and encoding with error\n"
        "memory, on one thread, on normal deviates. Without a SPEC the usual\n"
        "compressors are measured. Each takes turns with a memcpy of the same\n"
        "floats, so that figures can be compared across machines.\n"
        "Where SPEC is an algorithm, such as powersgd:rank=2, a whole step on\n"
        "the tensors of ResNet-50 is measured, without a network; models are\n"
        "mixed by two workers, each with a thread of its own.",
    .options = options,
    .settings_size = sizeof(settings),
    .run = run,
};
