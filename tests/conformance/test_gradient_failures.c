// SPDX-License-Identifier: MIT
// Every gradient algorithm handles non-finite values by the policy that the
// options ask for, and a round that fails leaves the state as it was.
#include "gradient.h"

#include "state_reader.h"

enum { FAULT_ROUND = 1, FAULTS = 3, STATE_MAX = 8192 };

// A value that is not finite.
typedef struct fault {
    uint32_t worker;
    size_t tensor;
    size_t at;
    float value;
} fault;

// In a matrix and a vector, in vectors, in a matrix alone, and in several
// tensors of one worker. The message names the first fault of a set. A short
// test has three workers and uses the first set alone.
static const fault fault_sets[][FAULTS] = {
    {{1, WEIGHT, 17, NAN}, {2, BIAS, 1, NAN}, {2, WEIGHT, 34, INFINITY}},
    {{3, BIAS, 5, NAN}, {4, BIAS, 0, INFINITY}, {4, ROW, 2, -INFINITY}},
    {{4, WEIGHT, 0, -INFINITY}, {4, WEIGHT, 12, NAN}, {4, WEIGHT, 13, 1}},
    {{0, WEIGHT, 6, INFINITY}, {0, BIAS, 12, NAN}, {0, ONE, 0, INFINITY}},
};

enum {
    FAULT_SETS =
        WORKERS_ARE_LOCAL ? sizeof(fault_sets) / sizeof(*fault_sets) : 1
};

static void inject_faults(gradient_worker *w)
{
    fill_gradient(w->rank, FAULT_ROUND, w->gradient);
    for (size_t i = 0; i < FAULTS; i++) {
        const fault *const x = &fault_sets[w->run->fault_set][i];
        if (x->worker == w->rank) {
            w->gradient[offsets[x->tensor] + x->at] = x->value;
        }
    }
}

static bool has_fault(const gradient_run *run, size_t tensor)
{
    bool found = false;
    for (size_t i = 0; i < FAULTS; i++) {
        const fault *const x = &fault_sets[run->fault_set][i];
        found = found || (x->tensor == tensor && !isfinite(x->value));
    }
    return found;
}

static void mark_result(gradient_worker *w, uint64_t round)
{
    for (size_t i = 0; i < VALUES; i++) {
        result_of(w, round)[i] = 77;
    }
}

static bool result_is(const gradient_worker *w, uint64_t round, float value)
{
    for (size_t i = 0; i < VALUES; i++) {
        if (result_of(w, round)[i] != value) {
            return false;
        }
    }
    return true;
}

// A copy of the saved state, to compare with a later one.
typedef struct snapshot {
    uint8_t bytes[STATE_MAX];
    size_t len;
} snapshot;

static lac_status take_snapshot(gradient_worker *w, snapshot *out)
{
    const saves *const saved = &w->run->saved;
    LAC_TRY(worker_save(w));
    out->len = saved->lens[w->rank];
    EXPECT(out->len > 0 && out->len <= sizeof(out->bytes));
    memcpy(out->bytes, saved->states[w->rank], out->len);
    return LAC_OK;
}

static size_t tensor_named(const char *name)
{
    size_t t = 0;
    while (t < TENSORS && strcmp(tensors[t].name, name) != 0) {
        t++;
    }
    return t;
}

static bool same_field(const saved_field *a, const saved_field *b)
{
    return strcmp(a->name, b->name) == 0 && a->count == b->count &&
           memcmp(a->values, b->values, a->count * sizeof(float)) == 0;
}

// A field is as it was, or it is an error memory to which the gradient was
// added: what was not delivered stays in it. A tensor with a non-finite value
// adds zeros.
static lac_status compare_field(
    const gradient_worker *w, const saved_field *old, const saved_field *now)
{
    const size_t t = tensor_named(now->tensor);
    const float *const g = w->gradient + offsets[t];
    bool finite = true;
    if (same_field(old, now)) {
        return LAC_OK;
    }
    for (size_t i = 0; i < offsets[t + 1] - offsets[t]; i++) {
        finite = finite && isfinite(g[i]);
    }
    EXPECT(
        strcmp(now->name, "error") == 0 ||
        strcmp(now->name, "decayed-error") == 0);
    for (size_t i = 0; i < now->count; i++) {
        EXPECT(
            saved_value(now, i) == saved_value(old, i) + (finite ? g[i] : 0));
    }
    return LAC_OK;
}

// Compares all fields, and expects that round `next` of every tensor follows.
static lac_status compare(
    const gradient_worker *w, const snapshot *before, const snapshot *after,
    uint64_t next)
{
    saved_state a = saved_state_open(before->bytes);
    saved_state b = saved_state_open(after->bytes);
    saved_field old, now;
    while (saved_state_next(&a, &old)) {
        EXPECT(saved_state_next(&b, &now));
        EXPECT(strcmp(old.tensor, now.tensor) == 0);
        EXPECT(now.next_round == next);
        LAC_TRY(compare_field(w, &old, &now));
    }
    EXPECT(!saved_state_next(&b, &now));
    return LAC_OK;
}

static lac_status stop_and_continue(gradient_worker *w)
{
    snapshot before = {.len = 0}, after = {.len = 0};
    char message[256];
    LAC_TRY(worker_open(w));
    LAC_TRY(reduce_round(w, 0));
    LAC_TRY(take_snapshot(w, &before));
    inject_faults(w);
    mark_result(w, FAULT_ROUND);
    EXPECT(reduce_given(w, FAULT_ROUND) == LAC_ERR_INVALID);
    (void)snprintf(
        message, sizeof(message),
        "%.*s: worker %u has a value in %s that is not finite",
        (int)strcspn(w->run->algorithm, ":"), w->run->algorithm,
        fault_sets[w->run->fault_set][0].worker,
        tensors[fault_sets[w->run->fault_set][0].tensor].name);
    EXPECT(strcmp(message, lac_error_message()) == 0);
    EXPECT(result_is(w, FAULT_ROUND, 77));
    LAC_TRY(take_snapshot(w, &after));
    LAC_TRY(compare(w, &before, &after, FAULT_ROUND));
    for (uint64_t round = FAULT_ROUND; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(w, round));
    }
    return LAC_OK;
}

static void nonfinite_values_stop_the_round(gradient_run *run)
{
    for (run->fault_set = 0; run->fault_set < FAULT_SETS; run->fault_set++) {
        run_gradient_ok(run, stop_and_continue);
        assert_same_results(run);
        assert_finite(run);
    }
}

static lac_status skip_one(gradient_worker *w)
{
    snapshot before = {.len = 0}, after = {.len = 0};
    LAC_TRY(worker_open(w));
    LAC_TRY(reduce_round(w, 0));
    LAC_TRY(take_snapshot(w, &before));
    inject_faults(w);
    mark_result(w, FAULT_ROUND);
    LAC_TRY(reduce_given(w, FAULT_ROUND));
    EXPECT(result_is(w, FAULT_ROUND, 0));
    LAC_TRY(take_snapshot(w, &after));
    LAC_TRY(compare(w, &before, &after, FAULT_ROUND + 1));
    for (uint64_t round = FAULT_ROUND + 1; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(w, round));
    }
    return LAC_OK;
}

static void nonfinite_values_skip_the_round(gradient_run *run)
{
    run->nonfinite = LAC_NONFINITE_SKIP;
    for (run->fault_set = 0; run->fault_set < FAULT_SETS; run->fault_set++) {
        run_gradient_ok(run, skip_one);
        assert_same_results(run);
        assert_finite(run);
    }
}

static lac_status send_raw(gradient_worker *w)
{
    snapshot before = {.len = 0}, after = {.len = 0};
    LAC_TRY(worker_open(w));
    LAC_TRY(reduce_round(w, 0));
    LAC_TRY(take_snapshot(w, &before));
    inject_faults(w);
    LAC_TRY(reduce_given(w, FAULT_ROUND));
    LAC_TRY(take_snapshot(w, &after));
    saved_state a = saved_state_open(before.bytes);
    saved_state b = saved_state_open(after.bytes);
    saved_field old, now;
    while (saved_state_next(&a, &old) && saved_state_next(&b, &now)) {
        EXPECT(now.next_round == FAULT_ROUND + 1);
        EXPECT(
            !has_fault(w->run, tensor_named(now.tensor)) ||
            same_field(&old, &now));
    }
    for (uint64_t round = FAULT_ROUND + 1; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(w, round));
    }
    return LAC_OK;
}

// The mean of the raw values; 5 normal numbers have ten roundings of 2^-21.
static void assert_raw_mean(gradient_run *run, size_t tensor)
{
    for (size_t i = offsets[tensor]; i < offsets[tensor + 1]; i++) {
        double sum = 0;
        for (uint32_t rank = 0; rank < run->world; rank++) {
            gradient_worker w = {.run = run, .rank = rank};
            inject_faults(&w);
            sum += (double)w.gradient[i];
        }
        const double expected = sum / run->world;
        const double got = (double)run->results[0][FAULT_ROUND][i];
        if (isfinite(expected)) {
            assert_true(fabs(got - expected) < 10 * 0x1p-21);
        } else {
            assert_true(isnan(expected) ? isnan(got) : got == expected);
        }
    }
}

// Tensors without a fault have the results of a run without any.
static void assert_confined(gradient_run *run, const gradient_run *healthy)
{
    assert_same_results(run);
    for (size_t t = 0; t < TENSORS; t++) {
        const size_t from = offsets[t], count = offsets[t + 1] - from;
        if (has_fault(run, t)) {
            assert_raw_mean(run, t);
            continue;
        }
        for (uint64_t round = 0; round < ROUNDS; round++) {
            assert_memory_equal(
                run->results[0][round] + from,
                healthy->results[0][round] + from, count * sizeof(float));
        }
    }
    for (size_t i = 0; i < (size_t)ROUNDS * VALUES; i++) {
        assert_true(
            i / VALUES == FAULT_ROUND ||
            isfinite(run->results[0][i / VALUES][i % VALUES]));
    }
}

static void nonfinite_tensors_are_sent_raw(gradient_run *run)
{
    gradient_run healthy = *run;
    run_gradient_ok(&healthy, reduce_rounds);
    run->nonfinite = LAC_NONFINITE_RAW;
    for (run->fault_set = 0; run->fault_set < FAULT_SETS; run->fault_set++) {
        run_gradient_ok(run, send_raw);
        assert_confined(run, &healthy);
    }
    free_saves(&healthy.saved);
}

static lac_status all_raw(gradient_worker *w)
{
    lac_slice slice = {
        BIAS, LAC_F32, w->gradient + offsets[BIAS], result_of(w, 0)};
    LAC_TRY(worker_open(w));
    w->gradient[offsets[BIAS]] = w->rank == 0 ? NAN : 1;
    LAC_TRY(lac_algorithm_reduce(w->a, 0, &slice, 1));
    EXPECT(isnan(result_of(w, 0)[0]) && result_of(w, 0)[1] == 0);
    return reduce_round(w, 0) == LAC_ERR_INVALID ? LAC_OK : LAC_ERR_SPACE;
}

static void all_tensors_may_be_raw(gradient_run *run)
{
    static const uint32_t worlds[] = {1, 2, 3};
    run->nonfinite = LAC_NONFINITE_RAW;
    for (size_t i = 0; i < 3; i++) {
        run->world = worlds[i];
        run_gradient_ok(run, all_raw);
    }
}

// The last worker leaves a tensor out, so that no worker can finish the round.
static lac_status fail_one(gradient_worker *w)
{
    snapshot before = {.len = 0}, after = {.len = 0};
    lac_slice slices[TENSORS];
    LAC_TRY(worker_open(w));
    LAC_TRY(reduce_round(w, 0));
    LAC_TRY(reduce_round(w, 1));
    LAC_TRY(take_snapshot(w, &before));
    mark_result(w, 2);
    fill_gradient(w->rank, 2, w->gradient);
    make_slices(w, 2, slices);
    // No worker may still be in the last round when this one fails.
    workers_barrier(w->run->world);
    const size_t left_out = w->rank == w->run->world - 1;
    EXPECT(
        lac_algorithm_reduce(w->a, 2, slices + left_out, TENSORS - left_out) !=
        LAC_OK);
    EXPECT(result_is(w, 2, 77));
    LAC_TRY(take_snapshot(w, &after));
    LAC_TRY(compare(w, &before, &after, 2));
    EXPECT(lac_algorithm_reduce(w->a, 2, slices, TENSORS) != LAC_OK);
    return LAC_OK;
}

static void a_failed_round_leaves_the_state(gradient_run *run)
{
    run_gradient_ok(run, fail_one);
}

// One worker would stop where the others continue.
static lac_status open_with_another_policy(gradient_worker *w)
{
    lac_algorithm_options o = worker_options(w);
    o.nonfinite = w->rank == 0 ? LAC_NONFINITE_SKIP : LAC_NONFINITE_STOP;
    LAC_TRY(lac_algorithm_open(&w->a, &o));
    return reduce_round(w, 0);
}

static void different_policies_are_refused(gradient_run *run)
{
    test_worker workers[WORLD_MAX];
    run_gradient(run, open_with_another_policy, workers);
    for (uint32_t rank = 0; rank < run->world; rank++) {
        assert_int_equal(workers[rank].status, LAC_ERR_PEER);
    }
}

DUTY(nonfinite_values_stop_the_round)
DUTY(nonfinite_values_skip_the_round)
DUTY(nonfinite_tensors_are_sent_raw)
DUTY(all_tensors_may_be_raw)
DUTY(a_failed_round_leaves_the_state)
DUTY(different_policies_are_refused)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_nonfinite_values_stop_the_round),
        cmocka_unit_test(all_nonfinite_values_skip_the_round),
        cmocka_unit_test(all_nonfinite_tensors_are_sent_raw),
        cmocka_unit_test(all_all_tensors_may_be_raw),
        cmocka_unit_test(all_a_failed_round_leaves_the_state),
        cmocka_unit_test(all_different_policies_are_refused),
    };
    return cmocka_run_group_tests_name(
        "gradient_failures", tests, setup_workers, teardown_workers);
}
