// SPDX-License-Identifier: MIT
// The names of the workers in a peers file, for messages: the library numbers
// workers.
#ifndef LACONIC_CLI_LAUNCH_NAMES_H
#define LACONIC_CLI_LAUNCH_NAMES_H

#include <stddef.h>
#include <stdint.h>

// Room for a name; longer ones are rejected when workers join.
enum { CLI_NAME_SIZE = 64 };

// The names by rank. All zero: none.
typedef struct cli_names {
    char (*items)[CLI_NAME_SIZE];
    uint32_t count;
} cli_names;

// cli_names_read reads the names of the peers file that `spec` has. Without
// one, or if it cannot be read, there are none: joining reports what is wrong.
void cli_names_read(cli_names *names, const char *spec);
void cli_names_clear(cli_names *names);

// cli_names_of returns the name of a worker, or NULL.
const char *cli_names_of(const cli_names *names, uint32_t rank);

// cli_names_insert copies a message, in which "worker 1" becomes "worker 1
// (berta)". It is cut to fit.
void cli_names_insert(
    const cli_names *names, const char *message, char *out, size_t cap);

#endif
