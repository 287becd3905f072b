// SPDX-License-Identifier: MIT
// laconic manual: the manual pages of the program and of its commands.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli/manual/page.h"
#include "cli/options/commands.h"

typedef struct settings {
    char unused;
} settings;

static const cli_option options[] = {
    {0},
};

// Packages set SOURCE_DATE_EPOCH, so that builds can be reproduced.
static lac_status page_date(time_t *out)
{
    const char *const text = getenv("SOURCE_DATE_EPOCH");
    char *end = NULL;
    if (text == NULL) {
        *out = time(NULL);
        return LAC_OK;
    }
    const long long seconds = strtoll(text, &end, 10);
    const long long latest = 253402300799; // the end of the year 9999
    if (*text < '0' || *text > '9' || *end != '\0' || seconds > latest) {
        return lac_fail(
            LAC_ERR_INVALID,
            "SOURCE_DATE_EPOCH is \"%.100s\", expected seconds since 1970",
            text);
    }
    *out = (time_t)seconds;
    return LAC_OK;
}

static int manual_run(const void *given, size_t count, char *const *arguments)
{
    (void)given;
    time_t date = 0;
    if (page_date(&date) != LAC_OK) {
        return cli_failed();
    }
    if (count == 0) {
        manual_program(stdout, date);
        return CLI_GOOD;
    }
    const cli_command *const command = cli_command_find(arguments[0]);
    if (command == NULL) {
        (void)!lac_fail(
            LAC_ERR_NOTFOUND, "manual: no command is named \"%.100s\"",
            arguments[0]);
        return cli_misused("manual");
    }
    return manual_command(stdout, command, date) == LAC_OK ? CLI_GOOD
                                                           : cli_failed();
}

const cli_command cmd_manual = {
    .name = "manual",
    .summary = "print the manual page of a command",
    .arguments = "[COMMAND]",
    .arguments_max = 1,
    .completes = "@commands",
    .details =
        "Print the manual page of COMMAND, or without it the page laconic(1),\n"
        "as mdoc source, which `man -l` and `mandoc` show. After `make\n"
        "install`, `man laconic-train` shows the page of `laconic train`.",
    .example = "Read a page of a command that is not installed:\n"
               "\n"
               "    laconic manual train | man -l -",
    .options = options,
    .settings_size = sizeof(settings),
    .run = manual_run,
};
