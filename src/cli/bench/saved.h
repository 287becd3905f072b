// SPDX-License-Identifier: MIT
// A file with the output of an earlier `laconic bench --json`. It may come from
// anywhere: every value that is used is checked. Keys that are not known are
// ignored, so that programs can merge several outputs into one file.
#ifndef LACONIC_CLI_BENCH_SAVED_H
#define LACONIC_CLI_BENCH_SAVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>
#include <laconic/laconic.h>

#include "cli/bench/report.h"

// The figures of a compressor. An algorithm has one, the first.
enum { CLI_BENCH_FIGURES = 3 };

// One compressor or algorithm of the file.
typedef struct cli_bench_row {
    bool is_algorithm;
    const char *spec;
    double memcpys[CLI_BENCH_FIGURES]; // encode, decode-add, with memory; or
                                       // the step
    // Of an algorithm:
    const char *compressor; // or NULL
    const char *model;      // NULL: its tensors are those of a layout file
    const char *layout;
    size_t values;
    uint32_t degree;
} cli_bench_row;

typedef struct cli_bench_saved {
    const char *path;
    cJSON *object; // has the texts
    const char *version;
    const char *processor;
    const char *processor_id;
    const char *kernels;
    bool prefetch;
    uint64_t threads;
    uint64_t values; // of the compressors
    uint64_t runs;
    cli_bench_row rows[2 * CLI_BENCH_MAX]; // compressors, then algorithms
    size_t count;
} cli_bench_saved;

// Which rows are wanted: those of the specs, or all if there is no spec. Of
// algorithms only those with the other members, unless they are "" or 0.
typedef struct cli_bench_choice {
    char *const *specs;
    size_t count;
    const char *compressor;
    const char *model;
    const char *layout;
    uint64_t degree;
} cli_bench_choice;

// cli_bench_saved_read reads the file `path`, which must outlive the result,
// and only the beginning of a file that is no object, which may be endless.
// Fails with LAC_ERR_CORRUPT and a message that names the file, the value found
// and what was expected, or like data_file_read.
lac_status cli_bench_saved_read(const char *path, cli_bench_saved *out);

// cli_bench_saved_parse does so with the bytes of a file.
lac_status cli_bench_saved_parse(
    const char *path, const char *text, size_t len, cli_bench_saved *out);

// cli_bench_saved_free releases the texts. A zeroed struct is allowed.
void cli_bench_saved_free(cli_bench_saved *s);

// cli_bench_saved_check fails with LAC_ERR_INVALID unless the file was measured
// on the processor of this machine.
lac_status cli_bench_saved_check(const cli_bench_saved *s);

// cli_bench_saved_choose removes the rows that are not wanted.
// Fails with LAC_ERR_INVALID if a spec has no row.
lac_status cli_bench_saved_choose(
    cli_bench_saved *s, const cli_bench_choice *choice);

#endif
