// SPDX-License-Identifier: MIT
// How far vectors are from their mean.
#ifndef LACONIC_CLI_AVERAGE_DISTANCE_H
#define LACONIC_CLI_AVERAGE_DISTANCE_H

#include <stddef.h>
#include <stdint.h>

// cli_magnitude returns the largest magnitude of x[0..n), infinity also if
// there is a NaN.
double cli_magnitude(const float *x, size_t n);

// cli_mean writes the mean of `count` rows of n values.
void cli_mean(
    const float *const *rows, uint32_t count, size_t n, double *mean_out);

// cli_distance tells the mean over rows of the squared distance to `mean`, and
// the squared distance of their own mean from it.
void cli_distance(
    const float *const *rows, uint32_t count, size_t n, const double *mean,
    double *error_out, double *drift_out);

#endif
