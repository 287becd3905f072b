// SPDX-License-Identifier: MIT
// Groups over a transport that sums by itself. The linker puts this one's sum,
// with a table and counters, in the place of the transport's.
#include "groups.h"

#include <float.h>
#include <sched.h>

#include "collective/frame.h"
#include "transport/transport.h"

enum { WORLD = 5, MANY = 5000, FEW = 100 };

static _Atomic unsigned native_calls;
static _Atomic unsigned native_ends; // calls that have read the table
static _Atomic bool some_failed;
static float table[WORLD][MANY];

bool __wrap_laci_transport_has_allreduce(const lac_transport *t);
lac_status __wrap_laci_transport_allreduce(
    lac_transport *t, float *x, size_t n, double deadline);

bool __wrap_laci_transport_has_allreduce(const lac_transport *t)
{
    (void)t;
    return true;
}

// Waits for all workers, and ends when one of them has failed, as the sum of a
// transport does.
static lac_status await_all(const _Atomic unsigned *count)
{
    while (*count < WORLD) {
        if (some_failed) {
            return lac_fail(LAC_ERR_PEER, "a worker aborted");
        }
        (void)sched_yield();
    }
    return LAC_OK;
}

lac_status __wrap_laci_transport_allreduce(
    lac_transport *t, float *x, size_t n, double deadline)
{
    if (deadline < lac_transport_now(t)) {
        return LAC_ERR_PEER;
    }
    memcpy(table[lac_transport_rank(t)], x, n * sizeof(*x));
    native_calls++;
    LAC_TRY(await_all(&native_calls));
    for (size_t i = 0; i < n; i++) {
        x[i] = 0;
        for (int k = 0; k < WORLD; k++) {
            x[i] += table[k][i];
        }
    }
    native_ends++;
    return await_all(&native_ends);
}

static lac_status sum_both(test_worker *w)
{
    static _Thread_local float x[MANY];
    for (size_t n = FEW; n <= MANY; n += MANY - FEW) {
        for (size_t i = 0; i < n; i++) {
            x[i] = (float)(w->rank + i);
        }
        LAC_TRY(laci_group_sum(w->group, n, 0, x, n, 0));
        for (size_t i = 0; i < n; i++) {
            EXPECT(x[i] == (float)((size_t)WORLD * i + 10));
        }
    }
    const laci_counts *const counts = laci_group_counts(w->group);
    EXPECT(counts->payload == (uint64_t)4 * (FEW + MANY));
    EXPECT(
        counts->wire ==
        (uint64_t)4 * (FEW + MANY) + (uint64_t)2 * LACI_FRAME_SIZE);
    EXPECT(counts->messages == 2);
    return LAC_OK;
}

static void large_sums_are_left_to_the_transport(void **state)
{
    (void)state;
    native_calls = native_ends = 0;
    run_all(WORLD, sum_both, NULL);
    assert_int_equal(native_calls, WORLD);
}

static lac_status sum_huge(test_worker *w)
{
    static _Thread_local float x[MANY];
    x[77] = FLT_MAX;
    (void)laci_group_expect_finite(w->group, true);
    LAC_TRY(laci_group_sum(w->group, 0, 0, x, MANY, 0));
    EXPECT(laci_group_nonfinite(w->group) == 77);
    return LAC_OK;
}

static void an_overflow_is_noticed(void **state)
{
    (void)state;
    native_calls = native_ends = 0;
    run_all(WORLD, sum_huge, NULL);
    assert_int_equal(native_calls, WORLD);
}

// Worker 3 sums one value less, or is in another round.
static lac_status sum_oddly(test_worker *w)
{
    static _Thread_local float x[MANY];
    const size_t *const odd = w->context;
    const size_t fewer = w->rank == 3 ? odd[0] : 0;
    const uint64_t round = w->rank == 3 ? odd[1] : 0;
    const lac_status status =
        laci_group_sum(w->group, round, 0, x, MANY - fewer, 0);
    some_failed = some_failed || status != LAC_OK;
    return status;
}

static void expect_refusal(const size_t odd[2], const char *message)
{
    test_worker workers[WORLD];
    size_t context[] = {odd[0], odd[1]};
    group_run run = {
        .world = WORLD,
        .options = &default_options,
        .odd = LAC_RANK_ANY,
        .body = sum_oddly,
        .context = context,
    };
    native_calls = native_ends = 0;
    some_failed = false;
    run_groups(&run, workers);
    assert_true(native_calls < WORLD);
    assert_int_equal(native_ends, 0);
    for (uint32_t i = 0; i < WORLD; i++) {
        assert_int_not_equal(workers[i].status, LAC_OK);
        assert_true(
            strstr(workers[i].message, message) != NULL ||
            (i != 3 && strstr(workers[i].message, "aborted") != NULL));
    }
}

static void no_sum_ends_unless_all_mean_the_same(void **state)
{
    (void)state;
    expect_refusal((const size_t[]){1, 0}, " values, worker ");
    expect_refusal((const size_t[]){0, 1}, ": round is ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_sums_are_left_to_the_transport),
        cmocka_unit_test(an_overflow_is_noticed),
        cmocka_unit_test(no_sum_ends_unless_all_mean_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
