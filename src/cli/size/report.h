// SPDX-License-Identifier: MIT
// What `laconic size` has found out, and how it tells.
#ifndef LACONIC_CLI_SIZE_REPORT_H
#define LACONIC_CLI_SIZE_REPORT_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include <laconic/laconic.h>

// What a step costs, and the names the user gave. Borrows everything.
typedef struct cli_size {
    const char *model;  // a spec, or NULL
    const char *layout; // a file, or NULL
    const char *topology;
    lac_algorithm_options algorithm;
    lac_cost cost;
    size_t values_kept;   // by the compressor, if there is one
    double *tensor_bytes; // payload of each tensor, or NULL if not known
} cli_size;

// cli_size_json makes the object of --json.
cJSON *cli_size_json(const cli_size *s);

// cli_size_table prints for people: the numbers, and where the bytes are.
void cli_size_table(const cli_size *s, FILE *stream);

#endif
