// SPDX-License-Identifier: MIT
// laconic compare: a table of training runs against a baseline.
#include "cli/compare/report.h"
#include "cli/options/command.h"
#include "cli/report/table.h"

enum { RUNS_MAX = 1000 };

typedef struct settings {
    const char *baseline;
    bool json;
} settings;

static const cli_option options[] = {
    {.name = "baseline",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, baseline),
     .value = "DIR",
     .default_value = "",
     .help = "run to compare with; without it, the first"},
    CLI_OPTION_JSON(settings),
    {0},
};

static lac_status read_runs(
    compare_runs *c, const settings *s, size_t count, char *const *folders)
{
    if (*s->baseline != '\0') {
        LAC_TRY(compare_runs_add(c, s->baseline));
    }
    for (size_t i = 0; i < count; i++) {
        LAC_TRY(compare_runs_add(c, folders[i]));
    }
    return compare_runs_arrange(c);
}

static int compare_run(const void *given, size_t count, char *const *folders)
{
    const settings *const s = given;
    compare_runs c;
    int code = CLI_GOOD;
    compare_runs_open(&c);
    if (read_runs(&c, s, count, folders) != LAC_OK) {
        code = cli_failed();
    } else if (s->json) {
        code = cli_json_print(compare_report_json(&c), stdout);
    } else {
        compare_report_print(&c, stdout);
    }
    compare_runs_close(&c);
    return code;
}

const cli_command cmd_compare = {
    .name = "compare",
    .summary = "compare training runs with a baseline",
    .arguments = "RUN...",
    .arguments_min = 1,
    .arguments_max = RUNS_MAX,
    .details =
        "Print the accuracy or perplexity, loss, bytes and time of runs of\n"
        "`laconic train` after their last epoch, and how many times fewer\n"
        "bytes each sent than the baseline. RUN is the folder of a run, or "
        "one\n"
        "with folders of runs. Runs that differ only by their seed are one "
        "row:\n"
        "their mean and standard deviation. Accuracy is the mean of the\n"
        "workers' own models. The time is that of a mean worker: computation,\n"
        "compression, waiting and, where it was recorded, testing.",
    .example = "Compare two runs with an exact one:\n"
               "\n"
               "    laconic compare runs/exact runs/choco runs/small",
    .options = options,
    .settings_size = sizeof(settings),
    .run = compare_run,
};
