// SPDX-License-Identifier: MIT
// laconic bench: the speed of compressors and algorithms on this machine,
// relative to memcpy, and compared with an earlier run.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/compare.h"
#include "cli/bench/job.h"
#include "cli/bench/report.h"
#include "cli/files/layout.h"
#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "cli/report/table.h"

typedef struct settings {
    const char *compressor;
    const char *model;
    const char *layout;
    uint64_t degree;
    uint32_t kernels;
    uint32_t prefetch;
    uint64_t threads;
    uint64_t values;
    uint64_t runs;
    uint64_t seed;
    const char *compare;
    bool json;
    uint64_t given; // bit i: option i
} settings;

// The model whose tensors a step has if the user names none.
static const char default_model[] = "resnet50";

#define KERNELS "best|portable|avx2|avx512|neon"

static const char *const kernel_names[] = {
    "best", "portable", "avx2", "avx512", "neon"};

enum { PREFETCH_AUTO, PREFETCH_ON, PREFETCH_OFF };

static const char *const prefetch_settings[] = {
    [PREFETCH_AUTO] = "",
    [PREFETCH_ON] = ":prefetch=on",
    [PREFETCH_OFF] = ":prefetch=off",
};

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
    {.name = "threads",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, threads),
     .value = "N",
     .default_value = "1",
     .min = 1,
     .max = CLI_BENCH_THREADS_MAX,
     .help = "threads that share a large tensor"},
    {.name = "values",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, values),
     .value = "N",
     .default_value = "25557032",
     .min = 1,
     .max = CLI_BENCH_VALUES_MAX,
     .help = "floats that a compressor gets"},
    {.name = "runs",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, runs),
     .value = "R",
     .default_value = "7",
     .min = 1,
     .max = CLI_BENCH_RUNS_MAX,
     .help = "measurements, for the median"},
    CLI_OPTION_SEED(settings),
    {.name = "compare",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, compare),
     .value = "FILE",
     .default_value = "",
     .help = "output of an earlier --json, to measure and compare with"},
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
    KERNELS_COUNT = sizeof(kernel_names) / sizeof(kernel_names[0]),
};

typedef struct job {
    settings settings; // those of --compare among them
    cli_bench_job all;
    lac_layout *layout;        // of the steps that the user names
    char chosen[KERNELS_SIZE]; // kernels, as the library names them
    lac_compressor *kernels;   // names the kernels in use
    cli_bench_saved saved;
} job;

static const char *model_of(const settings *s)
{
    return *s->model == '\0' && *s->layout == '\0' ? default_model : s->model;
}

// Opens the layout for the first algorithm. Returns an exit code.
static int open_bench_layout(job *j)
{
    const settings *const s = &j->settings;
    return j->layout != NULL
               ? CLI_GOOD
               : cli_layout_open("bench", model_of(s), s->layout, &j->layout);
}

static int bench_add_step(job *j, const char *spec)
{
    const settings *const s = &j->settings;
    const int code = open_bench_layout(j);
    if (code != CLI_GOOD) {
        return code;
    }
    const cli_bench_step step = {
        .spec = spec,
        .compressor = cli_given(s->compressor),
        .model = cli_given(model_of(s)),
        .layout = *s->layout != '\0' ? s->layout : model_of(s),
    };
    return cli_bench_job_add_step(
               &j->all, &step, j->layout, (uint32_t)s->degree) == LAC_OK
               ? CLI_GOOD
               : cli_bad_spec("bench", "algorithms", spec);
}

// Opens one spec, of the user (`named`) or a usual one. Returns an exit code.
static int add_spec(job *j, const char *spec, bool named)
{
    if (cli_bench_is_algorithm(spec)) {
        return bench_add_step(j, spec);
    }
    const lac_status status = cli_bench_job_add_compressor(&j->all, spec);
    if (status == LAC_ERR_NOTFOUND && !named) {
        return CLI_GOOD;
    }
    return status == LAC_OK ? CLI_GOOD
                            : cli_bad_spec("bench", "compressors", spec);
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

// Opens what the user named. Returns an exit code.
static int open_named(job *j, size_t count, char *const *arguments)
{
    const bool named = count > 0;
    const size_t specs = named ? count : USUAL_COUNT;
    for (size_t i = 0; i < specs; i++) {
        const int code = add_spec(j, named ? arguments[i] : usual[i], named);
        if (code != CLI_GOOD) {
            return code;
        }
    }
    return CLI_GOOD;
}

// Reports a failure that is about the contents of the saved file. Returns an
// exit code.
static int saved_failed(const job *j, lac_status status)
{
    (void)!lac_fail(status, "%s: %s", j->saved.path, lac_error_message());
    return cli_failed();
}

// Opens the rows of the saved file. Returns an exit code.
static int open_saved(job *j, size_t count, char *const *arguments)
{
    const settings *const s = &j->settings;
    const cli_bench_choice choice = {
        .specs = arguments,
        .count = count,
        .compressor = s->compressor,
        .model = s->model,
        .layout = s->layout,
        .degree = s->degree,
    };
    if (cli_bench_saved_choose(&j->saved, &choice) != LAC_OK) {
        return cli_misused("bench");
    }
    for (size_t i = 0; i < j->saved.count; i++) {
        const lac_status status =
            cli_bench_job_add_row(&j->all, &j->saved.rows[i]);
        if (status != LAC_OK) {
            return saved_failed(j, status);
        }
    }
    return CLI_GOOD;
}

// Opens everything. Returns an exit code.
static int open_job(job *j, size_t count, char *const *arguments)
{
    const settings *const s = &j->settings;
    j->all.values = s->values;
    j->all.runs = s->runs;
    j->all.seed = s->seed;
    j->all.kernels = j->chosen;
    j->all.threads = (uint32_t)j->settings.threads;
    const int code = j->all.saved != NULL ? open_saved(j, count, arguments)
                                          : open_named(j, count, arguments);
    if (code != CLI_GOOD) {
        return code;
    }
    return j->all.step_count > 0 || check_alone(s) == LAC_OK
               ? CLI_GOOD
               : cli_misused("bench");
}

static bool was_given(const settings *s, const char *name)
{
    size_t i = 0;
    while (strcmp(options[i].name, name) != 0) {
        i++;
    }
    return (s->given >> i & 1) != 0;
}

// Takes the kernels of the saved file, unless the user chose others.
static lac_status take_kernels(job *j)
{
    settings *const s = &j->settings;
    uint32_t found = KERNELS_COUNT - 1;
    while (found > 0 && strcmp(kernel_names[found], j->saved.kernels) != 0) {
        found--;
    }
    if (found == 0) {
        char name[CLI_CELL_SIZE];
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: \"kernels\" is \"%s\", expected portable, avx2, avx512 or "
            "neon",
            j->saved.path, cli_fitted(j->saved.kernels, KERNELS_SIZE, name));
    }
    if (!was_given(s, "kernels")) {
        s->kernels = found;
        s->prefetch = was_given(s, "prefetch") ? s->prefetch
                      : j->saved.prefetch      ? PREFETCH_ON
                                               : PREFETCH_OFF;
    }
    return LAC_OK;
}

// Reads the saved file and takes its settings. Returns an exit code.
static int read_saved(job *j)
{
    settings *const s = &j->settings;
    if (cli_bench_saved_read(s->compare, &j->saved) != LAC_OK ||
        cli_bench_saved_check(&j->saved) != LAC_OK ||
        take_kernels(j) != LAC_OK) {
        return cli_failed();
    }
    if (was_given(s, "values") && s->values != j->saved.values) {
        (void)!lac_fail(
            LAC_ERR_INVALID,
            "bench: --values is %" PRIu64 ", expected %" PRIu64 " as in %s",
            s->values, j->saved.values, j->saved.path);
        return cli_misused("bench");
    }
    s->values = j->saved.values;
    s->runs = was_given(s, "runs") ? s->runs : j->saved.runs;
    s->threads = was_given(s, "threads") ? s->threads : j->saved.threads;
    return CLI_GOOD;
}

static lac_status use_chosen_kernels(job *j)
{
    const settings *const s = &j->settings;
    (void)snprintf(
        j->chosen, sizeof(j->chosen), "%s%s", kernel_names[s->kernels],
        prefetch_settings[s->prefetch]);
    LAC_TRY(lac_compressor_open(&j->kernels, "identity", LAC_FORM_PLAIN));
    return lac_compressor_use_kernels(j->kernels, j->chosen);
}

// Reports kernels that this machine lacks before anything else. Returns an exit
// code.
static int choose_kernels(job *j)
{
    const lac_status status = use_chosen_kernels(j);
    if (status == LAC_OK) {
        return CLI_GOOD;
    }
    return j->all.saved == NULL || was_given(&j->settings, "kernels")
               ? cli_failed()
               : saved_failed(j, status);
}

static int report_comparison(const job *j, const cli_bench_report *report)
{
    const cli_bench_comparison c = {
        .saved = &j->saved,
        .report = report,
        .entries = j->all.entry_rows,
        .steps = j->all.step_rows,
    };
    int code = CLI_GOOD;
    if (j->settings.json) {
        cJSON *const o = cli_bench_json(report);
        cJSON_AddItemToObject(o, "comparison", cli_bench_comparison_json(&c));
        code = cli_json_print(o, stdout);
    } else {
        cli_bench_comparison_print(&c);
    }
    return code == CLI_GOOD && cli_bench_comparison_check(&c) != LAC_OK
               ? cli_failed()
               : code;
}

static int report_job(const job *j)
{
    const cli_bench_report report = {
        .values = j->all.values,
        .runs = j->all.runs,
        .kernels = lac_compressor_kernels(j->kernels),
        .prefetch = lac_compressor_prefetches(j->kernels),
        .threads = j->all.threads,
        .entries = j->all.entries,
        .count = j->all.count,
        .steps = j->all.steps,
        .step_count = j->all.step_count,
    };
    if (j->all.saved != NULL) {
        return report_comparison(j, &report);
    }
    if (j->settings.json) {
        return cli_json_print(cli_bench_json(&report), stdout);
    }
    cli_bench_table(&report);
    return CLI_GOOD;
}

static int bench(job *j, size_t count, char *const *arguments)
{
    int code = CLI_GOOD;
    if (was_given(&j->settings, "compare")) {
        j->all.saved = &j->saved;
        code = read_saved(j);
    }
    if (code == CLI_GOOD) {
        code = choose_kernels(j);
    }
    if (code == CLI_GOOD) {
        code = open_job(j, count, arguments);
    }
    if (code != CLI_GOOD) {
        return code;
    }
    return cli_bench_job_measure(&j->all) == LAC_OK ? report_job(j)
                                                    : cli_failed();
}

static int bench_run(const void *given, size_t count, char *const *arguments)
{
    job j = {.settings = *(const settings *)given};
    const int code = bench(&j, count, arguments);
    cli_bench_job_close(&j.all);
    lac_layout_close(j.layout);
    lac_compressor_close(j.kernels);
    cli_bench_saved_free(&j.saved);
    return code;
}

const cli_command cmd_bench = {
    .name = "bench",
    .summary = "measure the speed of compressors and algorithms",
    .arguments = "[SPEC]...",
    .arguments_max = SPECS_MAX,
    .completes = "@compressors|@algorithms",
    .details =
        "Measure encode, decode-add, and encode with error memory, on normal\n"
        "deviates, in one thread or those of --threads. Without a SPEC,\n"
        "measure the usual compressors. Each measurement alternates with a\n"
        "memcpy of the same values, so that results of different machines can\n"
        "be compared. The caches are flushed before each measurement of a\n"
        "large tensor.\n"
        "If SPEC is an algorithm, such as powersgd:rank=2, measure a whole\n"
        "step on the tensors of a model, of ResNet-50 unless --model or\n"
        "--layout names another, without a network. The step is that of one\n"
        "worker with --degree neighbours or, if it averages gradients, other\n"
        "workers; without --degree, with one neighbour or alone. The workers\n"
        "are threads that compute one at a time.\n"
        "With --compare FILE, measure what FILE has, the output of an earlier\n"
        "`laconic bench --json` on the same processor, and print the change "
        "of\n"
        "every figure, which is a ratio to memcpy. What is more than 10 %\n"
        "slower is measured once more, and the faster result counts; the exit\n"
        "code is 1 if it is still slower. SPEC, --compressor, --model,\n"
        "--layout and --degree choose among the rows of FILE. Kernels,\n"
        "prefetch, threads and runs are those of FILE unless they are given;\n"
        "more --runs make the result more certain.",
    .example = "Compare two compressors on this machine:\n"
               "\n"
               "    laconic bench natural dithering:levels=127\n"
               "\n"
               "Save a run, and compare with it later:\n"
               "\n"
               "    laconic bench --json natural sign > saved.json\n"
               "    laconic bench --compare saved.json --runs 21",
    .options = options,
    .settings_size = sizeof(settings),
    .given_offset = offsetof(settings, given),
    .run = bench_run,
};
