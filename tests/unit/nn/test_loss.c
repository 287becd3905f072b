// SPDX-License-Identifier: MIT
// Softmax and cross entropy.
#include "lac_test.h"

#include <math.h>

#include "nn/loss.h"

static void equal_logits_cost_the_logarithm_of_the_classes(void **state)
{
    (void)state;
    const float logits[] = {5, 5, 5, 5, -1, -1, -1, -1};
    const uint32_t labels[] = {0, 3};
    float diff[8];
    nn_score score = {0};
    nn_loss(logits, labels, 2, 4, diff, &score);
    assert_true(fabs(score.loss - 2 * log(4)) < 1e-14);
    assert_int_equal(score.count, 2);
    // (1/4 - [label]) / 2 examples
    const float expected[] = {-0.375F, 0.125F, 0.125F, 0.125F,
                              0.125F,  0.125F, 0.125F, -0.375F};
    for (size_t i = 0; i < 8; i++) {
        assert_true(diff[i] == expected[i]);
    }
}

static void of_equal_logits_the_first_is_the_prediction(void **state)
{
    (void)state;
    const float logits[] = {5, 5, 5, 5, 1, 2, 2, 0};
    nn_score score = {0};
    nn_loss(logits, (const uint32_t[]){0, 2}, 2, 4, NULL, &score);
    assert_int_equal(score.correct, 1);
    nn_loss(logits, (const uint32_t[]){1, 1}, 2, 4, NULL, &score);
    assert_int_equal(score.correct, 2);
    assert_int_equal(score.count, 4);
}

// The softmax of 3e38 and -3e38 is 1 and 0, whatever exp of them would be.
static void large_logits_do_not_overflow(void **state)
{
    (void)state;
    const float logits[] = {3e38F, -3e38F, 1000, 1000};
    float diff[4];
    nn_score score = {0};
    nn_loss(logits, (const uint32_t[]){0, 1}, 2, 2, diff, &score);
    assert_true(fabs(score.loss - log(2)) < 1e-13);
    assert_true(diff[0] == 0 && diff[1] == 0);
    assert_true(diff[2] == 0.25F && diff[3] == -0.25F);
}

static void not_a_number_is_a_loss_that_is_not_a_number(void **state)
{
    (void)state;
    const float logits[] = {1, NAN, 2};
    nn_score score = {0};
    nn_loss(logits, (const uint32_t[]){0}, 1, 3, NULL, &score);
    assert_true(isnan(score.loss));
}

// log(1 + exp(-y z)) with y = -1 and +1 for the labels 0 and 1, and its
// derivative -y / (1 + exp(y z)).
static void a_single_output_has_the_logistic_loss(void **state)
{
    (void)state;
    const float logits[] = {0, 2, -3, 0.5F, -0.25F};
    const uint32_t labels[] = {1, 1, 1, 0, 0};
    float diff[5];
    nn_score score = {0};
    double loss = 0;
    nn_loss(logits, labels, 5, 1, diff, &score);
    for (size_t i = 0; i < 5; i++) {
        const double y = labels[i] == 1 ? 1 : -1, z = (double)logits[i];
        loss += log(1 + exp(-y * z));
        const double expected = -y / (1 + exp(y * z)) / 5;
        assert_true(fabs((double)diff[i] - expected) < 0x1p-24);
        const nn_guess guess = nn_loss_guess(logits + i, 1);
        assert_int_equal(guess.label, z > 0);
        assert_true(fabs(guess.probability - 1 / (1 + exp(-fabs(z)))) < 1e-15);
    }
    assert_true(fabs(score.loss - loss) < 1e-14);
    assert_int_equal(score.count, 5);
    assert_int_equal(score.correct, 2); // of 0 the prediction is class 0
}

static void a_single_output_does_not_overflow(void **state)
{
    (void)state;
    const float logits[] = {3e38F, -1000, 1000};
    float diff[3];
    nn_score score = {0};
    nn_loss(logits, (const uint32_t[]){1, 0, 0}, 3, 1, diff, &score);
    assert_true(score.loss == 1000);
    assert_true(diff[0] == 0 && diff[1] == 0 && diff[2] == (float)(1.0 / 3));
    nn_loss(&(float){NAN}, (const uint32_t[]){0}, 1, 1, NULL, &score);
    assert_true(isnan(score.loss));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_logits_cost_the_logarithm_of_the_classes),
        cmocka_unit_test(of_equal_logits_the_first_is_the_prediction),
        cmocka_unit_test(large_logits_do_not_overflow),
        cmocka_unit_test(a_single_output_has_the_logistic_loss),
        cmocka_unit_test(a_single_output_does_not_overflow),
        cmocka_unit_test(not_a_number_is_a_loss_that_is_not_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
