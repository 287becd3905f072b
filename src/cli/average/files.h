// SPDX-License-Identifier: MIT
// The files that `laconic average` writes: final values and traces.
#ifndef LACONIC_CLI_AVERAGE_FILES_H
#define LACONIC_CLI_AVERAGE_FILES_H

#include <stdio.h>

#include <laconic/laconic.h>

#include "cli/files/npy.h"

// A trace, in memory until the run is complete.
typedef struct cli_trace {
    FILE *stream; // gets a line per round
    char *text;
    size_t len;
} cli_trace;

// cli_trace_open writes the header line. Fails with LAC_ERR_NOMEM. Close it in
// either case.
lac_status cli_trace_open(cli_trace *trace);
void cli_trace_close(cli_trace *trace);

// cli_trace_write writes the trace to the file `path`, after which it gets no
// more lines. In a sweep, `value` is part of the name: t.csv becomes
// t-0.1.csv; else it is NULL. Fails with LAC_ERR_NOMEM or like
// data_file_write.
lac_status cli_trace_write(
    cli_trace *trace, const char *path, const char *value);

// cli_values_write writes float32 values as a .npy file. It overwrites `values`
// with the bytes of the file. Fails with LAC_ERR_NOMEM or like data_file_write.
lac_status cli_values_write(
    const char *path, const cli_dimensions *dimensions, float *values);

#endif
