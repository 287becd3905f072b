// SPDX-License-Identifier: MIT
// laconic bench: how fast compressors and algorithms are on this machine, next
// to memcpy.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/compressor.h"
#include "cli/bench/report.h"
#include "cli/bench/step.h"
#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "cli/report/progress.h"
#include "cli/report/table.h"

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
     .default_value = "best",
     .choices = "best|portable|avx2",
     .help = "which code runs"},
    {.name = "values",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, values),
     .value = "N",
     .default_value = "25557032",
     .min = 1,
     .max = 1 << 30,
     .help = "how many floats to compress"},
    {.name = "runs",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, runs),
     .value = "R",
     .default_value = "7",
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

enum {
    USUAL_COUNT = sizeof(usual) / sizeof(usual[0]),
    SPECS_MAX = CLI_BENCH_MOST
};

typedef struct job {
    const settings *settings;
    cli_bench_entry entries[SPECS_MAX];
    lac_compressor *compressors[SPECS_MAX]; // of the entries
    size_t count;
    cli_bench_step steps[SPECS_MAX]; // of algorithms
    size_t step_count;
    cli_bench_step_options step_options;
    lac_compressor *kernels; // knows their name
    cli_bench bench;
} job;

static lac_status measure(job *j)
{
    const settings *const s = j->settings;
    cli_progress progress = cli_progress_begin(j->count + j->step_count);
    lac_status status = cli_bench_init(&j->bench, s->values, s->runs, s->seed);
    for (size_t i = 0; i < j->count && status == LAC_OK; i++) {
        cli_progress_step(&progress, i, j->entries[i].spec);
        status = cli_bench_measure(
            &j->bench, j->compressors[i], &j->entries[i].result);
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
    lac_compressor *c = NULL;
    const lac_status status = lac_compressor_open(&c, spec, LAC_FORM_PLAIN);
    if (status == LAC_ERR_NOTFOUND && !named) {
        return CLI_GOOD;
    }
    if (status != LAC_OK) {
        return cli_bad_spec("bench", spec);
    }
    j->entries[j->count].spec = spec;
    j->compressors[j->count++] = c;
    return lac_compressor_use_kernels(c, kernel_names[j->settings->kernels]) ==
                   LAC_OK
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
    const cli_bench_report report = {
        .values = j->bench.n,
        .runs = j->bench.runs,
        .kernels = lac_compressor_kernels(j->kernels),
        .entries = j->entries,
        .count = j->count,
        .steps = j->steps,
        .step_count = j->step_count,
    };
    if (j->settings->json) {
        return cli_json_print(cli_bench_json(&report), stdout);
    }
    cli_bench_table(&report);
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
        lac_compressor_close(j.compressors[i]);
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
        "floats, so that figures can be compared across machines; of large\n"
        "tensors nothing is in the caches when either begins.\n"
        "Where SPEC is an algorithm, such as powersgd:rank=2, a whole step on\n"
        "the tensors of ResNet-50 is measured, without a network; models are\n"
        "mixed by two workers, each with a thread of its own.",
    .options = options,
    .settings_size = sizeof(settings),
    .run = run,
};
