// SPDX-License-Identifier: MIT
// The distance of vectors from their mean, and the test for divergence.
#ifndef LACONIC_CLI_AVERAGE_DISTANCE_H
#define LACONIC_CLI_AVERAGE_DISTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// cli_magnitude returns the largest magnitude of x[0..n), infinity if a value
// is NaN.
double cli_magnitude(const float *x, size_t n);

// cli_diverged returns whether values have diverged: their largest magnitude
// is not finite, or exceeds 1e6 times the one at the start (1e6 if that is 0).
bool cli_diverged(double initial_magnitude, double magnitude);

// cli_mean writes the mean of `count` rows of n values.
void cli_mean(
    const float *const *rows, uint32_t count, size_t n, double *mean_out);

// cli_distance writes to `*error_out` the squared distance of a row to `mean`,
// averaged over the rows, and to `*drift_out` the squared distance of the mean
// of the rows to `mean`.
void cli_distance(
    const float *const *rows, uint32_t count, size_t n, const double *mean,
    double *error_out, double *drift_out);

#endif
