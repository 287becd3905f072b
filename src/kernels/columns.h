// SPDX-License-Identifier: MIT
// Orthonormal columns of a thin matrix, by Gram-Schmidt. Sums are in double,
// where the squares of all floats fit, and in lanes of a fixed order. Nothing
// but + - * / and sqrt is used, so two workers that start from the same numbers
// get the same bits with any kernels.
#ifndef LACONIC_KERNELS_COLUMNS_H
#define LACONIC_KERNELS_COLUMNS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

// The length that rounding to float may leave of a unit column that is a sum of
// the columns before it.
#define LACI_NOTHING_LEFT 1e-5

// How a column is scaled. The two round differently, and each is part of a
// result whose bits are fixed.
typedef enum laci_scaling {
    LACI_SCALE_MULTIPLY, // by 1 / length, as low-rank does
    LACI_SCALE_DIVIDE,   // by the length, as the subspace of an edge does
} laci_scaling;

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

// laci_column_normalise makes |x| = `length` and returns the length before. A
// column of zeros stays one: it stands for a direction that the matrix lacks.
static inline double laci_column_normalise(
    float *x, size_t n, double length, laci_scaling scaling)
{
    const double norm = sqrt(laci_column_dot(x, x, n));
    const double factor = norm == 0 ? 0 : length / norm;
    for (size_t i = 0; i < n; i++) {
        const double value = (double)x[i];
        x[i] = (float)(scaling == LACI_SCALE_MULTIPLY ? value * factor
                       : norm > 0                     ? value / norm * length
                                                      : value);
    }
    return norm;
}

// laci_column_deflate subtracts from column j its parts along the unit columns
// x[0..j), of n values each.
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

// laci_column_orthonormalise makes column j a unit column that is orthogonal to
// the unit columns before it. It subtracts their parts twice: what rounding
// leaves after the first time may be mostly along them, what is left after the
// second is not. Returns false, and leaves the column undefined, if next to
// nothing is left: the column was a sum of the others but for rounding, and to
// scale that up would count a direction twice.
static inline bool laci_column_orthonormalise(
    float *x, size_t n, size_t j, laci_scaling scaling)
{
    float *const column = x + j * n;
    const double norm = laci_column_normalise(column, n, 1, scaling);
    if (scaling == LACI_SCALE_DIVIDE && (!(norm > 0) || j == 0)) {
        return norm > 0;
    }
    laci_column_deflate(x, n, j);
    if (laci_column_normalise(column, n, 1, scaling) < LACI_NOTHING_LEFT) {
        return false;
    }
    laci_column_deflate(x, n, j);
    const double last = laci_column_normalise(column, n, 1, scaling);
    return scaling == LACI_SCALE_MULTIPLY || last > 0;
}

#endif
