// SPDX-License-Identifier: MIT
// What counts as chance, and which runs have learned.
#include <math.h>

#include "feed_test.h"
#include "train/learned.h"

static void assert_near(double value, double expected)
{
    assert_true(fabs(value - expected) < 1e-12);
}

static bool learned(double loss, double accuracy, const train_chance *chance)
{
    const train_metrics m = {.train_loss = loss, .test_accuracy = accuracy};
    return train_has_learned(&m, chance);
}

static void chance_is_that_of_the_set(void **state)
{
    (void)state;
    data_set *set = open_images();
    const train_chance chance = train_chance_of(set);
    // Seven test images of different classes.
    const double share = 1.0 / 7;
    assert_near(chance.loss, log(10));
    assert_near(chance.accuracy, share + 3 * sqrt(share * (1 - share) / 7));
    data_set_close(set);
}

static void a_small_test_set_has_no_chance(void **state)
{
    (void)state;
    data_set *set = open_table();
    const train_chance chance = train_chance_of(set);
    assert_near(chance.loss, log(2));
    assert_true(isnan(chance.accuracy));
    assert_true(learned(0.5, 0, &chance));
    assert_false(learned(0.7, 1, &chance));
    data_set_close(set);
}

static void both_loss_and_accuracy_must_beat_chance(void **state)
{
    (void)state;
    const train_chance chance = {.loss = 2.3, .accuracy = 0.11};
    assert_true(learned(2.2, 0.12, &chance));
    assert_false(learned(2.2, 0.11, &chance));
    assert_false(learned(2.3, 0.12, &chance));
    assert_false(learned((double)NAN, 0.12, &chance));
    assert_true(learned(2.2, (double)NAN, &chance));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(chance_is_that_of_the_set),
        IN_FOLDER(a_small_test_set_has_no_chance),
        cmocka_unit_test(both_loss_and_accuracy_must_beat_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
