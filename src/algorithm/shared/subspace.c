// SPDX-License-Identifier: MIT
// Draws columns and makes them orthonormal with the arithmetic of columns.h. A
// column that fails is replaced by a random one.
#include "algorithm/shared/subspace.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/columns.h"

enum { DRAWS_MAX = 4 };

// Values are numbered from `first`, modulo 2^32.
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
        bool done = laci_column_orthonormalise(x, n, j, LACI_SCALE_DIVIDE);
        for (size_t t = 1; key != NULL && !done && t <= DRAWS_MAX; t++) {
            draw(key, (t * rank + j) * n, column, n);
            done = laci_column_orthonormalise(x, n, j, LACI_SCALE_DIVIDE);
        }
        if (!done) {
            memset(column, 0, n * sizeof(*column));
        }
    }
}
