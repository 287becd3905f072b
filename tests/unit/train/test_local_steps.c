// SPDX-License-Identifier: MIT
// In which steps the workers mix their models.
#include "lac_test.h"

#include "train/local_steps.h"

enum { EPOCH = 10 };

static train_local_steps parsed(const char *text)
{
    train_local_steps l = {0};
    assert_ok(train_local_steps_parse(text, &l));
    return l;
}

// Fails unless the steps up to `steps` that mix are marked in `expected`.
static void assert_mixes(const char *text, const char *expected)
{
    const train_local_steps l = parsed(text);
    for (uint64_t step = 0; expected[step] != '\0'; step++) {
        assert_int_equal(
            train_local_steps_mix(&l, step, EPOCH), expected[step] == '#');
    }
}

static void rounds_are_counted_across_epochs(void **state)
{
    (void)state;
    assert_mixes("1", "############");
    assert_mixes("4", "...#...#...#...#...#...#");
    assert_mixes("1:4@1", "##########...#...#...#");
    assert_mixes("4:1@1", "...#...#..####");
    assert_mixes("3:5@2", "..#..#..#..#..#..#......#....#");
}

static void the_last_steps_are_averaged_too(void **state)
{
    (void)state;
    static const char *const texts[] = {"1", "4", "7", "1:4@1", "3:5@2"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const train_local_steps l = parsed(texts[i]);
        uint64_t mixes = 0;
        for (uint64_t steps = 1; steps < 50; steps++) {
            const bool mixed = train_local_steps_mix(&l, steps - 1, EPOCH);
            mixes += mixed;
            assert_int_equal(
                train_local_steps_rounds(&l, steps, EPOCH),
                mixes + (mixed ? 0 : 1));
        }
    }
}

static void only_more_than_one_step_is_local(void **state)
{
    (void)state;
    const train_local_steps none = {0}, one = parsed("1"), some = parsed("2"),
                            later = parsed("1:2@3");
    assert_false(train_local_steps_any(&none));
    assert_false(train_local_steps_any(&one));
    assert_true(train_local_steps_any(&some));
    assert_true(train_local_steps_any(&later));
    assert_true(train_local_steps_mix(&none, 6, EPOCH));
    assert_int_equal(train_local_steps_at(&later, 29, EPOCH), 1);
    assert_int_equal(train_local_steps_at(&later, 30, EPOCH), 2);
}

static void other_texts_are_rejected(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",      "0",     "-1",    "1.5",     "x",    "4x", "1:", "1:16",
        "1:16@", "1:0@3", "1:2@0", "1:2@3,4", ":2@3", " 4", "4 ", "12345678901",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        train_local_steps l = {.first = 77};
        assert_status(train_local_steps_parse(texts[i], &l), LAC_ERR_INVALID);
        assert_int_equal(l.first, 77);
    }
    train_local_steps l;
    assert_fails(
        train_local_steps_parse("often", &l), LAC_ERR_INVALID,
        "--local-steps is \"often\", expected a number of steps from 1 on, or "
        "H:H@EPOCH such as 1:16@150");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_are_counted_across_epochs),
        cmocka_unit_test(the_last_steps_are_averaged_too),
        cmocka_unit_test(only_more_than_one_step_is_local),
        cmocka_unit_test(other_texts_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
