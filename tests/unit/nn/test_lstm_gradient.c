// SPDX-License-Identifier: MIT
// The gradient of the language model: against differences of its loss, under
// dropout, and as a direction of descent.
#include "lstm_test.h"

// Central differences of the mean loss. A step of 2^-7 leaves an error of
// step^2 / 6 times the third derivative, which is of the size of the loss's
// lower ones (below 1), so about 1e-5; the loss itself is good to 1e-6 of its
// value of 2.5 at most, hence 2.5e-6 / 2^-6 = 1.6e-4 in the quotient.
static void check_gradient(const char *spec)
{
    const float step = 0x1p-7F;
    model m;
    open_model(&m, spec, STEPS);
    // Gradients of 0.005 and more in every tensor, so that none hides behind
    // the tolerance: words ten times as far apart, weights three times, and a
    // bias.
    for (size_t i = 0; i < m.n; i++) {
        m.parameters[i] *= i < (size_t)WORDS * HIDDEN ? 10 : 3;
    }
    for (size_t i = m.n - WORDS; i < m.n; i++) {
        m.parameters[i] = 0.1F * (float)(i % 5) - 0.2F;
    }
    // Three blocks of logits, the last of them short.
    ((nn_lstm *)(void *)m.net)->block = 5;
    float *const unused = floats(m.n);
    (void)gradient_of(&m, m.gradient);
    const lac_layout *const layout = nn_network_layout(m.net);
    for (size_t k = 0; k < lac_layout_count(layout); k++) {
        const lac_tensor *const t = lac_layout_tensor(layout, k);
        double largest = 0;
        for (size_t i = 0; i < t->shape.rows * t->shape.cols; i++) {
            float *const p = &m.parameters[t->offset + i];
            const float old = *p;
            *p = old + step;
            const double above = gradient_of(&m, unused).loss;
            *p = old - step;
            const double below = gradient_of(&m, unused).loss;
            *p = old;
            const double slope = (above - below) / LINES / (2 * (double)step);
            const double got = (double)m.gradient[t->offset + i];
            if (fabs(slope - got) > 2e-4) {
                fail_msg("%s[%zu]: %g, not %g", t->name, i, got, slope);
            }
            largest = fmax(largest, fabs(got));
        }
        if (largest < 5e-3) {
            fail_msg("%s: at most %g", t->name, largest);
        }
    }
    free(unused);
    close_model(&m);
}

static void the_gradient_is_the_slope_of_the_loss(void **state)
{
    (void)state;
    check_gradient("lstm:hidden=5,layers=2,dropout=0");
}

static void the_gradient_is_the_slope_under_dropout(void **state)
{
    (void)state;
    check_gradient("lstm:hidden=5,layers=2,dropout=0.5");
}

static void equal_keys_drop_alike_and_others_do_not(void **state)
{
    (void)state;
    model m;
    open_model(&m, "lstm:hidden=5,layers=2,dropout=0.5", STEPS);
    float *const again = floats(m.n);
    const nn_score score = gradient_of(&m, m.gradient);
    const nn_score same = gradient_of(&m, again);
    assert_memory_equal(m.gradient, again, m.n * sizeof(*again));
    assert_true(score.loss == same.loss);
    m.noise = key_of(2);
    const nn_score other = gradient_of(&m, again);
    assert_true(other.loss != score.loss);
    free(again);
    close_model(&m);
}

// The model of this test has 400 x 12 draws a layer. Of n draws that succeed
// with probability q, n q do within five deviations sqrt(n q (1 - q)).
static void assert_share(size_t count, double q)
{
    const double n = 400 * LINES;
    assert_true(fabs((double)count - n * q) < 5 * sqrt(n * q * (1 - q)));
}

static void dropout_drops_its_share(void **state)
{
    (void)state;
    model m = {.noise = key_of(3)};
    nn_options o = options_of("lstm:hidden=400,layers=2,dropout=0.25", STEPS);
    o.sample.classes = LINES;
    assert_ok(nn_network_open(&m.net, &o));
    m.n = lac_layout_values(nn_network_layout(m.net));
    m.parameters = floats(m.n);
    m.gradient = floats(m.n);
    nn_network_initialise(m.net, SEED, m.parameters, NULL);
    float *const carry = calloc(nn_network_carry(m.net), sizeof(*carry));
    assert_non_null(carry);
    for (uint32_t i = 0; i < LINES; i++) {
        m.tokens[i] = i; // so that x[0] is the encoder, thinned
        m.labels[i] = 0;
    }
    const nn_state given = {.parameters = m.parameters, .carry = carry};
    const nn_batch batch = {
        .count = BATCH, .tokens = m.tokens, .labels = m.labels};
    nn_score score;
    assert_ok(nn_network_gradient(
        m.net, &given, &batch, &m.noise, m.gradient, &score));
    const nn_lstm_layer *const layers = ((nn_lstm *)(void *)m.net)->layer;
    for (size_t k = 0; k < 3; k++) {
        size_t kept = 0, alike = 0;
        for (size_t i = 0; i < (size_t)400 * LINES; i++) {
            kept += layers[k].mask[i];
            alike += layers[k].mask[i] == layers[(k + 1) % 3].mask[i] ? 1 : 0;
        }
        assert_share(kept, 0.75);
        assert_share(alike, 0.75 * 0.75 + 0.25 * 0.25);
    }
    for (size_t i = 0; i < (size_t)400 * LINES; i++) {
        const float whole = m.parameters[i] * (float)(4.0 / 3);
        assert_true(layers[0].x[i] == (layers[0].mask[i] ? whole : 0));
    }
    free(carry);
    close_model(&m);
}

static void steps_against_the_gradient_lower_the_loss(void **state)
{
    (void)state;
    model m;
    open_model(&m, "lstm:hidden=5,layers=2,dropout=0", STEPS);
    const double before = gradient_of(&m, m.gradient).loss;
    for (size_t round = 0; round < 300; round++) {
        const nn_score score = gradient_of(&m, m.gradient);
        assert_true(score.correct <= LINES);
        for (size_t i = 0; i < m.n; i++) {
            m.parameters[i] -= 2.0F * m.gradient[i];
        }
    }
    const nn_score after = gradient_of(&m, m.gradient);
    assert_true(after.loss < before / 2);
    assert_true(after.correct > LINES / 2);
    close_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_is_the_slope_of_the_loss),
        cmocka_unit_test(the_gradient_is_the_slope_under_dropout),
        cmocka_unit_test(equal_keys_drop_alike_and_others_do_not),
        cmocka_unit_test(dropout_drops_its_share),
        cmocka_unit_test(steps_against_the_gradient_lower_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
