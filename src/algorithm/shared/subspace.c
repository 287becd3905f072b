// SPDX-License-Identifier: MIT
// Gram-Schmidt with sums in double, which holds the square of every float. The
// order of a sum is fixed, and only + - * / and sqrt are used, so the result
// has the same bits on every machine.
#include "algorithm/shared/subspace.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/columns.h"

enum { DRAWS_MAX = 4 };

// Scales the column to length 1 and returns its previous length. A column of
// zeros stays unchanged.
static double subspace_normalise(float *x, size_t n)
{
    const double norm = sqrt(laci_column_dot(x, x, n));
    for (size_t i = 0; norm > 0 && i < n; i++) {
        x[i] = (float)((double)x[i] / norm);
    }
    return norm;
}

// Makes column j orthonormal to the columns before it. It deflates twice,
// because the rounding errors of the first pass may lie mostly along the
// earlier columns. Returns false if the column depends linearly on them.
static bool orthonormalise_column(float *x, size_t n, size_t j)
{
    float *const column = x + j * n;
    if (!(subspace_normalise(column, n) > 0)) {
        return false;
    }
    if (j == 0) {
        return true;
    }
    laci_column_deflate(x, n, j);
    if (subspace_normalise(column, n) < LACI_NOTHING_LEFT) {
        return false;
    }
    laci_column_deflate(x, n, j);
    return subspace_normalise(column, n) > 0;
}

// Fills x with the normal values of `key` from index `first`. Indices have 32
// bits and wrap around.
static void draw(const lac_key *key, size_t first, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = lac_key_normal(key, (uint32_t)(first + i));
    }
}

void laci_subspace_draw(const lac_key *key, float *x, size_t n, size_t rank)
{
    draw(key, 0, x, n * rank);
}

void laci_subspace_orthonormalise(
    const lac_key *key, float *x, size_t n, size_t rank)
{
    for (size_t j = 0; j < rank; j++) {
        float *const column = x + j * n;
        bool done = orthonormalise_column(x, n, j);
        for (size_t t = 1; key != NULL && !done && t <= DRAWS_MAX; t++) {
            draw(key, (t * rank + j) * n, column, n);
            done = orthonormalise_column(x, n, j);
        }
        if (!done) {
            memset(column, 0, n * sizeof(*column));
        }
    }
}
