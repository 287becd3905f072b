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
     .help = "run to compare with; see above"},
    CLI_OPTION_JSON(settings),
    {0},
};

// A single argument must be a run; of several, those that are none are skipped.
static lac_status read_runs(
    compare_set *set, const settings *s, size_t count, char *const *folders)
{
    LAC_TRY(compare_set_name_baseline(set, s->baseline));
    for (size_t i = 0; i < count; i++) {
        if (count > 1 && compare_is_no_run(folders[i])) {
            compare_skip(folders[i]);
        } else {
            LAC_TRY(compare_set_add(set, folders[i]));
        }
    }
    return set->count == 0
               ? lac_fail(
                     LAC_ERR_INVALID,
                     "none of the %zu arguments is a run of `laconic train`",
                     count)
               : compare_set_arrange(set);
}

static int compare_run(const void *given, size_t count, char *const *folders)
{
    const settings *const s = given;
    compare_set set;
    int code = CLI_GOOD;
    compare_set_open(&set);
    if (read_runs(&set, s, count, folders) != LAC_OK) {
        code = cli_failed();
    } else if (s->json) {
        code = cli_json_print(compare_report_json(&set), stdout);
    } else {
        compare_report_print(&set, stdout);
    }
    compare_set_close(&set);
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
        "`laconic train` at their end, and how many times fewer bytes each\n"
        "sent than the baseline. RUN is the folder of a run, or one with\n"
        "folders of runs. Runs that differ only by their seed are one row:\n"
        "their mean and standard deviation. Accuracy and averaged: the mean\n"
        "of the workers' own models and the averaged model, on the whole test\n"
        "set; ~ marks a run that was tested on a sample only. The time is\n"
        "that of a mean worker: computation, compression, waiting and, where\n"
        "it was recorded, testing.\n"
        "Runs of several models or data have a table each. Its baseline is\n"
        "that of --baseline if the table has it, else the first run without\n"
        "compression, else the first. Of several arguments, those that are no\n"
        "runs are skipped.",
    .example = "Compare two runs with an exact one:\n"
               "\n"
               "    laconic compare runs/exact runs/choco runs/small",
    .options = options,
    .settings_size = sizeof(settings),
    .run = compare_run,
};
