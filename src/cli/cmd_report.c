// SPDX-License-Identifier: MIT
// laconic report: runs, traces and plans as one HTML page.
#include <stdio.h>

#include "cli/options/command.h"
#include "cli/page/document.h"
#include "cli/report/table.h"
#include "data/output.h"

enum { RUNS_MAX = 1000 };

typedef struct settings {
    const char *out, *baseline;
} settings;

static const cli_option options[] = {
    {.name = "out",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, out),
     .value = "FILE.html",
     .help = "file to write"},
    {.name = "baseline",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, baseline),
     .value = "DIR",
     .default_value = "",
     .help = "run to compare with; as in `laconic compare`"},
    {0},
};

static int report_write(const void *given, size_t count, char *const *paths)
{
    const settings *const s = given;
    char text[CLI_BYTES_SIZE];
    page_inputs in;
    size_t len = 0;
    int code = CLI_GOOD;
    FILE *const stream = data_file_is_stdout(s->out) ? stderr : stdout;
    if (page_inputs_open(&in, paths, count, s->baseline, s->out) != LAC_OK ||
        page_document_write(&in, s->out, &len) != LAC_OK) {
        code = cli_failed();
    } else {
        (void)fprintf(stream, "%s: %s\n", s->out, cli_bytes((double)len, text));
    }
    page_inputs_close(&in);
    return code;
}

const cli_command cmd_report = {
    .name = "report",
    .summary = "write an HTML page about training runs",
    .arguments = "RUN...",
    .arguments_min = 1,
    .arguments_max = RUNS_MAX,
    .details =
        "Write one page with the results, curves, times, networks and "
        "settings\n"
        "of runs, to open in a browser. It needs no other file and no "
        "network.\n"
        "RUN is the folder of a run of `laconic train`, a folder with folders\n"
        "of runs, a trace of `laconic average --trace`, or the output of\n"
        "`laconic plan --json`, with --run or without. Runs of several models\n"
        "or data are groups with a heading and a baseline each, as in\n"
        "`laconic compare`. Of several arguments, others are skipped.",
    .example = "Write a page about all runs of a folder:\n"
               "\n"
               "    laconic report runs/* --out report.html",
    .options = options,
    .settings_size = sizeof(settings),
    .run = report_write,
};
