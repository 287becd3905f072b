// SPDX-License-Identifier: MIT
// Every gradient algorithm with the policy propagate: a non-finite value of one
// worker makes all results NaN on all workers, and the state stays as it was.
#include "gradient.h"

#include <float.h>

#include "algorithm/framework/handle.h"
#include "state_reader.h"

enum { BAD_ROUND = 2, BAD_ROUNDS = 2, GOOD_ROUND = BAD_ROUND + BAD_ROUNDS };

// What the bad worker has in the bad rounds: a value in a matrix, in a vector,
// or a matrix that an error memory refuses at once or the second time.
typedef enum kind { NOT_A_NUMBER, INFINITE, OVERFLOWING, KINDS } kind;

typedef struct propagate_run {
    gradient_run gradient; // must be first
    kind kind;
    uint32_t bad_worker;
    unsigned propagated[WORLD_MAX]; // bad rounds whose results are NaN
} propagate_run;

static propagate_run *run_of(const gradient_worker *w)
{
    return (propagate_run *)w->run;
}

static void fill_bad(gradient_worker *w, uint64_t round)
{
    const propagate_run *const run = run_of(w);
    fill_gradient(w->rank, round, w->gradient);
    if (run->bad_worker != w->rank) {
        return;
    }
    if (run->kind == NOT_A_NUMBER) {
        w->gradient[offsets[WEIGHT] + 17] = NAN;
    } else if (run->kind == INFINITE) {
        w->gradient[offsets[BIAS] + 5] = -INFINITY;
    } else {
        for (size_t i = offsets[WEIGHT]; i < offsets[WEIGHT + 1]; i++) {
            w->gradient[i] = i % 2 == 0 ? FLT_MAX : -FLT_MAX;
        }
    }
}

static size_t count_nan(const float *x)
{
    size_t count = 0;
    for (size_t i = 0; i < VALUES; i++) {
        count += isnan(x[i]) != 0;
    }
    return count;
}

// Expects the fields of the state before, bit for bit, and the round after.
static lac_status expect_state(
    const uint8_t *before, const uint8_t *after, uint64_t next)
{
    saved_state a = saved_state_open(before), b = saved_state_open(after);
    saved_field old, now;
    while (saved_state_next(&a, &old)) {
        EXPECT(saved_state_next(&b, &now));
        EXPECT(strcmp(old.name, now.name) == 0 && old.count == now.count);
        EXPECT(memcmp(old.values, now.values, old.count * sizeof(float)) == 0);
        EXPECT(now.next_round == next);
    }
    EXPECT(!saved_state_next(&b, &now));
    return LAC_OK;
}

// One bad round. In place, as hooks of training programs call it.
static lac_status reduce_bad(gradient_worker *w, uint64_t round)
{
    propagate_run *const run = run_of(w);
    saves before = {0}, after = {0};
    lac_slice slices[TENSORS];
    LAC_TRY(save_state(&before, w->rank, w->a));
    fill_bad(w, round);
    memcpy(result_of(w, round), w->gradient, sizeof(w->gradient));
    make_slices(w, round, slices);
    for (size_t t = 0; t < TENSORS; t++) {
        slices[t].in = slices[t].out;
    }
    LAC_TRY(lac_algorithm_reduce(w->a, round, slices, TENSORS));
    LAC_TRY(save_state(&after, w->rank, w->a));
    const size_t nans = count_nan(result_of(w, round));
    EXPECT(nans == VALUES || run->kind == OVERFLOWING);
    lac_status status = LAC_OK;
    if (nans == VALUES) {
        run->propagated[w->rank]++;
        status = expect_state(
            before.states[w->rank], after.states[w->rank], round + 1);
    }
    free_saves(&before);
    free_saves(&after);
    return status;
}

// A handle that loads the state before the bad rounds, and is set to the round
// after them, gives the same results from there on.
static lac_status compare_with_healthy(gradient_worker *w)
{
    float expected[ROUNDS][VALUES];
    memcpy(expected, w->run->results[w->rank], sizeof(expected));
    LAC_TRY(worker_reopen(w));
    LAC_TRY(worker_load(w));
    for (size_t t = 0; t < TENSORS; t++) {
        w->a->progress[t].next_round = GOOD_ROUND;
    }
    for (uint64_t round = GOOD_ROUND; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(w, round));
        EXPECT(count_nan(result_of(w, round)) == 0);
        EXPECT(
            memcmp(expected[round], result_of(w, round), sizeof(*expected)) ==
            0);
    }
    return LAC_OK;
}

static bool has_error_memory(const lac_algorithm *a)
{
    return a->fields.errors > 0 || a->ops->accepts != NULL;
}

static lac_status propagate(gradient_worker *w)
{
    const propagate_run *const run = run_of(w);
    LAC_TRY(worker_open(w));
    if (run->kind == OVERFLOWING && !has_error_memory(w->a)) {
        return LAC_OK;
    }
    for (uint64_t round = 0; round < BAD_ROUND; round++) {
        LAC_TRY(reduce_round(w, round));
    }
    LAC_TRY(worker_save(w));
    for (uint64_t round = BAD_ROUND; round < GOOD_ROUND; round++) {
        LAC_TRY(reduce_bad(w, round));
    }
    for (uint64_t round = GOOD_ROUND; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(w, round));
    }
    return run->propagated[w->rank] == BAD_ROUNDS ? compare_with_healthy(w)
                                                  : LAC_OK;
}

static unsigned overflows; // that were propagated, of all algorithms

static void run_kind(const gradient_run *given, kind what, uint32_t world)
{
    for (uint32_t bad = 0; bad < world; bad++) {
        propagate_run run = {
            .gradient = *given, .kind = what, .bad_worker = bad};
        run.gradient.world = world;
        run.gradient.nonfinite = LAC_NONFINITE_PROPAGATE;
        run_gradient_ok(&run.gradient, propagate);
        assert_same_results(&run.gradient);
        for (uint32_t rank = 0; rank < world; rank++) {
            assert_int_equal(run.propagated[rank], run.propagated[0]);
        }
        overflows += what == OVERFLOWING ? run.propagated[0] : 0;
        free_saves(&run.gradient.saved);
    }
}

static void nonfinite_values_reach_all_workers_and_no_state(gradient_run *run)
{
    for (uint32_t world = 1; world <= 3; world++) {
        for (kind what = NOT_A_NUMBER; what < KINDS; what++) {
            run_kind(run, what, world);
        }
    }
}

DUTY(nonfinite_values_reach_all_workers_and_no_state)

// A single algorithm may not have any.
static void overflows_were_among_them(void **state)
{
    (void)state;
    assert_true(overflows > 0 || only_algorithm() != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_nonfinite_values_reach_all_workers_and_no_state),
        cmocka_unit_test(overflows_were_among_them),
    };
    return cmocka_run_group_tests_name(
        "gradient_propagate", tests, setup_workers, teardown_workers);
}
