// SPDX-License-Identifier: MIT
// The language model: initial parameters, the carry between calls, and the
// options it rejects.
#include "lstm_test.h"

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

// Row 0 alone and row 0 among others have the same carry.
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

// Of equally probable words the first is the prediction.
static void equal_logits_predict_the_first_word(void **state)
{
    (void)state;
    model m;
    open_model(&m, "lstm:hidden=5,layers=2", STEPS);
    memset(m.parameters, 0, m.n * sizeof(*m.parameters));
    for (uint32_t i = 0; i < LINES; i++) {
        m.labels[i] = i % 3;
    }
    const nn_score score = evaluate(&m, 0);
    assert_int_equal(score.correct, LINES / 3);
    assert_true(fabs(score.loss / LINES - log(WORDS)) < 1e-6);
    close_model(&m);
}

static void shapes_are_those_of_torch(void **state)
{
    (void)state;
    model m;
    open_model(&m, "lstm:vocabulary=28869,hidden=5,layers=2", STEPS);
    size_t shape[NN_DIMENSIONS_MAX];
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
        cmocka_unit_test(two_short_calls_equal_a_long_one),
        cmocka_unit_test(gradients_and_evaluation_leave_the_same_carry),
        cmocka_unit_test(a_network_without_gradients_evaluates_alike),
        cmocka_unit_test(fewer_rows_than_planned_can_be_evaluated),
        cmocka_unit_test(training_begins_at_the_entropy_of_equal_words),
        cmocka_unit_test(equal_logits_predict_the_first_word),
        cmocka_unit_test(shapes_are_those_of_torch),
        cmocka_unit_test(images_are_refused),
        cmocka_unit_test(a_lack_of_memory_is_reported),
        cmocka_unit_test(calls_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
