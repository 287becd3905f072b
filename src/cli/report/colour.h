// SPDX-License-Identifier: MIT
// Whether output may have colours.
#ifndef LACONIC_CLI_REPORT_COLOUR_H
#define LACONIC_CLI_REPORT_COLOUR_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLI_GREEN     "\033[32m"
#define CLI_BOLD      "\033[1m"
#define CLI_NO_COLOUR "\033[0m"

// cli_colour returns whether `file` is a terminal with colours. A user sets
// NO_COLOR to anything but an empty text to have none (no-color.org).
static inline bool cli_colour(int file)
{
    const char *const none = getenv("NO_COLOR");
    const char *const terminal = getenv("TERM");
    return isatty(file) == 1 && (none == NULL || *none == '\0') &&
           terminal != NULL && *terminal != '\0' &&
           strcmp(terminal, "dumb") != 0;
}

#endif
