// SPDX-License-Identifier: MIT
// ATOMO: the probabilities of its atoms, that as many are kept as stated, and
// that the result is unbiased with the error of the formula.
#include "compressed.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "compress/atomo.h"

enum { ROWS = 6, COLS = 9, VALUES = ROWS * COLS, CAP = 4 * VALUES + 16 };

static const lac_shape shape = {ROWS, COLS};

static lac_key key_of(uint64_t round)
{
    return lac_key_make(1, LAC_PURPOSE_COMPRESS, round, lac_scope_worker(0), 0);
}

// y = C(x)
static void compress(
    lac_compressor *c, uint64_t round, const float *x, float *y)
{
    const lac_key key = key_of(round);
    compress_with(c, &key, shape, x, y);
}

static const double spectra[][ROWS] = {
    {6, 5, 4, 3, 2, 1},
    {1, 1, 1, 1, 1, 1},
    {100, 1, 1, 1, 1, 1},
    {9, 8, 1e-3, 0, 0, 0},
    {3, 0, 0, 0, 0, 0},
    {0, 0, 0, 0, 0, 0},
    {1e30, 1e29, 1, 1, 1e-20, 1e-30},
};

enum { SPECTRA = sizeof(spectra) / sizeof(*spectra) };

// Those below 1 are in proportion to the values, and none that is certain would
// have less in that proportion: the choice with the least error.
static void probabilities_are_the_best_that_add_up_to_the_rank(void **state)
{
    (void)state;
    for (size_t s = 0; s < SPECTRA; s++) {
        for (size_t rank = 1; rank <= ROWS; rank++) {
            const double *const values = spectra[s];
            double p[ROWS], sum = 0, ratio = 0;
            laci_atomo_probabilities(values, ROWS, rank, p);
            for (size_t i = 0; i < ROWS; i++) {
                assert_true(p[i] >= 0 && p[i] <= 1);
                sum += p[i];
                ratio = p[i] > 0 && p[i] < 1 && ratio == 0 ? p[i] / values[i]
                                                           : ratio;
            }
            assert_true(fabs(sum - (double)rank) < 1e-12);
            for (size_t i = 0; ratio > 0 && i < ROWS; i++) {
                const double share = ratio * values[i];
                assert_true(
                    p[i] < 1 ? fabs(p[i] - share) < 1e-12 : share > 1 - 1e-12);
            }
        }
    }
}

// A part of length p is hit by `steps` points at equal distances as often as
// steps p, give or take one.
static void atoms_are_chosen_with_their_probabilities(void **state)
{
    (void)state;
    enum { STEPS = 10000 };
    for (size_t s = 0; s < SPECTRA; s++) {
        for (size_t rank = 1; rank <= ROWS; rank++) {
            double p[ROWS];
            unsigned hits[ROWS] = {0};
            laci_atomo_probabilities(spectra[s], ROWS, rank, p);
            for (int step = 0; step < STEPS; step++) {
                size_t chosen[ROWS];
                const size_t count = laci_atomo_choose(
                    p, ROWS, rank, (step + 0.5) / STEPS, chosen);
                assert_int_equal(count, rank);
                for (size_t k = 0; k < count; k++) {
                    assert_true(k == 0 || chosen[k] > chosen[k - 1]);
                    hits[chosen[k]]++;
                }
            }
            for (size_t i = 0; i < ROWS; i++) {
                assert_true(fabs(hits[i] - STEPS * p[i]) <= 1.001);
            }
        }
    }
}

// The atoms of a diagonal matrix are its values: each is kept with probability
// p, and is then divided by p. Five standard deviations of a frequency.
static void a_value_that_is_kept_is_divided_by_its_probability(void **state)
{
    (void)state;
    enum { DRAWS = 20000, RANK = 2 };
    lac_compressor *const c =
        open_for("atomo:rank=2", LAC_FORM_UNBIASED, shape);
    float x[VALUES] = {0}, y[VALUES];
    double p[ROWS], bound = 0, error = 0, squares = 0;
    unsigned kept[ROWS] = {0};
    laci_atomo_probabilities(spectra[0], ROWS, RANK, p);
    for (size_t i = 0; i < ROWS; i++) {
        const double value = spectra[0][i];
        x[i * COLS + i] = (float)(i % 2 == 0 ? value : -value);
        bound += value * value * (1 / p[i] - 1);
    }
    for (uint64_t k = 0; k < DRAWS; k++) {
        unsigned count = 0;
        double off = 0;
        compress(c, k, x, y);
        for (size_t i = 0; i < VALUES; i++) {
            const size_t atom = i / COLS;
            const double d = (double)y[i] - (double)x[i];
            off += d * d;
            if (fabs((double)y[i]) > 1e-4) {
                assert_int_equal(i, atom * COLS + atom);
                assert_true(
                    fabs((double)y[i] * p[atom] / (double)x[i] - 1) < 1e-6);
                kept[atom]++;
                count++;
            }
        }
        assert_int_equal(count, RANK);
        error += off / DRAWS;
        squares += off * off / DRAWS;
    }
    for (size_t i = 0; i < ROWS; i++) {
        const double deviation = sqrt(p[i] * (1 - p[i]) / DRAWS);
        assert_true(
            fabs((double)kept[i] / DRAWS - p[i]) < 5 * deviation + 1e-9);
    }
    const double spread = sqrt((squares - error * error) / DRAWS);
    print_message("%g of %g, spread %g\n", error, bound, spread);
    assert_true(fabs(error - bound) < 5 * spread);
    lac_compressor_close(c);
}

// The mean over draws of a full matrix, within five standard errors of each
// value, which the draws show themselves.
static void the_mean_is_the_matrix(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    lac_compressor *const c =
        open_for("atomo:rank=2", LAC_FORM_UNBIASED, shape);
    float x[VALUES], y[VALUES];
    double mean[VALUES] = {0}, square[VALUES] = {0};
    fill_normal(x, VALUES, 3);
    for (uint64_t k = 0; k < DRAWS; k++) {
        compress(c, k, x, y);
        for (size_t i = 0; i < VALUES; i++) {
            mean[i] += (double)y[i] / DRAWS;
            square[i] += (double)y[i] * (double)y[i] / DRAWS;
        }
    }
    for (size_t i = 0; i < VALUES; i++) {
        const double spread = sqrt((square[i] - mean[i] * mean[i]) / DRAWS);
        assert_true(fabs(mean[i] - (double)x[i]) < 5 * spread);
    }
    lac_compressor_close(c);
}

// A matrix of at most that rank has no other atoms.
static void matrices_of_that_rank_survive(void **state)
{
    (void)state;
    lac_compressor *const c =
        open_for("atomo:rank=2", LAC_FORM_UNBIASED, shape);
    static const float sizes[] = {1e-30f, 1, 1e30f};
    for (size_t s = 0; s < 3; s++) {
        float left[2 * ROWS], right[2 * COLS], x[VALUES], y[VALUES];
        fill_normal(left, 2 * (size_t)ROWS, 4);
        fill_normal(right, 2 * (size_t)COLS, 5);
        for (size_t i = 0; i < VALUES; i++) {
            const size_t row = i / COLS, col = i % COLS;
            x[i] = sizes[s] * (left[row] * right[col] +
                               left[ROWS + row] * right[COLS + col]);
        }
        compress(c, s, x, y);
        for (size_t i = 0; i < VALUES; i++) {
            assert_true(fabsf(y[i] - x[i]) < 1e-5f * sizes[s]);
        }
    }
    lac_compressor_close(c);
}

static void the_guarantee_is_that_of_equal_values(void **state)
{
    (void)state;
    lac_compressor *const c = open_for("atomo:rank=2", LAC_FORM_PLAIN, shape);
    lac_compressor *const scaled =
        open_for("atomo:rank=2", LAC_FORM_CONTRACTIVE, shape);
    const double omega = ROWS / 2.0 - 1;
    const lac_guarantee g = lac_compressor_guarantee(c, shape);
    const lac_guarantee contraction = lac_compressor_guarantee(scaled, shape);
    float x[VALUES], y[VALUES], z[VALUES];
    assert_true(g.unbiased && fabs(g.error - omega) < 1e-12);
    assert_true(!contraction.unbiased);
    assert_true(fabs(contraction.error - omega / (1 + omega)) < 1e-12);
    fill_normal(x, VALUES, 8);
    compress(c, 1, x, y);
    compress(scaled, 1, x, z);
    for (size_t i = 0; i < VALUES; i++) {
        assert_true(fabs((double)y[i] / (1 + omega) - (double)z[i]) < 1e-5);
    }
    lac_compressor_close(c);
    lac_compressor_close(scaled);
}

static void divergence_is_not_hidden(void **state)
{
    (void)state;
    lac_compressor *const c = open_for("atomo", LAC_FORM_UNBIASED, shape);
    static const float bad[] = {NAN, INFINITY};
    for (size_t k = 0; k < 2; k++) {
        float x[VALUES], y[VALUES];
        fill_normal(x, VALUES, 6);
        x[10] = bad[k];
        compress(c, k, x, y);
        for (size_t i = 0; i < VALUES; i++) {
            assert_true(isnan(y[i]));
        }
    }
    lac_compressor_close(c);
}

static void payloads_have_the_size_of_the_factors(void **state)
{
    (void)state;
    lac_compressor *const c = open_for("atomo:rank=2", LAC_FORM_PLAIN, shape);
    const lac_shape vector = {9, 1}, small = {3, 4};
    const uint8_t payload[CAP] = {0};
    const lac_key key = key_of(1);
    assert_int_equal(
        lac_compressor_bound(c, shape, LAC_SCOPE_WORKER),
        4 * 2 * (ROWS + COLS));
    assert_int_equal(lac_compressor_bound(c, vector, LAC_SCOPE_WORKER), 4 * 9);
    assert_int_equal(lac_compressor_bound(c, small, LAC_SCOPE_WORKER), 4 * 12);
    assert_fails(
        lac_compressor_check(c, &key, shape, payload, 119), LAC_ERR_CORRUPT,
        "atomo: payload has 119 bytes, expected 120");
    lac_compressor_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_are_the_best_that_add_up_to_the_rank),
        cmocka_unit_test(atoms_are_chosen_with_their_probabilities),
        cmocka_unit_test(a_value_that_is_kept_is_divided_by_its_probability),
        cmocka_unit_test(the_mean_is_the_matrix),
        cmocka_unit_test(matrices_of_that_rank_survive),
        cmocka_unit_test(the_guarantee_is_that_of_equal_values),
        cmocka_unit_test(divergence_is_not_hidden),
        cmocka_unit_test(payloads_have_the_size_of_the_factors),
    };
    return cmocka_run_group_tests_name("atomo", tests, NULL, NULL);
}
