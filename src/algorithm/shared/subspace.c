// SPDX-License-Identifier: MIT
// Sums are made in double, where the squares of all floats fit, in lanes of a
// fixed order; nothing but + - * / and sqrt is used.
#include "algorithm/shared/subspace.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/columns.h"

enum { DRAWS_MAX = 4 };

// Makes the column one of length 1 and returns its length before.
static double normalise(float *x, size_t n)
{
    const double norm = sqrt(laci_column_dot(x, x, n));
    for (size_t i = 0; norm > 0 && i < n; i++) {
        x[i] = (float)((double)x[i] / norm);
    }
    return norm;
}

// Gram-Schmidt, twice: what rounding leaves after the first time may be mostly
// along the columns before, what is left after the second is not. Returns false
// for a column of which nothing is left.
static bool settle(float *x, size_t n, size_t j)
{
    float *const column = x + j * n;
    if (!(normalise(column, n) > 0)) {
        return false;
    }
    if (j == 0) {
        return true;
    }
    laci_column_deflate(x, n, j);
    if (normalise(column, n) < LACI_NOTHING_LEFT) {
        return false;
    }
    laci_column_deflate(x, n, j);
    return normalise(column, n) > 0;
}

// Values are numbered from `first`; more than 2^32 of them begin again.
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
        bool settled = settle(x, n, j);
        for (size_t t = 1; key != NULL && !settled && t <= DRAWS_MAX; t++) {
            draw(key, (t * rank + j) * n, column, n);
            settled = settle(x, n, j);
        }
        if (!settled) {
            memset(column, 0, n * sizeof(*column));
        }
    }
}
