// SPDX-License-Identifier: MIT
// The passes of PowerSGD over a matrix: right, and the same bits with every set
// of kernels, for every shape, rank and alignment.
#include "kernels_test.h"

#include <math.h>
#include <string.h>

#include "kernels/powersgd.h"

enum {
    ROWS_MAX = 9,
    COLS_MAX = 1100,
    RANK_MAX = LACI_POWERSGD_RANK_MAX,
    SHIFTS = 8,
    VALUES_MAX = ROWS_MAX * COLS_MAX,
    FENCE = 1, // values behind a result that must stay zero
};

static _Alignas(64) float g[VALUES_MAX + SHIFTS], m[VALUES_MAX + SHIFTS];
static float left[ROWS_MAX * RANK_MAX], right[COLS_MAX * RANK_MAX];
static float in[COLS_MAX * RANK_MAX];

// Everything the kernels write.
typedef struct results {
    _Alignas(64) float sum[VALUES_MAX + SHIFTS + FENCE];
    _Alignas(64) float s[VALUES_MAX + SHIFTS + FENCE];
    _Alignas(64) float y[VALUES_MAX + SHIFTS + FENCE];
    float product[ROWS_MAX * RANK_MAX + FENCE];
} results;

static results one, other;

static int set_up(void **state)
{
    (void)state;
    fill_normal(g, VALUES_MAX + SHIFTS, 1);
    fill_normal(m, VALUES_MAX + SHIFTS, 2);
    fill_normal(left, ROWS_MAX * RANK_MAX, 3);
    fill_normal(right, COLS_MAX * RANK_MAX, 4);
    fill_normal(in, COLS_MAX * RANK_MAX, 5);
    return 0;
}

static void run(
    const laci_powersgd_kernels *k, lac_shape shape, size_t rank, size_t shift,
    results *out)
{
    laci_powersgd_sum x = {
        .shape = shape,
        .rank = rank,
        .g = g + shift,
        .m = m + shift / 2,
        .left = left,
        .right = right,
        .s = out->sum + shift,
    };
    memset(out, 0, sizeof(*out));
    k->sum(&x);
    x.s = out->s + shift;
    k->multiply(&x, in, out->product);
    k->reconstruct(shape, rank, left, right, out->y + shift);
}

static void fast_equals_portable(void **state)
{
    (void)state;
    const laci_kernels *const fast = fast_or_skip();
    size_t tried = 0;
    for (size_t rows = 1; rows <= ROWS_MAX; rows++) {
        for (size_t cols = 1; cols <= COLS_MAX; cols += cols < 40 ? 1 : 53) {
            const size_t rank =
                tried % 3 == 0 ? 1 + tried / 3 % RANK_MAX : 1 + tried % 5;
            const lac_shape shape = {rows, cols};
            run(fast->powersgd, shape, rank, tried % SHIFTS, &one);
            run(&laci_powersgd_portable, shape, rank, tried % SHIFTS, &other);
            assert_memory_equal(&one, &other, sizeof(one));
            tried++;
        }
    }
}

// Rows that are aligned go another way.
static void fast_equals_portable_on_aligned_rows(void **state)
{
    (void)state;
    const laci_powersgd_kernels *const best = fast_or_skip()->powersgd;
    for (size_t rank = 1; rank <= RANK_MAX; rank++) {
        for (size_t cols = 8; cols <= COLS_MAX; cols += 136) {
            const lac_shape shape = {1 + rank % ROWS_MAX, cols};
            run(best, shape, rank, 0, &one);
            run(&laci_powersgd_portable, shape, rank, 0, &other);
            assert_memory_equal(&one, &other, sizeof(one));
        }
    }
}

static double sum_at(lac_shape shape, size_t rank, size_t i, size_t j)
{
    double v = (double)m[i * shape.cols + j] + (double)g[i * shape.cols + j];
    for (size_t c = 0; c < rank; c++) {
        v -= (double)left[c * shape.rows + i] *
             (double)right[c * shape.cols + j];
    }
    return v;
}

// Normal values are below 6, so a term of a sum of S is below 36, and such a
// sum has at most 2 rank + 1 roundings; a product has 512 / 8 + 3 in a row in
// each block, of sums that are below the sum of magnitudes.
static void results_are_right(void **state)
{
    (void)state;
    const lac_shape shape = {7, 1001};
    for (size_t rank = 1; rank <= 6; rank++) {
        const double s_error = 0x1p-24 * (double)((2 * rank + 1) * 36 * rank);
        run(laci_kernels_best()->powersgd, shape, rank, 0, &one);
        assert_memory_equal(one.s, one.sum, sizeof(one.s));
        for (size_t c = 0; c < rank; c++) {
            for (size_t i = 0; i < shape.rows; i++) {
                double product = 0, size = 0;
                for (size_t j = 0; j < shape.cols; j++) {
                    const double s = sum_at(shape, rank, i, j);
                    const double term = s * (double)in[c * shape.cols + j];
                    product += term;
                    size += fabs(term) + 6 * s_error;
                    assert_true(
                        fabs((double)one.s[i * shape.cols + j] - s) <= s_error);
                }
                assert_true(
                    fabs((double)one.product[c * shape.rows + i] - product) <
                    6 * s_error * (double)shape.cols + 70 * 0x1p-24 * size);
            }
        }
        for (size_t i = 0; i < lac_shape_values(shape); i++) {
            const size_t row = i / shape.cols, col = i % shape.cols;
            const double y =
                (double)m[i] + (double)g[i] - sum_at(shape, rank, row, col);
            assert_true(fabs((double)one.y[i] - y) <= s_error);
        }
    }
}

static void zeros_keep_their_signs(void **state)
{
    (void)state;
    static const float zeros[8 * 3];
    float negative[8 * 3], ones[8], s[2][8 * 3], out[2][3];
    for (size_t i = 0; i < 8 * 3; i++) {
        negative[i] = -0.0f;
        ones[i % 8] = 1;
    }
    for (size_t k = 0; k < 2; k++) {
        const laci_powersgd_sum x = {{3, 7}, 1,     negative, negative,
                                     zeros,  zeros, s[k]};
        const laci_powersgd_kernels *const kernels =
            k == 0 ? fast_or_skip()->powersgd : &laci_powersgd_portable;
        memset(s[k], 0, sizeof(s[k]));
        kernels->multiply(&x, ones, out[k]);
    }
    assert_memory_equal(s[0], s[1], sizeof(s[0]));
    assert_memory_equal(out[0], out[1], sizeof(out[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_equals_portable),
        cmocka_unit_test(fast_equals_portable_on_aligned_rows),
        cmocka_unit_test(results_are_right),
        cmocka_unit_test(zeros_keep_their_signs),
    };
    return cmocka_run_group_tests_name("powersgd", tests, set_up, NULL);
}
