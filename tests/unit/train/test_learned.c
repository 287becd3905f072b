// SPDX-License-Identifier: MIT
// What counts as chance, and which runs have learned.
#include <math.h>

#include "feed_test.h"
#include "train/learned.h"

static void assert_near(double value, double expected)
{
    assert_true(fabs(value - expected) < 1e-12);
}

// A run whose first steps are unknown, on `examples`.
static bool learned_on(
    uint64_t examples, double loss, double accuracy, const train_chance *chance)
{
    const train_metrics m = {
        .train_loss = loss,
        .test.accuracy = accuracy,
        .test.examples = examples,
        .test.loss = (double)NAN,
        .first_loss = (double)NAN,
        .loss_luck = (double)NAN,
    };
    return train_judge(&m, chance).learned;
}

static void chance_is_that_of_the_set(void **state)
{
    (void)state;
    data_set *set = open_images();
    const train_chance chance = train_chance_of(set);
    // Of the 24 training images four classes have three, six have two. The
    // seven test images are of different classes.
    assert_near(chance.loss, 4 * 3 / 24.0 * log(8) + 6 * 2 / 24.0 * log(12));
    assert_near(chance.accuracy, 1.0 / 7);
    data_set_close(set);
}

// Of p = 0.5 and two examples three standard deviations are 1.06.
static void on_few_examples_any_accuracy_may_be_chance(void **state)
{
    (void)state;
    const train_chance chance = {.loss = log(2), .accuracy = 0.5};
    assert_true(learned_on(2, 0.5, 0, &chance));
    assert_false(learned_on(2, 0.7, 1, &chance));
}

static void without_first_steps_both_must_beat_chance(void **state)
{
    (void)state;
    // Three standard deviations are 0.009 for 10,000 examples, and 0.0402 for
    // 500.
    const train_chance chance = {.loss = 2.3, .accuracy = 0.1};
    assert_true(learned_on(10000, 2.2, 0.1097, &chance));
    assert_false(learned_on(10000, 2.2, 0.1089, &chance));
    assert_false(learned_on(500, 2.2, 0.1097, &chance));
    assert_true(learned_on(500, 2.2, 0.1403, &chance));
    assert_false(learned_on(500, 2.2, 0.1402, &chance));
    assert_false(learned_on(10000, 2.3, 0.12, &chance));
    assert_false(learned_on(10000, (double)NAN, 0.12, &chance));
    assert_true(learned_on(10000, 2.2, (double)NAN, &chance));
}

// The numbers of runs of LeNet on Fashion-MNIST, and of others like them.
typedef struct fixture {
    uint64_t examples;
    double accuracy, first_loss, train_loss, test_loss, luck;
    train_verdict expected;
} fixture;

static void assert_verdict(const fixture *f)
{
    const train_chance chance = {.loss = log(10), .accuracy = 0.1};
    const train_metrics m = {
        .test.examples = f->examples,
        .test.accuracy = f->accuracy,
        .first_loss = f->first_loss,
        .train_loss = f->train_loss,
        .test.loss = f->test_loss,
        .loss_luck = f->luck,
    };
    const train_verdict v = train_judge(&m, &chance);
    assert_int_equal(v.learned, f->expected.learned);
    assert_int_equal(v.low_accuracy, f->expected.low_accuracy);
    if (!v.learned) {
        assert_int_equal(v.high_loss, f->expected.high_loss);
        assert_int_equal(v.flat_loss, f->expected.flat_loss);
    }
}

static void an_accuracy_above_chance_shows_that_a_short_run_learned(
    void **state)
{
    (void)state;
    const fixture runs[] = {
        // 15 steps of two workers, whose losses vary much.
        {1000, 0.284, 2.287, 2.187, 1.849, 0.1234, {.learned = true}},
        // The loss rose at first, so the mean of the only epoch is not lower.
        {1000, 0.41, 2.29, 2.35, 1.7, 0.15, {.learned = true}},
        {1000, 0.41, 2.29, 2.35, 2.2, 0.15, {0, 0, .high_loss = 1, 1}},
    };
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        assert_verdict(&runs[i]);
    }
}

static void a_lucky_initial_model_has_not_learned(void **state)
{
    (void)state;
    const fixture runs[] = {
        // Rates of 1e-9: LeNet, seed 1, and a perceptron, seeds 5 and 9.
        {1000, 0.194, 2.2950, 2.3013, 2.3003, 0.0174, {.flat_loss = true}},
        {1000, 0.178, 2.3419, 2.3130, 2.2983, 0.0538, {0, 0, 1, 1}},
        {1000, 0.162, 2.2872, 2.2775, 2.2831, 0.0504, {.flat_loss = true}},
        // The loss of the first batches was higher, by just two deviations.
        {1000, 0.194, 2.3100, 2.2984, 2.3003, 0.0174, {.flat_loss = true}},
        // naive with sign, whose errors add up.
        {1000, 0.1425, 2.2960, 2.2917, 2.2835, 0.0112, {.flat_loss = true}},
        // Exactly equal losses, of a rate of 0 and the same batches.
        {1000, 0.194, 2.3000, 2.3000, 2.3000, 0, {.flat_loss = true}},
    };
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        assert_verdict(&runs[i]);
    }
}

static void a_run_at_chance_is_judged_by_its_losses(void **state)
{
    (void)state;
    const fixture runs[] = {
        // A test of 60 examples cannot distinguish 20 % from 10 %.
        {60, 0.2, 2.30, 2.10, 2.15, 0.05, {.learned = 1, .low_accuracy = 1}},
        {60, 0.2, 2.30, 2.27, 2.25, 0.05, {0, 1, 0, .flat_loss = 1}},
        // Diverged, at the start of the last epoch and at its end.
        {1000, 0.1, 2.30, 2.31, 2.31, 0.02, {0, 1, .high_loss = 1, 1}},
        {1000, 0.1, 2.30, 1.90, 2.31, 0.02, {0, 1, .high_loss = 1, 0}},
        // A loss that is not finite.
        {1000, 0.1, 2.30, (double)NAN, 2.31, 0.02, {0, 1, 1, 1}},
        // A rate of 1e-6.
        {10000, 0.104, 2.303, 2.302, 2.3025, 0.01, {0, 1, 0, 1}},
    };
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        assert_verdict(&runs[i]);
    }
}

static void the_first_steps_have_enough_labels_or_half_an_epoch(void **state)
{
    (void)state;
    assert_int_equal(train_first_steps(256, 100), 1);
    assert_int_equal(train_first_steps(255, 100), 2);
    assert_int_equal(train_first_steps(15, 100), 18);
    assert_int_equal(train_first_steps(15, 16), 8);
    assert_int_equal(train_first_steps(15, 1), 1);
    assert_int_equal(train_first_steps(UINT64_C(1) << 40, 1), 1);
}

// Three steps of four labels with means 1, 3 and 2: the squared differences 4
// and 1, times 4 / 2, are 8 and 2, so v = 5. The first step has 4 labels and
// the loss is over 12: the luck is 3 sqrt(5 / 4 + 5 / 12).
static void noise_is_estimated_from_consecutive_steps(void **state)
{
    (void)state;
    train_metrics m = {0};
    train_trace t = {0}, both = {0};
    train_trace_add(&t, 4, 4, true);
    train_trace_add(&t, 12, 4, false);
    train_trace_add(&t, 8, 4, false);
    train_trace_judge(&t, 12, &m);
    assert_near(m.first_loss, 1);
    assert_near(m.loss_luck, 3 * sqrt(5.0 / 4 + 5.0 / 12));
    // Twice as many workers have half the variance.
    train_trace_merge(&both, &t);
    train_trace_merge(&both, &t);
    train_trace_judge(&both, 24, &m);
    assert_near(m.first_loss, 1);
    assert_near(m.loss_luck, 3 * sqrt(5.0 / 8 + 5.0 / 24));
}

static void a_run_of_one_step_has_not_learned(void **state)
{
    (void)state;
    const train_chance chance = {.loss = 2.3, .accuracy = (double)NAN};
    train_metrics m = {.train_loss = 2, .test.accuracy = (double)NAN};
    train_trace t = {0};
    train_trace_add(&t, 8, 4, true);
    train_trace_judge(&t, 4, &m);
    assert_false(train_judge(&m, &chance).learned);
}

static void without_first_steps_the_loss_need_not_fall(void **state)
{
    (void)state;
    const train_chance chance = {.loss = 2.3, .accuracy = (double)NAN};
    train_metrics m = {.train_loss = 2, .test.accuracy = (double)NAN};
    train_trace t = {0};
    train_trace_add(&t, 8, 4, false);
    train_trace_judge(&t, 4, &m);
    assert_true(isnan(m.first_loss));
    assert_true(train_judge(&m, &chance).learned);
}

enum { RUNS = 400, STEPS = 60, FIRST = 4, LABELS = 64 };

// Whether a run of STEPS steps has learned, whose losses are uniform between 1
// and 3 and fall by `fall` in every step. The loss is that of the last half.
static bool simulated(uint32_t run, double fall)
{
    const train_chance chance = {.loss = 4, .accuracy = (double)NAN};
    const lac_key key =
        lac_key_make(7, LAC_PURPOSE_COMPRESS, run, lac_scope_worker(0), 0);
    train_metrics m = {.test.accuracy = (double)NAN};
    train_trace t = {0};
    double last = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        double loss = 0;
        for (uint32_t i = 0; i < LABELS; i++) {
            const uint32_t draw = lac_key_draw(&key, step * LABELS + i);
            loss += 1 - fall * step + 2 * ldexp(draw, -32);
        }
        train_trace_add(&t, loss, LABELS, step < FIRST);
        last += step < STEPS / 2 ? 0 : loss;
    }
    const uint64_t labels = (uint64_t)STEPS / 2 * LABELS;
    m.train_loss = last / (double)labels;
    train_trace_judge(&t, labels, &m);
    return train_judge(&m, &chance).learned;
}

static uint32_t learned_runs(double fall)
{
    uint32_t count = 0;
    for (uint32_t run = 0; run < RUNS; run++) {
        count += simulated(run, fall);
    }
    return count;
}

// A label's loss has a variance of 1/3; the difference of the means a standard
// deviation of sqrt((1/256 + 1/1920) / 3) = 0.0384. Without a fall 0.00135 of
// the runs exceed three of them, 0.54 of 400; more than four are less likely
// than 3e-4. A fall of 0.01 in a step, 0.43 between the means (steps 1.5 and
// 44.5 on average), is eleven of them.
static void a_loss_that_only_varies_has_not_fallen(void **state)
{
    (void)state;
    assert_true(learned_runs(0) <= 4);
    assert_int_equal(learned_runs(0.01), RUNS);
    assert_int_equal(learned_runs(-0.01), 0);
}

// The sums of floats that are equal may differ by rounding.
static void a_fall_by_rounding_is_none(void **state)
{
    (void)state;
    const train_chance chance = {.loss = 0.7, .accuracy = (double)NAN};
    train_metrics m = {
        .first_loss = 0.69, .test.accuracy = (double)NAN, .loss_luck = 0};
    m.train_loss = 0.69 - 1e-7;
    assert_false(train_judge(&m, &chance).learned);
    m.train_loss = 0.69 - 1e-5;
    assert_true(train_judge(&m, &chance).learned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(chance_is_that_of_the_set),
        cmocka_unit_test(on_few_examples_any_accuracy_may_be_chance),
        cmocka_unit_test(without_first_steps_both_must_beat_chance),
        cmocka_unit_test(
            an_accuracy_above_chance_shows_that_a_short_run_learned),
        cmocka_unit_test(a_lucky_initial_model_has_not_learned),
        cmocka_unit_test(a_run_at_chance_is_judged_by_its_losses),
        cmocka_unit_test(the_first_steps_have_enough_labels_or_half_an_epoch),
        cmocka_unit_test(noise_is_estimated_from_consecutive_steps),
        cmocka_unit_test(a_run_of_one_step_has_not_learned),
        cmocka_unit_test(without_first_steps_the_loss_need_not_fall),
        cmocka_unit_test(a_loss_that_only_varies_has_not_fallen),
        cmocka_unit_test(a_fall_by_rounding_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
