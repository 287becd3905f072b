// SPDX-License-Identifier: MIT
// laconic bench: the speed of compressors and algorithms on this machine,
// relative to memcpy.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/compressor.h"
#include "cli/bench/report.h"
#include "cli/bench/step.h"
#include "cli/files/layout.h"
#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "cli/report/progress.h"
#include "cli/report/table.h"

typedef struct settings {
    const char *compressor;
    const char *model;
    const char *layout;
    uint64_t degree;
    uint32_t kernels;
    uint32_t prefetch;
    uint64_t values;
    uint64_t runs;
    uint64_t seed;
    bool json;
} settings;

// The model whose tensors a step has if the user names none.
static const char default_model[] = "resnet50";

#define KERNELS "best|portable|avx2|avx512|neon"

static const char *const kernel_names[] = {
    "best", "portable", "avx2", "avx512", "neon"};

static const char *const prefetch_settings[] = {
    "", ":prefetch=on", ":prefetch=off"};

static const cli_option options[] = {
    CLI_OPTION_COMPRESSOR(settings),
    CLI_OPTIONS_LAYOUT(settings),
    {.name = "degree",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, degree),
     .value = "D",
     .default_value = "",
     .min = 1,
     .max = CLI_BENCH_DEGREE_MAX,
     .help = "workers whose messages a step gets"},
    {.name = "kernels",
     .type = CLI_OPTION_CHOICE,
     .offset = offsetof(settings, kernels),
     .value = "NAME",
     .default_value = "best",
     .choices = KERNELS,
     .help = "implementation to measure"},
    {.name = "prefetch",
     .type = CLI_OPTION_CHOICE,
     .offset = offsetof(settings, prefetch),
     .value = "WHEN",
     .default_value = "auto",
     .choices = "auto|on|off",
     .help = "whether kernels prefetch; auto: as suits this processor"},
    {.name = "values",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, values),
     .value = "N",
     .default_value = "25557032",
     .min = 1,
     .max = 1 << 30,
     .help = "floats that a compressor gets"},
    {.name = "runs",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, runs),
     .value = "R",
     .default_value = "7",
     .min = 1,
     .max = 10000,
     .help = "measurements, for the median"},
    CLI_OPTION_SEED(settings),
    CLI_OPTION_JSON(settings),
    {0},
};

// What is measured if the user names nothing. Compressors that this build lacks
// are skipped.
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

enum {
    USUAL_COUNT = sizeof(usual) / sizeof(usual[0]),
    SPECS_MAX = CLI_BENCH_MAX,
    KERNELS_SIZE = 32,
};

typedef struct job {
    const settings *settings;
    cli_bench_entry entries[SPECS_MAX];
    lac_compressor *compressors[SPECS_MAX]; // of the entries
    size_t count;
    cli_bench_step steps[SPECS_MAX]; // of algorithms
    size_t step_count;
    cli_bench_step_options step_options;
    lac_layout *layout;        // of the steps
    char chosen[KERNELS_SIZE]; // kernels, as the library names them
    lac_compressor *kernels;   // names the kernels in use
    cli_bench bench;
} job;

static lac_status measure_entries(job *j, cli_progress *progress)
{
    const settings *const s = j->settings;
    if (j->count == 0) {
        return LAC_OK;
    }
    LAC_TRY(cli_bench_init(&j->bench, s->values, s->runs, s->seed));
    for (size_t i = 0; i < j->count; i++) {
        cli_progress_step(progress, i, j->entries[i].spec);
        LAC_TRY(cli_bench_measure(
            &j->bench, j->compressors[i], &j->entries[i].result));
    }
    return LAC_OK;
}

static lac_status measure_steps(job *j, cli_progress *progress)
{
    for (size_t i = 0; i < j->step_count; i++) {
        cli_progress_step(progress, j->count + i, j->steps[i].spec);
        LAC_TRY(cli_bench_step_measure(&j->steps[i], &j->step_options));
    }
    return LAC_OK;
}

static lac_status measure_job(job *j)
{
    cli_progress progress = cli_progress_begin(j->count + j->step_count);
    lac_status status = measure_entries(j, &progress);
    if (status == LAC_OK) {
        status = measure_steps(j, &progress);
    }
    cli_progress_end(&progress);
    return status;
}

static const char *model_of(const settings *s)
{
    return *s->model == '\0' && *s->layout == '\0' ? default_model : s->model;
}

// Opens the layout for the first algorithm. Returns an exit code.
static int open_bench_layout(job *j)
{
    const settings *const s = j->settings;
    if (j->layout != NULL) {
        return CLI_GOOD;
    }
    const int code =
        cli_layout_open("bench", model_of(s), s->layout, &j->layout);
    j->step_options.layout = j->layout;
    return code;
}

static int bench_add_step(job *j, const char *spec)
{
    const int code = open_bench_layout(j);
    if (code != CLI_GOOD) {
        return code;
    }
    cli_bench_step *const step = &j->steps[j->step_count++];
    step->spec = spec;
    step->compressor = cli_given(j->settings->compressor);
    return cli_bench_step_check(step, &j->step_options) == LAC_OK
               ? CLI_GOOD
               : cli_bad_spec("bench", "algorithms", spec);
}

// Opens one spec, of the user (`named`) or a usual one. Returns an exit code.
static int add_spec(job *j, const char *spec, bool named)
{
    if (cli_bench_is_algorithm(spec)) {
        return bench_add_step(j, spec);
    }
    lac_compressor *c = NULL;
    const lac_status status = lac_compressor_open(&c, spec, LAC_FORM_PLAIN);
    if (status == LAC_ERR_NOTFOUND && !named) {
        return CLI_GOOD;
    }
    if (status != LAC_OK) {
        return cli_bad_spec("bench", "compressors", spec);
    }
    j->entries[j->count].spec = spec;
    j->compressors[j->count++] = c;
    return lac_compressor_use_kernels(c, j->chosen) == LAC_OK ? CLI_GOOD
                                                              : cli_failed();
}

// Rejects options of algorithms where no SPEC is one.
static lac_status check_alone(const settings *s)
{
    const struct {
        const char *name;
        bool given;
    } options_of_steps[] = {
        {"compressor", *s->compressor != '\0'},
        {"model", *s->model != '\0'},
        {"layout", *s->layout != '\0'},
        {"degree", s->degree != 0},
    };
    for (size_t i = 0; i < 4; i++) {
        if (options_of_steps[i].given) {
            return lac_fail(
                LAC_ERR_INVALID, "--%s is for algorithms, but no SPEC is one%s",
                options_of_steps[i].name,
                i == 0 ? "; name the compressor as a SPEC to measure it alone"
                       : "");
        }
    }
    return LAC_OK;
}

// Opens everything before the first measurement, so that a wrong spec is
// reported at once. Returns an exit code.
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
    if (j->step_count == 0 && check_alone(j->settings) != LAC_OK) {
        return cli_misused("bench");
    }
    return CLI_GOOD;
}

// Reports kernels that this machine lacks before anything else.
static lac_status choose_kernels(job *j)
{
    const settings *const s = j->settings;
    (void)snprintf(
        j->chosen, sizeof(j->chosen), "%s%s", kernel_names[s->kernels],
        prefetch_settings[s->prefetch]);
    j->step_options.kernels = j->chosen;
    LAC_TRY(lac_compressor_open(&j->kernels, "identity", LAC_FORM_PLAIN));
    return lac_compressor_use_kernels(j->kernels, j->chosen);
}

static int bench(job *j, size_t count, char *const *arguments)
{
    if (choose_kernels(j) != LAC_OK) {
        return cli_failed();
    }
    const int code = open_entries(j, count, arguments);
    if (code != CLI_GOOD) {
        return code;
    }
    if (measure_job(j) != LAC_OK) {
        return cli_failed();
    }
    const cli_bench_report report = {
        .values = (size_t)j->settings->values,
        .runs = (size_t)j->settings->runs,
        .kernels = lac_compressor_kernels(j->kernels),
        .prefetch = lac_compressor_prefetches(j->kernels),
        .entries = j->entries,
        .count = j->count,
        .model = cli_given(model_of(j->settings)),
        .layout = *j->settings->layout != '\0' ? j->settings->layout
                                               : model_of(j->settings),
        .steps = j->steps,
        .step_count = j->step_count,
    };
    if (j->settings->json) {
        return cli_json_print(cli_bench_json(&report), stdout);
    }
    cli_bench_table(&report);
    return CLI_GOOD;
}

static int bench_run(const void *given, size_t count, char *const *arguments)
{
    const settings *const s = given;
    job j = {
        .settings = s,
        .step_options =
            {
                .runs = s->runs,
                .seed = s->seed,
                .degree = (uint32_t)s->degree,
            },
    };
    const int code = bench(&j, count, arguments);
    for (size_t i = 0; i < j.count; i++) {
        lac_compressor_close(j.compressors[i]);
    }
    lac_compressor_close(j.kernels);
    lac_layout_close(j.layout);
    cli_bench_fini(&j.bench);
    return code;
}

const cli_command cmd_bench = {
    .name = "bench",
    .summary = "measure the speed of compressors and algorithms",
    .arguments = "[SPEC]...",
    .arguments_max = SPECS_MAX,
    .completes = "@compressors|@algorithms",
    .details =
        "Measure encode, decode-add, and encode with error memory, in one\n"
        "thread, on normal deviates. Without a SPEC, measure the usual\n"
        "compressors. Each measurement alternates with a memcpy of the same\n"
        "values, so that results of different machines can be compared. The\n"
        "caches are flushed before each measurement of a large tensor.\n"
        "If SPEC is an algorithm, such as powersgd:rank=2, measure a whole\n"
        "step on the tensors of a model, of ResNet-50 unless --model or\n"
        "--layout names another, without a network. The step is that of one\n"
        "worker with --degree neighbours or, if it averages gradients, other\n"
        "workers; without --degree, with one neighbour or alone. The workers\n"
        "are threads that compute one at a time.",
    .example = "Compare two compressors on this machine:\n"
               "\n"
               "    laconic bench natural dithering:levels=127",
    .options = options,
    .settings_size = sizeof(settings),
    .run = bench_run,
};
