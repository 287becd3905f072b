// SPDX-License-Identifier: MIT
// Every gradient algorithm gives, for slices of any dtype, the results of
// floats, rounded to the dtype, and has the state of floats. allreduce alone
// sums doubles in double: test_dtypes.c of its unit tests.
#include "dtypes.h"
#include "gradient.h"

#include "base/bytes.h"

enum { FAULT_ROUND = 1, FAULT_WORKER = 2, FAULT_TENSOR = BIAS };

// Of the current run.
static size_t rotation;
static bool typed;
static bool faulty;
static uint32_t odd;  // the worker with other dtypes
static double beyond; // in place of a double, if not 0

static void fill_rounded(gradient_worker *w, uint64_t round)
{
    fill_gradient(w->rank, round, w->gradient);
    typed_round(rotation, w->gradient);
    if (faulty && round == FAULT_ROUND && w->rank == FAULT_WORKER) {
        w->gradient[offsets[FAULT_TENSOR] + 3] = INFINITY;
    }
}

// Reduces in slices of all dtypes, in place in every other round. A failed
// round leaves the values.
static lac_status reduce_typed(gradient_worker *w, uint64_t round)
{
    typed_values in, out, before;
    lac_slice slices[TENSORS];
    memset(&out, 0x5a, sizeof(out));
    memset(&in, 0x5a, sizeof(in));
    typed_store(&in, rotation, w->gradient);
    typed_values *const result = round % 2 == 0 ? &out : &in;
    typed_slices(&in, result, rotation, slices);
    for (size_t t = 0; w->rank == odd && t < TENSORS; t++) {
        slices[t].dtype = dtype_of(rotation + 1, t);
    }
    if (beyond != 0 && w->rank == FAULT_WORKER) {
        ((double *)typed_tensor(&in, FAULT_TENSOR))[3] = beyond;
    }
    before = *result;
    const lac_status status =
        lac_algorithm_reduce(w->a, round, slices, TENSORS);
    if (status != LAC_OK) {
        EXPECT(memcmp(result, &before, sizeof(before)) == 0);
        return status;
    }
    typed_load(result, rotation, result_of(w, round));
    return LAC_OK;
}

static lac_status reduce_all(gradient_worker *w)
{
    LAC_TRY(worker_open(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        fill_rounded(w, round);
        if (typed) {
            LAC_TRY(reduce_typed(w, round));
        } else {
            LAC_TRY(reduce_given(w, round));
            typed_round(rotation, result_of(w, round));
        }
    }
    return worker_save(w);
}

static void compare(const gradient_run *floats, const gradient_run *run)
{
    const bool sums_doubles = claims_of(run->subject->plugin)->any_dtype;
    for (size_t k = 0; k < (size_t)run->world * ROUNDS * TENSORS; k++) {
        const size_t t = k % TENSORS;
        const uint64_t round = k / TENSORS % ROUNDS;
        const size_t rank = k / TENSORS / ROUNDS;
        if (!sums_doubles || dtype_of(rotation, t) != LAC_F64) {
            assert_memory_equal(
                floats->results[rank][round] + offsets[t],
                run->results[rank][round] + offsets[t],
                (offsets[t + 1] - offsets[t]) * sizeof(float));
        }
    }
    assert_same_saves(&floats->saved, &run->saved, run->world);
}

static void compare_with_floats(gradient_run *run)
{
    gradient_run floats = *run;
    floats.saved = (saves){0};
    typed = false;
    run_gradient_ok(&floats, reduce_all);
    typed = true;
    run_gradient_ok(run, reduce_all);
    compare(&floats, run);
    free_saves(&floats.saved);
}

static void results_are_those_of_floats(gradient_run *run)
{
    faulty = false;
    for (rotation = 0; rotation < rotations(run->subject); rotation++) {
        compare_with_floats(run);
    }
}

static void policies_are_those_of_floats(gradient_run *run)
{
    static const lac_nonfinite policies[] = {
        LAC_NONFINITE_SKIP, LAC_NONFINITE_RAW, LAC_NONFINITE_PROPAGATE};
    faulty = true;
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        run->nonfinite = policies[i];
        for (rotation = 0; rotation < rotations(run->subject); rotation++) {
            compare_with_floats(run);
        }
    }
    faulty = false;
}

static void expect_stop(gradient_run *run)
{
    test_worker workers[WORLD_MAX] = {{0}};
    run_gradient(run, reduce_all, workers);
    for (uint32_t rank = 0; rank < run->world; rank++) {
        assert_int_equal(workers[rank].status, LAC_ERR_INVALID);
        assert_non_null(strstr(
            workers[rank].message,
            ": worker 2 has a value in bias that is not finite"));
    }
}

static void stop_leaves_values(gradient_run *run)
{
    faulty = true;
    typed = true;
    for (rotation = 0; rotation < rotations(run->subject); rotation++) {
        expect_stop(run);
    }
    faulty = false;
}

// Such a double becomes an infinity, unless it stays a double.
static void doubles_beyond_floats_are_not_finite(gradient_run *run)
{
    typed = true;
    rotation = 1;
    assert_int_equal(dtype_of(rotation, FAULT_TENSOR), LAC_F64);
    beyond = -1e300;
    if (claims_of(run->subject->plugin)->any_dtype) {
        run_gradient_ok(run, reduce_all);
    } else {
        expect_stop(run);
    }
    beyond = 0;
}

static void other_dtypes_are_refused(gradient_run *run)
{
    test_worker workers[WORLD_MAX] = {{0}};
    if (!run->subject->plain) {
        return;
    }
    typed = true;
    rotation = 0;
    odd = 3;
    run_gradient(run, reduce_all, workers);
    odd = LAC_RANK_ANY;
    for (uint32_t rank = 0; rank < run->world; rank++) {
        assert_int_equal(workers[rank].status, LAC_ERR_PEER);
        assert_non_null(
            strstr(workers[rank].message, "or gives other tensors or dtypes"));
    }
}

// Worker 1 aborts before round 2. The others fail there, or in round 1 if they
// have not completed it; reduce_typed expects that they keep their values.
static lac_status fail_in_round_2(gradient_worker *w)
{
    lac_status status = LAC_OK;
    LAC_TRY(worker_open(w));
    for (uint64_t round = 0; status == LAC_OK && round < 3; round++) {
        if (w->rank == 1 && round == 2) {
            lac_transport_abort(w->transport, "test: no more");
            return LAC_OK;
        }
        fill_rounded(w, round);
        status = reduce_typed(w, round);
    }
    EXPECT(status == LAC_ERR_PEER);
    return LAC_OK;
}

static void failures_leave_values(gradient_run *run)
{
    for (rotation = 0; rotation < rotations(run->subject); rotation++) {
        run_gradient_ok(run, fail_in_round_2);
    }
}

DUTY(results_are_those_of_floats)
DUTY(policies_are_those_of_floats)
DUTY(stop_leaves_values)
DUTY(doubles_beyond_floats_are_not_finite)
DUTY(other_dtypes_are_refused)
DUTY(failures_leave_values)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_results_are_those_of_floats),
        cmocka_unit_test(all_policies_are_those_of_floats),
        cmocka_unit_test(all_stop_leaves_values),
        cmocka_unit_test(all_doubles_beyond_floats_are_not_finite),
        cmocka_unit_test(all_other_dtypes_are_refused),
        cmocka_unit_test(all_failures_leave_values),
    };
    odd = LAC_RANK_ANY;
    return cmocka_run_group_tests_name(
        "gradient dtypes", tests, setup_workers, teardown_workers);
}
