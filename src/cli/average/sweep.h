// SPDX-License-Identifier: MIT
// --sweep of `laconic average`: a setting of the algorithm or of its compressor
// that takes one value after the other.
#ifndef LACONIC_CLI_AVERAGE_SWEEP_H
#define LACONIC_CLI_AVERAGE_SWEEP_H

#include <stddef.h>

#include <laconic/laconic.h>

// One value, and the specs with it.
enum { CLI_SWEEP_VALUE_SIZE = 32, CLI_SWEEP_PROGRESS_SIZE = 128 };
typedef struct cli_sweep_point {
    char value[CLI_SWEEP_VALUE_SIZE]; // as in the spec
    double number;
    char *algorithm;
    char *compressor;                       // NULL if there is none
    char progress[CLI_SWEEP_PROGRESS_SIZE]; // "rounds with gamma=0.1"
} cli_sweep_point;

typedef struct cli_sweep {
    const char *setting;     // its name in the table of settings
    cli_sweep_point general; // with "..." in place of a value
    size_t count;
    cli_sweep_point *points;
} cli_sweep;

// cli_sweep_open reads "setting=from..to" or "setting=a,b,c". The specs must be
// those of an algorithm and of its compressor (NULL: none) that exist; a value
// that they have is replaced. A range has ten values, each the same multiple of
// the one before, rounded to four digits; of a setting that is a whole number,
// to whole numbers without repetition.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM. Close it in either case.
lac_status cli_sweep_open(
    cli_sweep *out, const char *text, const char *algorithm,
    const char *compressor);
void cli_sweep_close(cli_sweep *sweep);

#endif
