// SPDX-License-Identifier: MIT
// The output of `laconic size`.
#ifndef LACONIC_CLI_SIZE_REPORT_H
#define LACONIC_CLI_SIZE_REPORT_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include <laconic/laconic.h>

// The cost of a step and the names that the user gave. All pointers are
// borrowed.
typedef struct cli_size {
    const char *model;  // a spec, or NULL
    const char *layout; // a file, or NULL
    const char *topology;
    lac_algorithm_options algorithm;
    lac_cost cost;        // of a step
    uint64_t local_steps; // from one round to the next
    size_t values_kept;   // by the compressor, if there is one
    double *tensor_bytes; // payload of each tensor, or NULL if unknown
} cli_size;

// cli_size_sent returns the bytes that a worker sends in a step if a payload
// has `bytes`: gossip sends it to each neighbour.
double cli_size_sent(const lac_cost *c, double bytes);

// cli_size_json returns the object of --json.
cJSON *cli_size_json(const cli_size *s);

// cli_size_table prints the tables for people: the cost, and the largest
// tensors.
void cli_size_table(const cli_size *s, FILE *stream);

#endif
