// SPDX-License-Identifier: MIT
// Columns of a thin matrix made orthogonal. Sums are made in double, where the
// squares of all floats fit, in lanes of a fixed order, and nothing but + - * /
// is used: two ends that do the same get the same bits, whatever their kernels.
#ifndef LACONIC_KERNELS_COLUMNS_H
#define LACONIC_KERNELS_COLUMNS_H

#include <stddef.h>

// Of a unit column, what rounding to float may leave of nothing.
#define LACI_NOTHING_LEFT 1e-5

// laci_column_dot returns the scalar product of two columns of n values.
static inline double laci_column_dot(const float *a, const float *b, size_t n)
{
    enum { LANES = 16 };
    double lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            lanes[j] += (double)a[i + j] * (double)b[i + j];
        }
    }
    for (size_t j = 0; i + j < n; j++) {
        lanes[j] += (double)a[i + j] * (double)b[i + j];
    }
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t j = 0; j < half; j++) {
            lanes[j] += lanes[j + half];
        }
    }
    return lanes[0];
}

// laci_column_deflate takes the parts along the unit columns x[0..j), of n
// values each, out of column j.
static inline void laci_column_deflate(float *x, size_t n, size_t j)
{
    float *const column = x + j * n;
    for (size_t k = 0; k < j; k++) {
        const float *const other = x + k * n;
        const double part = laci_column_dot(column, other, n);
        for (size_t i = 0; i < n; i++) {
            column[i] = (float)((double)column[i] - part * (double)other[i]);
        }
    }
}

#endif
