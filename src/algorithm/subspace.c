// SPDX-License-Identifier: MIT
// Sums are made in double, where the squares of all floats fit, in lanes of a
// fixed order; nothing but + - * / and sqrt is used.
#include "algorithm/subspace.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { LANES = 16, DRAWS_MAX = 4 };

// Of a unit column, what rounding to float may leave of nothing.
#define NOTHING_LEFT 1e-5

static double dot(const float *a, const float *b, size_t n)
{
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

// Makes the column one of length 1 and returns its length before.
static double normalise(float *x, size_t n)
{
    const double norm = sqrt(dot(x, x, n));
    for (size_t i = 0; norm > 0 && i < n; i++) {
        x[i] = (float)((double)x[i] / norm);
    }
    return norm;
}

// Takes the parts along the columns before number j out of it.
static void deflate(float *x, size_t n, size_t j)
{
    float *const column = x + j * n;
    for (size_t k = 0; k < j; k++) {
        const float *const other = x + k * n;
        const double part = dot(column, other, n);
        for (size_t i = 0; i < n; i++) {
            column[i] = (float)((double)column[i] - part * (double)other[i]);
        }
    }
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
    deflate(x, n, j);
    if (normalise(column, n) < NOTHING_LEFT) {
        return false;
    }
    deflate(x, n, j);
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
