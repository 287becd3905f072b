// SPDX-License-Identifier: MIT
// The state of PowerSGD: a round that fails in its second exchange leaves it
// alone, and what is saved is enough to go on.
#include "powersgd_test.h"

#include "collective/group.h"

static bool second_sum_fails;

lac_status __real_laci_group_sum(
    laci_group *group, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes);
lac_status __wrap_laci_group_sum(
    laci_group *group, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes);

lac_status __wrap_laci_group_sum(
    laci_group *group, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes)
{
    if (second_sum_fails && phase == 1) {
        memset(x, 0x55, n * sizeof(*x)); // x is then lost
        return lac_fail(LAC_ERR_PEER, "a test lets the second sum fail");
    }
    return __real_laci_group_sum(group, round, phase, x, n, notes);
}

static float g[ALL], result[ALL], expected[ALL];

static void reduce_some(solo *s, uint64_t first, uint64_t end, float *out)
{
    for (uint64_t round = first; round < end; round++) {
        fill_normal(g, ALL, round + 1);
        assert_ok(reduce_both(s->a, round, g, out));
    }
}

static void a_round_that_fails_late_changes_nothing(void **state)
{
    (void)state;
    solo healthy = solo_open("powersgd:rank=3");
    solo s = solo_open("powersgd:rank=3");
    reduce_some(&healthy, 0, 6, expected);
    reduce_some(&s, 0, 3, result);
    uint8_t *const before = state_of(s.a);
    float kept[ALL];
    memcpy(kept, result, sizeof(kept));
    second_sum_fails = true;
    fill_normal(g, ALL, 99);
    assert_fails(
        reduce_both(s.a, 3, g, result), LAC_ERR_PEER,
        "a test lets the second sum fail");
    second_sum_fails = false;
    uint8_t *const after = state_of(s.a);
    assert_memory_equal(before, after, lac_algorithm_state_size(s.a));
    assert_memory_equal(kept, result, sizeof(kept));
    free(before);
    free(after);
    reduce_some(&s, 3, 6, result);
    assert_memory_equal(expected, result, sizeof(result));
    solo_close(&s);
    solo_close(&healthy);
}

static void a_saved_state_goes_on_bit_for_bit(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "powersgd:rank=2", "powersgd:rank=9", "powersgd:rank=2,alternating=yes",
        "powersgd:start-iteration=3", "powersgd:rank=2,error-feedback=no"};
    for (size_t k = 0; k < sizeof(specs) / sizeof(*specs); k++) {
        // After an odd and an even number of rounds: sums change places.
        for (uint64_t at = 2; at < 6; at++) {
            solo whole = solo_open(specs[k]);
            solo begun = solo_open(specs[k]);
            solo resumed = solo_open(specs[k]);
            reduce_some(&whole, 0, 8, expected);
            reduce_some(&begun, 0, at, result);
            uint8_t *const bytes = state_of(begun.a);
            assert_ok(lac_algorithm_load(
                resumed.a, bytes, lac_algorithm_state_size(begun.a)));
            free(bytes);
            reduce_some(&resumed, at, 8, result);
            assert_memory_equal(expected, result, sizeof(result));
            solo_close(&resumed);
            solo_close(&begun);
            solo_close(&whole);
        }
    }
}

static void a_state_of_another_rank_is_refused(void **state)
{
    (void)state;
    solo one = solo_open("powersgd:rank=1");
    solo two = solo_open("powersgd:rank=2");
    reduce_some(&two, 0, 2, result);
    uint8_t *const bytes = state_of(two.a);
    assert_fails(
        lac_algorithm_load(one.a, bytes, lac_algorithm_state_size(two.a)),
        LAC_ERR_INVALID,
        "state: algorithm is powersgd:rank=2, expected powersgd:rank=1");
    free(bytes);
    solo_close(&one);
    solo_close(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_that_fails_late_changes_nothing),
        cmocka_unit_test(a_saved_state_goes_on_bit_for_bit),
        cmocka_unit_test(a_state_of_another_rank_is_refused),
    };
    return cmocka_run_group_tests_name("powersgd_state", tests, NULL, NULL);
}
