// SPDX-License-Identifier: MIT
// Products of a matrix with a few vectors: right, the same bits with every set
// of kernels, for every shape and alignment, and however a caller cuts them.
#include "kernels_test.h"

#include <math.h>
#include <string.h>

#include "kernels/matrix.h"

enum {
    ROWS_MAX = 70,
    COLS_MAX = 1100,
    VECTORS = 9,
    SHIFTS = 8,
    VALUES_MAX = ROWS_MAX * COLS_MAX,
};

static float x[VALUES_MAX + SHIFTS], update[VALUES_MAX + SHIFTS];
static float tall[VECTORS][ROWS_MAX + SHIFTS], wide[VECTORS][COLS_MAX + SHIFTS];

// Everything the kernels write.
typedef struct results {
    float tall[VECTORS][ROWS_MAX];
    float wide[VECTORS][COLS_MAX];
    float sum[VALUES_MAX];
} results;

static results left, right;

static int set_up(void **state)
{
    (void)state;
    fill_normal(x, VALUES_MAX + SHIFTS, 1);
    fill_normal(update, VALUES_MAX + SHIFTS, 2);
    fill_normal(tall[0], VECTORS * (ROWS_MAX + SHIFTS), 3);
    fill_normal(wide[0], VECTORS * (COLS_MAX + SHIFTS), 4);
    return 0;
}

// Runs all kernels on rows [first, first + shape.rows) of a matrix.
static void run(
    const laci_matrix_kernels *k, lac_shape shape, size_t first, size_t count,
    size_t shift, results *out)
{
    laci_column columns[VECTORS] = {0};
    laci_outer terms[VECTORS] = {0};
    const size_t offset = first * shape.cols;
    for (size_t c = 0; c < count; c++) {
        columns[c] = (laci_column){wide[c] + shift, out->tall[c] + first};
    }
    k->multiply(x + shift + offset, shape, columns, count);
    for (size_t c = 0; c < count; c++) {
        columns[c] = (laci_column){tall[c] + shift + first, out->wide[c]};
        terms[c] = (laci_outer){0.3f, tall[c] + shift + first, wide[c] + shift};
    }
    k->multiply_transposed(x + shift + offset, shape, columns, count);
    k->add_outer(
        x + shift + offset, shape, terms, count,
        count % 2 == 0 ? NULL : update + shift + offset, out->sum + offset);
}

static void assert_same_results(void)
{
    assert_memory_equal(&left, &right, sizeof(left));
}

static void clear(void)
{
    memset(&left, 0, sizeof(left));
    memset(&right, 0, sizeof(right));
}

static void fast_equals_portable(void **state)
{
    (void)state;
    const laci_kernels *const fast = fast_or_skip();
    static const size_t rows[] = {0, 1, 2, 3, 4, 5, 7, 31, 32, 33, 36, 67};
    size_t tried = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t cols = 0; cols <= COLS_MAX; cols += cols < 40 ? 1 : 53) {
            const lac_shape shape = {rows[i], cols};
            const size_t count = tried % (VECTORS + 1);
            const size_t shift = tried % SHIFTS;
            clear();
            run(fast->matrix, shape, 0, count, shift, &left);
            run(&laci_matrix_portable, shape, 0, count, shift, &right);
            assert_same_results();
            tried++;
        }
    }
}

static void zeros_keep_their_signs(void **state)
{
    (void)state;
    const lac_shape shape = {5, 21};
    float zeros[5 * 21], in[21], out[2][5];
    for (size_t i = 0; i < 5 * 21; i++) {
        zeros[i] = -0.0f;
    }
    for (size_t i = 0; i < 21; i++) {
        in[i] = 1;
    }
    const laci_column a = {in, out[0]}, b = {in, out[1]};
    fast_or_skip()->matrix->multiply(zeros, shape, &a, 1);
    laci_matrix_portable.multiply(zeros, shape, &b, 1);
    assert_memory_equal(out[0], out[1], sizeof(out[0]));
}

// The number of vectors and cuts after 32 rows do not change a bit.
static void cuts_and_company_do_not_matter(void **state)
{
    (void)state;
    const laci_matrix_kernels *const best = laci_kernels_best()->matrix;
    const lac_shape shape = {70, 333};
    clear();
    run(best, shape, 0, 5, 1, &left);
    run(best, (lac_shape){32, 333}, 0, 5, 1, &right);
    run(best, (lac_shape){32, 333}, 32, 5, 1, &right);
    run(best, (lac_shape){6, 333}, 64, 5, 1, &right);
    assert_same_results();
    for (size_t c = 0; c < 5; c++) {
        float one[70], other[333] = {0};
        const laci_column right_one = {wide[c] + 1, one};
        const laci_column left_one = {tall[c] + 1, other};
        best->multiply(x + 1, shape, &right_one, 1);
        best->multiply_transposed(x + 1, shape, &left_one, 1);
        assert_memory_equal(one, left.tall[c], sizeof(one));
        assert_memory_equal(other, left.wide[c], sizeof(other));
    }
}

static void outer_products_may_be_added_in_place(void **state)
{
    (void)state;
    const laci_matrix_kernels *const best = laci_kernels_best()->matrix;
    const lac_shape shape = {33, 77};
    const laci_outer terms[5] = {
        {1, tall[0], wide[0]},  {-2, tall[1], wide[1]}, {3, tall[2], wide[2]},
        {-4, tall[3], wide[3]}, {5, tall[4], wide[4]},
    };
    best->add_outer(x, shape, terms, 5, update, left.sum);
    memcpy(right.sum, x, 33 * 77 * sizeof(*x));
    best->add_outer(right.sum, shape, terms, 5, update, right.sum);
    assert_memory_equal(left.sum, right.sum, 33 * 77 * sizeof(*x));
}

// Normal values are below 6. A product of n of them has at most n/16 + 5
// roundings in a row in each block, of sums below the sum of magnitudes.
static void products_are_right(void **state)
{
    (void)state;
    const laci_matrix_kernels *const best = laci_kernels_best()->matrix;
    const lac_shape shape = {67, 1001};
    clear();
    run(best, shape, 0, 3, 0, &left);
    for (size_t c = 0; c < 3; c++) {
        for (size_t i = 0; i < shape.rows; i++) {
            double sum = 0, size = 0;
            for (size_t j = 0; j < shape.cols; j++) {
                const double term =
                    (double)x[i * shape.cols + j] * (double)wide[c][j];
                sum += term;
                size += fabs(term);
            }
            assert_true(
                fabs((double)left.tall[c][i] - sum) < 40 * 0x1p-24 * size);
        }
        for (size_t j = 0; j < shape.cols; j++) {
            double sum = 0, size = 0;
            for (size_t i = 0; i < shape.rows; i++) {
                const double term =
                    (double)x[i * shape.cols + j] * (double)tall[c][i];
                sum += term;
                size += fabs(term);
            }
            assert_true(
                fabs((double)left.wide[c][j] - sum) < 16 * 0x1p-24 * size);
        }
    }
    for (size_t i = 0; i < lac_shape_values(shape); i++) {
        double sum = (double)x[i] + (double)update[i];
        for (size_t c = 0; c < 3; c++) {
            sum += (double)0.3f * (double)tall[c][i / shape.cols] *
                   (double)wide[c][i % shape.cols];
        }
        // Five values below 11 and ten roundings.
        assert_true(fabs((double)left.sum[i] - sum) < 10 * 55 * 0x1p-24);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_equals_portable),
        cmocka_unit_test(zeros_keep_their_signs),
        cmocka_unit_test(cuts_and_company_do_not_matter),
        cmocka_unit_test(outer_products_may_be_added_in_place),
        cmocka_unit_test(products_are_right),
    };
    return cmocka_run_group_tests_name("matrix", tests, set_up, NULL);
}
