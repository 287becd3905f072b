// SPDX-License-Identifier: MIT
// Passes the output of one process on, a line at a time, so that lines of
// several processes do not mix.
#ifndef LACONIC_CLI_PROCESS_LINES_H
#define LACONIC_CLI_PROCESS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLI_LINE_MAX = 4096 };

// The output of a worker.
typedef struct cli_lines {
    int file; // -1: closed
    uint32_t rank;
    size_t len;
    char text[CLI_LINE_MAX]; // a line that has not ended
} cli_lines;

// cli_lines_pull passes on what can be read now, to stderr; each line with the
// worker's name in front. It closes the file at its end.
void cli_lines_pull(cli_lines *lines);

// cli_lines_close passes on the rest and closes the file.
void cli_lines_close(cli_lines *lines);

#endif
