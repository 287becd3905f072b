// SPDX-License-Identifier: MIT
// The loops of the language model: exponentials against libm, and the versions
// for different machines against each other.
#include "lac_test.h"

#include <math.h>
#include <string.h>

#include "nn/lstm_kernels.h"
#include "nn/lstm_math.h"

// The bound of lstm_math.h.
#define CLOSE 2e-7

static double error_of(float got, double expected)
{
    return fabs((double)got - expected) / fabs(expected);
}

static void exponentials_are_those_of_libm(void **state)
{
    (void)state;
    double worst[3] = {0};
    for (int i = -700000; i <= 700000; i++) {
        const float x = (float)i * 0x1p-13F * 1.01F; // to 86.3
        const double d = (double)x;
        worst[0] = fmax(worst[0], error_of(nn_exp(x), exp(d)));
        worst[1] = fmax(worst[1], error_of(nn_sigmoid(x), 1 / (1 + exp(-d))));
        if (i != 0) {
            worst[2] = fmax(worst[2], error_of(nn_tanh(x), tanh(d)));
        }
    }
    for (int i = 0; i < 10000; i++) {
        const float x = expf((float)i * -7e-3F); // to 4e-31
        worst[2] = fmax(worst[2], error_of(nn_tanh(-x), tanh(-(double)x)));
    }
    for (size_t k = 0; k < 3; k++) {
        if (!(worst[k] < CLOSE)) {
            fail_msg("function %zu is off by %g", k, worst[k]);
        }
    }
    assert_true(nn_tanh(0) == 0);
}

static void exponentials_end_in_finite_numbers(void **state)
{
    (void)state;
    assert_true(nn_exp(-INFINITY) == nn_exp(NN_EXP_MIN));
    assert_true(nn_exp(INFINITY) == nn_exp(NN_EXP_MAX));
    assert_true(isnormal(nn_exp(-1e30F)) && isnormal(nn_exp(1e30F)));
    assert_true(nn_tanh(1e30F) == 1 && nn_tanh(-1e30F) == -1);
    assert_true(nn_sigmoid(1e30F) == 1 && nn_sigmoid(-1e30F) < 1e-37F);
    assert_true(isnan(nn_exp(NAN)) && isnan(nn_tanh(NAN)));
    assert_true(isnan(nn_sigmoid(NAN)));
}

enum { ROWS = 3, WIDTH = 37, CELLS = ROWS * WIDTH, WORDS = 2500 };

static void fill(float *x, size_t n, uint64_t round)
{
    const lac_key key =
        lac_key_make(5, LAC_PURPOSE_DATA, round, lac_scope_shared(), 0);
    for (size_t i = 0; i < n; i++) {
        x[i] = 2.0F * lac_key_normal(&key, (uint32_t)i);
    }
}

typedef struct step {
    float gates[4 * CELLS], cells[CELLS], tanh_cells[CELLS], hidden[CELLS];
    float gradient_cells[CELLS];
} step;

static void run_cells(const nn_kernels *kernels, step *s)
{
    float biases[4 * WIDTH], before[CELLS], gradient[CELLS];
    fill(s->gates, (size_t)4 * CELLS, 1);
    fill(biases, (size_t)4 * WIDTH, 2);
    fill(before, CELLS, 3);
    fill(gradient, CELLS, 4);
    fill(s->gradient_cells, CELLS, 5);
    const nn_cell cell = {
        .rows = ROWS,
        .width = WIDTH,
        .biases = biases,
        .gates = s->gates,
        .before = before,
        .cells = s->cells,
        .tanh_cells = s->tanh_cells,
        .hidden = s->hidden};
    kernels->cell(&cell);
    const nn_cell_backward back = {
        .rows = ROWS,
        .width = WIDTH,
        .gates = s->gates,
        .before = before,
        .tanh_cells = s->tanh_cells,
        .gradient = gradient,
        .gradient_cells = s->gradient_cells};
    kernels->cell_backward(&back);
}

typedef struct line {
    float x[WORDS], sums[WORDS];
    float highest;
    double sum;
} line;

static void run_line(const nn_kernels *kernels, line *l)
{
    float bias[WORDS];
    fill(l->x, WORDS, 6);
    fill(bias, WORDS, 7);
    fill(l->sums, WORDS, 8);
    l->highest = kernels->add_bias(l->x, bias, WORDS);
    l->sum = kernels->exponentials(l->x, l->highest, WORDS);
    kernels->scale(l->x, (float)(1 / l->sum), l->sums, WORDS);
}

static void every_machine_gets_the_same_bits(void **state)
{
    (void)state;
    static step a, b;
    static line c, d;
    run_cells(nn_lstm_kernels_portable(), &a);
    run_cells(nn_lstm_kernels(), &b);
    assert_memory_equal(&a, &b, sizeof(a));
    run_line(nn_lstm_kernels_portable(), &c);
    run_line(nn_lstm_kernels(), &d);
    assert_memory_equal(c.x, d.x, sizeof(c.x));
    assert_memory_equal(c.sums, d.sums, sizeof(c.sums));
    assert_true(c.sum == d.sum && c.highest == d.highest);
}

static void a_line_becomes_its_softmax(void **state)
{
    (void)state;
    static line l;
    float bias[WORDS], x[WORDS], sums[WORDS];
    run_line(nn_lstm_kernels(), &l);
    fill(x, WORDS, 6);
    fill(bias, WORDS, 7);
    fill(sums, WORDS, 8);
    double sum = 0, highest = -HUGE_VAL;
    for (size_t i = 0; i < WORDS; i++) {
        highest = fmax(highest, (double)(x[i] + bias[i]));
    }
    for (size_t i = 0; i < WORDS; i++) {
        sum += exp((double)(x[i] + bias[i]) - highest);
    }
    assert_true((double)l.highest == highest);
    // Differences of logits up to 24 are rounded to 1e-6 before exp.
    assert_true(fabs(l.sum / sum - 1) < 2e-6);
    for (size_t i = 0; i < WORDS; i++) {
        const double p = exp((double)(x[i] + bias[i]) - highest) / sum;
        assert_true(fabs((double)l.x[i] / p - 1) < 4e-6);
        assert_true(l.sums[i] == sums[i] + l.x[i]);
    }
}

static void negligible_probabilities_are_none(void **state)
{
    (void)state;
    float x[3] = {0.0F, -80.0F, NAN}, bias[3] = {0}, sums[3] = {0};
    const nn_kernels *const kernels = nn_lstm_kernels();
    assert_true(kernels->add_bias(x, bias, 3) == 0);
    assert_true(isnan(kernels->exponentials(x, 0, 3)));
    kernels->scale(x, 0.5F, sums, 3);
    assert_true(x[0] == 0.5F && x[1] == 0 && isnan(x[2]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponentials_are_those_of_libm),
        cmocka_unit_test(exponentials_end_in_finite_numbers),
        cmocka_unit_test(every_machine_gets_the_same_bits),
        cmocka_unit_test(a_line_becomes_its_softmax),
        cmocka_unit_test(negligible_probabilities_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
