// SPDX-License-Identifier: MIT
// The language model: its gradient against differences of its loss, what it
// carries from call to call, and what it refuses.
#include "lac_test.h"

#include <math.h>
#include <string.h>

#include "nn/network.h"

enum { WORDS = 11, HIDDEN = 5, LAYERS = 2, BATCH = 3, STEPS = 4 };
enum { SEED = 7, CARRY = 2 * LAYERS * BATCH * HIDDEN, LINES = BATCH * STEPS };

typedef struct model {
    nn_network *net;
    size_t n;
    float *parameters, *gradient;
    float carry[CARRY];
    uint32_t tokens[2 * LINES], labels[2 * LINES];
    lac_key noise;
} model;

static nn_options options_of(const char *spec, uint32_t steps)
{
    return (nn_options){
        .model = spec,
        .sample = {.classes = WORDS},
        .batch = BATCH,
        .steps = steps,
        .training = true};
}

static float *floats(size_t n)
{
    float *const x = malloc(n * sizeof(*x));
    assert_non_null(x);
    return x;
}

static lac_key key_of(uint64_t round)
{
    return lac_key_make(
        SEED, LAC_PURPOSE_DROPOUT, round, lac_scope_worker(0), 0);
}

static void fill_carry(float *carry)
{
    const lac_key key = key_of(99);
    for (uint32_t i = 0; i < CARRY; i++) {
        carry[i] = (float)(lac_key_draw(&key, i) * 0x1p-32) - 0.5F;
    }
}

static void open_model(model *m, const char *spec, uint32_t steps)
{
    const nn_options o = options_of(spec, steps);
    const lac_key key = key_of(98);
    assert_ok(nn_network_open(&m->net, &o));
    assert_int_equal(nn_network_carry(m->net), CARRY);
    m->n = lac_layout_values(nn_network_layout(m->net));
    m->parameters = floats(m->n);
    m->gradient = floats(m->n);
    nn_network_initialise(m->net, SEED, m->parameters, NULL);
    fill_carry(m->carry);
    for (uint32_t i = 0; i < 2 * LINES; i++) {
        m->tokens[i] = lac_key_draw(&key, i) % WORDS;
        m->labels[i] = lac_key_draw(&key, i + 1000) % WORDS;
    }
    m->noise = key_of(1);
}

static void close_model(model *m)
{
    nn_network_close(m->net);
    free(m->parameters);
    free(m->gradient);
}

static nn_score gradient_of(model *m, float *gradient_out)
{
    float carry[CARRY];
    memcpy(carry, m->carry, sizeof(carry));
    const nn_state state = {.parameters = m->parameters, .carry = carry};
    const nn_batch batch = {
        .count = BATCH, .tokens = m->tokens, .labels = m->labels};
    nn_score score;
    assert_ok(nn_network_gradient(
        m->net, &state, &batch, &m->noise, gradient_out, &score));
    return score;
}

// The carry that evaluation leaves stays in the model.
static nn_score evaluate(model *m, size_t from)
{
    const nn_state state = {.parameters = m->parameters, .carry = m->carry};
    const nn_batch batch = {
        .count = BATCH, .tokens = m->tokens + from, .labels = m->labels + from};
    nn_score score;
    assert_ok(nn_network_evaluate(m->net, &state, &batch, &score));
    return score;
}

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

static void two_short_calls_equal_a_long_one(void **state)
{
    (void)state;
    model whole, half;
    open_model(&whole, "lstm:hidden=5,layers=2", 2 * STEPS);
    open_model(&half, "lstm:hidden=5,layers=2", STEPS);
    const nn_score all = evaluate(&whole, 0);
    const nn_score first = evaluate(&half, 0);
    const nn_score second = evaluate(&half, LINES);
    // Sums of 24 terms near 2.4 in double, of logits good to 1e-6.
    assert_true(fabs(all.loss - first.loss - second.loss) < 1e-4);
    assert_int_equal(all.correct, first.correct + second.correct);
    assert_int_equal(all.count, 2 * LINES);
    assert_int_equal(first.count, LINES);
    for (size_t i = 0; i < CARRY; i++) {
        assert_true(fabsf(whole.carry[i] - half.carry[i]) < 1e-6F);
    }
    // And the carry matters.
    fill_carry(half.carry);
    assert_true(fabs(evaluate(&half, LINES).loss - second.loss) > 1e-4);
    close_model(&whole);
    close_model(&half);
}

static void gradients_and_evaluation_leave_the_same_carry(void **state)
{
    (void)state;
    model m;
    open_model(&m, "lstm:hidden=5,layers=2,dropout=0", STEPS);
    float carry[CARRY];
    memcpy(carry, m.carry, sizeof(carry));
    const nn_state given = {.parameters = m.parameters, .carry = carry};
    const nn_batch batch = {
        .count = BATCH, .tokens = m.tokens, .labels = m.labels};
    nn_score learning;
    assert_ok(nn_network_gradient(
        m.net, &given, &batch, &m.noise, m.gradient, &learning));
    const nn_score score = evaluate(&m, 0);
    assert_memory_equal(carry, m.carry, sizeof(carry));
    assert_true(score.loss == learning.loss);
    assert_int_equal(score.correct, learning.correct);
    close_model(&m);
}

static void a_network_without_gradients_evaluates_alike(void **state)
{
    (void)state;
    model m;
    open_model(&m, "lstm:hidden=5,layers=2", STEPS);
    const nn_score expected = evaluate(&m, 0);
    const size_t memory = nn_network_memory(m.net);
    nn_network *const training = m.net;
    nn_options o = options_of("lstm:hidden=5,layers=2", STEPS);
    o.training = false;
    assert_ok(nn_network_open(&m.net, &o));
    fill_carry(m.carry);
    const nn_score score = evaluate(&m, 0);
    assert_true(score.loss == expected.loss);
    assert_int_equal(score.correct, expected.correct);
    assert_true(nn_network_memory(m.net) < memory);
    nn_network_close(training);
    close_model(&m);
}

// Row 0 alone, against row 0 among others: its carry is what tells.
static void fewer_rows_than_planned_can_be_evaluated(void **state)
{
    (void)state;
    model m;
    open_model(&m, "lstm:hidden=5,layers=2", STEPS);
    float carry[CARRY];
    memcpy(carry, m.carry, sizeof(carry));
    uint32_t tokens[STEPS], labels[STEPS];
    for (size_t t = 0; t < STEPS; t++) {
        tokens[t] = m.tokens[t * BATCH];
        labels[t] = m.labels[t * BATCH];
    }
    const nn_state given = {.parameters = m.parameters, .carry = carry};
    const nn_batch batch = {.count = 1, .tokens = tokens, .labels = labels};
    nn_score score;
    assert_ok(nn_network_evaluate(m.net, &given, &batch, &score));
    assert_int_equal(score.count, STEPS);
    (void)evaluate(&m, 0);
    for (size_t i = 0; i < CARRY; i++) {
        if (i / HIDDEN % BATCH == 0) {
            assert_true(fabsf(carry[i] - m.carry[i]) < 1e-6F);
        }
    }
    close_model(&m);
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

// A word that is read once and never predicted has a gradient of decoder and
// embedding; with a vanishing share of the decoder's, zeros come from dropout.
// Here all labels and their probabilities are left out of sight by a bias that
// makes word 0 certain, and word 0 is read nowhere: what remains of row 0's
// gradient, p x - x, is too small to see, that of the others comes through the
// layers.
static void dropout_keeps_as_much_as_it_says(void **state)
{
    enum { WIDTH = 400 };
    (void)state;
    model m = {.noise = key_of(3)};
    nn_options o = options_of("lstm:hidden=400,layers=1,dropout=0.25", STEPS);
    o.sample.classes = LINES;
    assert_ok(nn_network_open(&m.net, &o));
    m.n = lac_layout_values(nn_network_layout(m.net));
    m.parameters = floats(m.n);
    m.gradient = floats(m.n);
    nn_network_initialise(m.net, SEED, m.parameters, NULL);
    float *const carry = calloc(nn_network_carry(m.net), sizeof(*carry));
    assert_non_null(carry);
    // Words far from probable have no gradient from the decoder.
    for (uint32_t i = 0; i < LINES; i++) {
        m.tokens[i] = i;
        m.labels[i] = i % 2;
        m.parameters[m.n - LINES + i] = i < 2 ? 0.0F : -200.0F;
    }
    const nn_state given = {.parameters = m.parameters, .carry = carry};
    const nn_batch batch = {
        .count = BATCH, .tokens = m.tokens, .labels = m.labels};
    nn_score score;
    assert_ok(nn_network_gradient(
        m.net, &given, &batch, &m.noise, m.gradient, &score));
    size_t dropped = 0;
    for (size_t i = 2 * WIDTH; i < (size_t)LINES * WIDTH; i++) {
        dropped += m.gradient[i] == 0 ? 1 : 0;
    }
    // 4000 draws: deviation sqrt(4000 * 0.25 * 0.75) = 27, and five of them.
    assert_true(dropped > 1000 - 137 && dropped < 1000 + 137);
    free(carry);
    close_model(&m);
}

static void training_begins_at_the_entropy_of_equal_words(void **state)
{
    (void)state;
    model m;
    open_model(&m, "lstm:hidden=5,layers=2", STEPS);
    memset(m.carry, 0, sizeof(m.carry));
    // |h| < 0.5 at first and |w| < 0.1: logits stay within 5 * 0.05 of 0.
    assert_true(fabs(evaluate(&m, 0).loss / LINES - log(WORDS)) < 0.25);
    const lac_layout *const layout = nn_network_layout(m.net);
    for (size_t k = 0; k < lac_layout_count(layout); k++) {
        const lac_tensor *const t = lac_layout_tensor(layout, k);
        const size_t n = t->shape.rows * t->shape.cols;
        const bool bias = k + 1 == lac_layout_count(layout);
        const double edge = bias ? 0 : k == 0 ? 0.1 : 1 / sqrt(HIDDEN);
        double largest = 0;
        for (size_t i = 0; i < n; i++) {
            const double x = (double)m.parameters[t->offset + i];
            largest = fmax(largest, fabs(x));
        }
        assert_true(largest <= edge * (1 + 1e-6) && largest >= 0.8 * edge);
    }
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

static void shapes_are_those_of_torch(void **state)
{
    (void)state;
    model m;
    open_model(&m, "lstm:vocabulary=28869,hidden=5,layers=2", STEPS);
    size_t shape[NN_DIMENSIONS_MOST];
    assert_int_equal(nn_network_dimensions(m.net, 0, shape), 2);
    assert_int_equal(shape[0], WORDS);
    assert_int_equal(shape[1], HIDDEN);
    assert_int_equal(nn_network_dimensions(m.net, 3, shape), 1);
    assert_int_equal(shape[0], 4 * HIDDEN);
    assert_int_equal(lac_layout_count(nn_network_statistics(m.net)), 0);
    close_model(&m);
}

static void images_are_refused(void **state)
{
    (void)state;
    nn_network *net = NULL;
    nn_options o = options_of("lstm", STEPS);
    o.sample = (nn_sample){3, 32, 32, 10};
    assert_fails(
        nn_network_open(&net, &o), LAC_ERR_INVALID,
        "lstm: examples are 3 x 32 x 32, expected a text");
    assert_null(net);
    o = options_of("lstm", 0);
    assert_fails(
        nn_network_open(&net, &o), LAC_ERR_INVALID,
        "lstm: 11 words, 3 rows, 0 steps, expected at least 1 of each");
    o = options_of("lstm", UINT32_MAX);
    assert_fails(
        nn_network_open(&net, &o), LAC_ERR_INVALID,
        "lstm: 3 rows of 4294967295 words at width 650, expected a product "
        "below 2^32");
}

static void a_lack_of_memory_is_reported(void **state)
{
    (void)state;
    const nn_options o = options_of("lstm:hidden=5,layers=2", STEPS);
    nn_network *net = NULL;
    long failed = 0;
    for (;; failed++) {
        test_allocations_left = failed;
        const lac_status status = nn_network_open(&net, &o);
        test_allocations_left = -1;
        if (status == LAC_OK) {
            break;
        }
        assert_int_equal(status, LAC_ERR_NOMEM);
        assert_null(net);
    }
    assert_true(failed > 4);
    nn_network_close(net);
}

static void calls_allocate_nothing(void **state)
{
    (void)state;
    model m;
    open_model(&m, "lstm:hidden=5,layers=2", STEPS);
    const size_t before = test_allocations;
    (void)gradient_of(&m, m.gradient);
    (void)evaluate(&m, 0);
    assert_int_equal(test_allocations, before);
    close_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_is_the_slope_of_the_loss),
        cmocka_unit_test(the_gradient_is_the_slope_under_dropout),
        cmocka_unit_test(two_short_calls_equal_a_long_one),
        cmocka_unit_test(gradients_and_evaluation_leave_the_same_carry),
        cmocka_unit_test(a_network_without_gradients_evaluates_alike),
        cmocka_unit_test(fewer_rows_than_planned_can_be_evaluated),
        cmocka_unit_test(equal_keys_drop_alike_and_others_do_not),
        cmocka_unit_test(dropout_keeps_as_much_as_it_says),
        cmocka_unit_test(training_begins_at_the_entropy_of_equal_words),
        cmocka_unit_test(steps_against_the_gradient_lower_the_loss),
        cmocka_unit_test(shapes_are_those_of_torch),
        cmocka_unit_test(images_are_refused),
        cmocka_unit_test(a_lack_of_memory_is_reported),
        cmocka_unit_test(calls_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
