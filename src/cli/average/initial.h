// SPDX-License-Identifier: MIT
// Initial values that the workers of `laconic average` draw. Those of a worker
// depend on the seed and its rank only.
#ifndef LACONIC_CLI_AVERAGE_INITIAL_H
#define LACONIC_CLI_AVERAGE_INITIAL_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

#include "cli/files/npy.h"

// cli_initial_parse reads --dimension: "1000" for a vector, "100x100" for a
// matrix. An empty text is the default.
// Fails with LAC_ERR_INVALID; `*out` is then unchanged.
lac_status cli_initial_parse(const char *text, cli_dimensions *out);

// cli_initial_check returns whether matrices of `dimensions` can have this
// rank: vectors and a rank above the smaller side are refused.
// Fails with LAC_ERR_INVALID.
lac_status cli_initial_check(const cli_dimensions *dimensions, uint64_t rank);

// cli_initial_normal draws n nearly normal deviates with variance 1.
void cli_initial_normal(uint64_t seed, uint32_t worker, float *x, size_t n);

// cli_initial_low_rank draws a matrix X = A B^T / sqrt(rank), row by row: A has
// `rank` columns and the rows of X, B has `rank` columns and the columns of X
// as rows, and both have nearly normal deviates with variance 1. So the values
// of X have variance 1 too. Fails with LAC_ERR_NOMEM.
lac_status cli_initial_low_rank(
    uint64_t seed, uint32_t worker, lac_shape shape, size_t rank, float *x);

#endif
