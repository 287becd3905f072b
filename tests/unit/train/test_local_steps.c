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
                train_local_steps_rounds(&l, 0, steps, EPOCH),
                mixes + (mixed ? 0 : 1));
        }
    }
}

// Fragments have their turns every H / P steps; each has one every H steps, and
// the digits are theirs.
static void assert_turns(
    const char *text, uint32_t fragments, const char *expected)
{
    train_local_steps l = parsed(text);
    assert_ok(train_local_steps_stream(&l, fragments, 0));
    uint64_t rounds[10] = {0};
    for (uint64_t step = 0; expected[step] != '\0'; step++) {
        const bool turn = train_local_steps_mix(&l, step, EPOCH);
        assert_int_equal(turn, expected[step] != '.');
        const uint32_t now = train_local_steps_fragment(&l, step, EPOCH);
        if (turn) {
            assert_int_equal(now, expected[step] - '0');
            rounds[now]++;
        }
        for (uint32_t f = 0; f < fragments; f++) {
            const bool mixed = turn && f == now;
            assert_int_equal(
                train_local_steps_rounds(&l, f, step + 1, EPOCH),
                rounds[f] + (mixed ? 0 : 1));
        }
    }
}

static void fragments_have_turns(void **state)
{
    (void)state;
    assert_turns("6", 1, ".....0.....0.....0");
    assert_turns("6", 2, "..0..1..0..1..0..1");
    assert_turns("6", 3, ".0.1.2.0.1.2.0.1.2");
    assert_turns("6", 6, "012345012345012345");
    assert_turns("2:6@1", 2, "0101010101..0..1..0");
    assert_turns("4:2@1", 2, ".0.1.0.1.010101");
}

static void turns_that_do_not_fit_are_rejected(void **state)
{
    (void)state;
    train_local_steps l = parsed("1:12@3"), same = l;
    assert_fails(
        train_local_steps_stream(&l, 4, 0), LAC_ERR_INVALID,
        "--local-steps 1: expected a multiple of fragments=4");
    l = same = parsed("8:12@3");
    assert_fails(
        train_local_steps_stream(&l, 4, 2), LAC_ERR_INVALID,
        "--local-steps 8: delay=2, expected less than 2, the steps from one "
        "exchange to the next");
    assert_memory_equal(&l, &same, sizeof(l));
    assert_false(train_local_steps_streams(&l));
    assert_ok(train_local_steps_stream(&l, 4, 1));
    assert_true(train_local_steps_streams(&l));
    assert_ok(train_local_steps_stream(&l, 1, 7));
    assert_true(train_local_steps_streams(&l));
    l = parsed("12:9@3");
    assert_fails(
        train_local_steps_stream(&l, 4, 0), LAC_ERR_INVALID,
        "--local-steps 9: expected a multiple of fragments=4");
    l = parsed("1");
    assert_fails(
        train_local_steps_stream(&l, 1, 1), LAC_ERR_INVALID,
        "--local-steps 1: delay=1, expected less than 1, the steps from one "
        "exchange to the next");
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
        cmocka_unit_test(fragments_have_turns),
        cmocka_unit_test(turns_that_do_not_fit_are_rejected),
        cmocka_unit_test(only_more_than_one_step_is_local),
        cmocka_unit_test(other_texts_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
