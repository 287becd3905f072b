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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_logits_cost_the_logarithm_of_the_classes),
        cmocka_unit_test(of_equal_logits_the_first_is_the_prediction),
        cmocka_unit_test(large_logits_do_not_overflow),
        cmocka_unit_test(not_a_number_is_a_loss_that_is_not_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
