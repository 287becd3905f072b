// SPDX-License-Identifier: MIT
// Orthonormal columns: orthonormal, of the same span, and never fewer.
#include "lac_test.h"

#include <math.h>
#include <string.h>

#include "algorithm/shared/subspace.h"

enum { N = 50, RANK = 6 };

static const lac_key key = {1, 2, LAC_SCOPE_EDGE};

static double dot(const float *a, const float *b)
{
    double sum = 0;
    for (size_t i = 0; i < N; i++) {
        sum += (double)a[i] * (double)b[i];
    }
    return sum;
}

// Each value of a column is rounded by at most 2^-25: over 50 values a product
// is off by less than sqrt(50) 2^-24, twice that for both columns.
static void assert_orthonormal(const float *x, size_t rank)
{
    for (size_t i = 0; i < rank; i++) {
        for (size_t j = 0; j <= i; j++) {
            const double expected = i == j ? 1 : 0;
            assert_true(
                fabs(dot(x + i * N, x + j * N) - expected) < 16 * 0x1p-24);
        }
    }
}

static void columns_become_orthonormal(void **state)
{
    (void)state;
    static const float sizes[] = {1, 1e-38f, 1e-42f, 1e37f};
    for (size_t s = 0; s < 4; s++) {
        float x[RANK * N];
        laci_subspace_draw(&key, x, N, RANK);
        for (size_t i = 0; i < RANK * N; i++) {
            x[i] *= sizes[s];
        }
        laci_subspace_orthonormalise(&key, x, N, RANK);
        assert_orthonormal(x, RANK);
    }
}

static void the_span_of_the_first_columns_is_kept(void **state)
{
    (void)state;
    float x[RANK * N], before[RANK * N];
    laci_subspace_draw(&key, x, N, RANK);
    memcpy(before, x, sizeof(x));
    laci_subspace_orthonormalise(&key, x, N, RANK);
    for (size_t j = 0; j < RANK; j++) {
        double inside = 0;
        for (size_t k = 0; k <= j; k++) {
            const double part = dot(before + j * N, x + k * N);
            inside += part * part;
        }
        assert_true(
            fabs(inside / dot(before + j * N, before + j * N) - 1) <
            64 * 0x1p-24);
    }
}

// Zeros, a multiple of the column before, and a sum of two but for rounding.
static void columns_that_add_nothing_are_drawn_anew(void **state)
{
    (void)state;
    float x[RANK * N], again[RANK * N];
    laci_subspace_draw(&key, x, N, RANK);
    memset(x, 0, N * sizeof(*x));
    for (size_t i = 0; i < N; i++) {
        x[2 * N + i] = 3 * x[N + i];
        x[4 * N + i] = 0.3f * x[N + i] - 0.7f * x[3 * N + i];
    }
    memcpy(again, x, sizeof(x));
    laci_subspace_orthonormalise(&key, x, N, RANK);
    assert_orthonormal(x, RANK);
    laci_subspace_orthonormalise(&key, again, N, RANK);
    assert_memory_equal(x, again, sizeof(x));
}

static void as_many_columns_as_rows_are_found(void **state)
{
    (void)state;
    static float x[N * N];
    memset(x, 0, sizeof(x));
    laci_subspace_orthonormalise(&key, x, N, N);
    assert_orthonormal(x, N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_become_orthonormal),
        cmocka_unit_test(the_span_of_the_first_columns_is_kept),
        cmocka_unit_test(columns_that_add_nothing_are_drawn_anew),
        cmocka_unit_test(as_many_columns_as_rows_are_found),
    };
    return cmocka_run_group_tests_name("subspace", tests, NULL, NULL);
}
