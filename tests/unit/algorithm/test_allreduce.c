// SPDX-License-Identifier: MIT
// allreduce over a transport that asks for pieces of sums: values are then
// streamed from the slices and back. The linker lets the local transport ask.
#include "workers.h"

#include <float.h>
#include <math.h>

#include "exchanges.h"
#include "pieces.h"

enum {
    WORLD_MAX = 5,
    PIECE = 8192, // values
    TENSORS = 40,
    VALUES_MAX = 6 * PIECE,
    LARGEST = 2 * PIECE + 11,
};

static const uint32_t all_worlds[] = {1, 2, 3, 5};
enum { ALL_WORLDS = sizeof(all_worlds) / sizeof(all_worlds[0]) };

// One round, or a few.
typedef struct job {
    lac_nonfinite policy;
    bool in_place;
    uint32_t faulty;     // the worker with a value that is not finite, or none
    size_t fault_tensor; // and where
    bool huge;           // there, a sum over all workers overflows instead
    lac_status expected;
    float in[WORLD_MAX][VALUES_MAX];
    float out[WORLD_MAX][VALUES_MAX];
    float plain[VALUES_MAX]; // the result without streams
    lac_traffic traffic;     // of worker 0
} job;

static job shared;
static lac_layout *layout;
static size_t offsets[TENSORS];
static size_t sizes[TENSORS];
static size_t values;

// Tensors around the size of a piece, many small ones, and empty ones: at the
// beginning, at the end and in pairs.
static int open_layout(void **state)
{
    (void)state;
    static char names[TENSORS][8];
    lac_tensor tensors[TENSORS] = {0};
    for (size_t i = 0; i < TENSORS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "t%zu", i);
        sizes[i] = i == 3                           ? LARGEST
                   : i == 20                        ? PIECE - 1
                   : i % 7 == 0 || i + 1 == TENSORS ? 0
                   : i % 7 == 1 && i > 20           ? 0
                                                    : 1 + i * 37;
        tensors[i] =
            (lac_tensor){.name = names[i], .shape = {(uint32_t)sizes[i], 1}};
        offsets[i] = values;
        values += sizes[i];
    }
    return lac_layout_open(&layout, tensors, TENSORS) == LAC_OK &&
                   values <= VALUES_MAX
               ? 0
               : -1;
}

static int close_layout(void **state)
{
    (void)state;
    lac_layout_close(layout);
    return 0;
}

static float value_of(uint32_t rank, size_t i)
{
    const uint32_t mix = (uint32_t)(i * 2654435761u) ^ (rank * 40503u);
    return ldexpf((float)(mix % 10007) - 5000, (int)(mix >> 13) % 20 - 10);
}

static void fill(uint32_t rank)
{
    for (size_t i = 0; i < values; i++) {
        shared.in[rank][i] = value_of(rank, i);
        shared.out[rank][i] = -77;
    }
    if (rank == shared.faulty) {
        shared.in[rank][offsets[shared.fault_tensor]] = INFINITY;
    }
    if (shared.huge) {
        shared.in[rank][offsets[shared.fault_tensor]] = FLT_MAX;
    }
}

static float *results_of(uint32_t rank)
{
    return shared.in_place ? shared.in[rank] : shared.out[rank];
}

static void make_slices(uint32_t rank, lac_slice *slices)
{
    for (size_t t = 0; t < TENSORS; t++) {
        slices[t] = (lac_slice){
            t, LAC_F32, shared.in[rank] + offsets[t],
            results_of(rank) + offsets[t]};
        if (sizes[t] == 0) {
            slices[t].in = NULL;
            slices[t].out = NULL;
        }
    }
}

static lac_algorithm_options options_of(const test_worker *w)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = "allreduce";
    o.layout = layout;
    o.transport = w->transport;
    o.timeout = 60;
    o.nonfinite = shared.policy;
    return o;
}

static lac_status open_worker(const test_worker *w, lac_algorithm **out)
{
    const lac_algorithm_options o = options_of(w);
    return lac_algorithm_open(out, &o);
}

static lac_status reduce_with(const test_worker *w, lac_algorithm *a)
{
    lac_slice slices[TENSORS];
    fill(w->rank);
    make_slices(w->rank, slices);
    for (uint64_t round = 0; round < 2; round++) {
        // The same numbers again, where the first round has overwritten them.
        fill(w->rank);
        const size_t before = test_thread_allocations - transport_allocations;
        LAC_TRY(lac_algorithm_reduce(a, round, slices, TENSORS));
        EXPECT(test_thread_allocations - transport_allocations == before);
    }
    if (w->rank == 0) {
        shared.traffic = lac_algorithm_traffic(a);
    }
    return LAC_OK;
}

static lac_status reduce_twice(test_worker *w)
{
    lac_algorithm *a = NULL;
    LAC_TRY(open_worker(w, &a));
    exchanges = 0;
    const lac_status status = reduce_with(w, a);
    lac_algorithm_close(a);
    return status;
}

static void reduce_all(uint32_t world)
{
    test_worker workers[WORLD_MAX];
    run_workers(world, reduce_twice, NULL, workers);
    assert_all_ok(workers, world);
}

// Keeps what the round gives without streams.
static lac_traffic reduce_plainly(uint32_t world)
{
    asked = 0;
    reduce_all(world);
    memcpy(shared.plain, results_of(0), values * sizeof(float));
    asked = sizeof(float) * PIECE;
    return shared.traffic;
}

static void expect_plain_results(uint32_t world)
{
    for (uint32_t rank = 0; rank < world; rank++) {
        assert_memory_equal(
            results_of(rank), shared.plain, values * sizeof(float));
    }
}

static void expect_inputs(uint32_t world)
{
    for (uint32_t rank = 0; rank < world; rank++) {
        for (size_t i = 0; i < values; i++) {
            const bool fault =
                rank == shared.faulty && i == offsets[shared.fault_tensor];
            assert_true(
                shared.in[rank][i] == (fault ? INFINITY : value_of(rank, i)));
        }
    }
}

static void set_job(bool in_place)
{
    shared.policy = LAC_NONFINITE_STOP;
    shared.in_place = in_place;
    shared.faulty = LAC_RANK_ANY;
    shared.huge = false;
}

static void streamed_means_have_the_same_bits_and_traffic(void **state)
{
    (void)state;
    for (size_t k = 0; k < ALL_WORLDS; k++) {
        const uint32_t world = all_worlds[k];
        for (int in_place = 0; in_place < 2; in_place++) {
            set_job(in_place != 0);
            const lac_traffic plain = reduce_plainly(world);
            reduce_all(world);
            expect_plain_results(world);
            if (in_place == 0) {
                expect_inputs(world);
            }
            assert_int_equal(shared.traffic.payload_bytes, plain.payload_bytes);
            assert_int_equal(shared.traffic.wire_bytes, plain.wire_bytes);
            assert_int_equal(shared.traffic.messages, plain.messages);
        }
    }
}

// A large tensor, one in the first piece, and one in the last.
static const size_t fault_tensors[] = {3, 2, 38};
enum { FAULTS = sizeof(fault_tensors) / sizeof(fault_tensors[0]) };

static void set_fault(size_t k, lac_nonfinite policy)
{
    set_job(true);
    shared.policy = policy;
    shared.faulty = (uint32_t)(k % 3);
    shared.fault_tensor = fault_tensors[k];
}

static void stop_leaves_inputs_and_outputs(void **state)
{
    (void)state;
    enum { WORLD = 3 };
    asked = sizeof(float) * PIECE;
    for (size_t k = 0; k < FAULTS; k++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            test_worker workers[WORLD];
            char expected[100];
            set_fault(k, LAC_NONFINITE_STOP);
            shared.in_place = in_place != 0;
            (void)snprintf(
                expected, sizeof(expected),
                "allreduce: worker %u has a value in t%zu that is not finite",
                shared.faulty, shared.fault_tensor);
            run_workers(WORLD, reduce_twice, NULL, workers);
            for (uint32_t rank = 0; rank < WORLD; rank++) {
                assert_int_equal(workers[rank].status, LAC_ERR_INVALID);
                assert_string_equal(workers[rank].message, expected);
                for (size_t i = 0; !in_place && i < values; i++) {
                    assert_true(shared.out[rank][i] == -77);
                }
            }
            expect_inputs(WORLD);
        }
    }
}

static void skip_returns_zeros(void **state)
{
    (void)state;
    asked = sizeof(float) * PIECE;
    for (size_t k = 0; k < FAULTS; k++) {
        set_fault(k, LAC_NONFINITE_SKIP);
        reduce_all(3);
        for (uint32_t rank = 0; rank < 3; rank++) {
            for (size_t i = 0; i < values; i++) {
                assert_true(shared.in[rank][i] == 0);
            }
        }
    }
}

// The sum of the other tensors is streamed or not, which depends on the size of
// those that are summed alone.
static void raw_sums_have_the_same_bits(void **state)
{
    (void)state;
    for (size_t k = 0; k < FAULTS; k++) {
        set_fault(k, LAC_NONFINITE_RAW);
        const lac_traffic plain = reduce_plainly(3);
        assert_true(isinf(shared.plain[offsets[shared.fault_tensor]]));
        reduce_all(3);
        expect_plain_results(3);
        assert_int_equal(shared.traffic.wire_bytes, plain.wire_bytes);
    }
}

static void set_overflow(size_t k, lac_nonfinite policy)
{
    set_fault(k, policy);
    shared.faulty = LAC_RANK_ANY;
    shared.huge = true;
}

static void expect_everywhere(float value)
{
    for (uint32_t rank = 0; rank < 3; rank++) {
        for (size_t i = 0; i < values; i++) {
            assert_true(
                isnan(value) ? isnan(shared.in[rank][i])
                             : shared.in[rank][i] == value);
        }
    }
}

static void a_sum_that_overflows_has_the_result_of_the_policy(void **state)
{
    (void)state;
    for (size_t k = 0; k < (size_t)2 * FAULTS; k++) {
        test_worker workers[3];
        char expected[100];
        asked = k < FAULTS ? 0 : sizeof(float) * PIECE;
        set_overflow(k % FAULTS, LAC_NONFINITE_STOP);
        (void)snprintf(
            expected, sizeof(expected),
            "allreduce: the sum of t%zu over all workers overflows",
            shared.fault_tensor);
        run_workers(3, reduce_twice, NULL, workers);
        for (uint32_t rank = 0; rank < 3; rank++) {
            assert_int_equal(workers[rank].status, LAC_ERR_INVALID);
            assert_string_equal(workers[rank].message, expected);
        }
        set_overflow(k % FAULTS, LAC_NONFINITE_SKIP);
        reduce_all(3);
        expect_everywhere(0);
        set_overflow(k % FAULTS, LAC_NONFINITE_PROPAGATE);
        reduce_all(3);
        expect_everywhere(NAN);
        set_overflow(k % FAULTS, LAC_NONFINITE_RAW);
        reduce_all(3);
        assert_true(isinf(shared.in[0][offsets[shared.fault_tensor]]));
    }
}

static lac_status read_memory(test_worker *w)
{
    lac_cost cost;
    const lac_algorithm_options o = options_of(w);
    LAC_TRY(lac_algorithm_cost(&o, &cost));
    ((uint64_t *)w->context)[w->rank] = cost.memory_bytes;
    return LAC_OK;
}

static uint64_t memory_of_worker(void)
{
    test_worker workers[2];
    uint64_t bytes[2] = {0};
    run_workers(2, read_memory, bytes, workers);
    assert_all_ok(workers, 2);
    return bytes[0];
}

// Without streams the sums, and messages in two sets, have all values.
static void no_memory_is_reported_for_streamed_values(void **state)
{
    (void)state;
    set_job(true);
    asked = 0;
    const uint64_t plain = memory_of_worker();
    asked = sizeof(float) * PIECE;
    assert_int_equal(
        plain - memory_of_worker(),
        sizeof(float) * (values - PIECE + 2 * (values + 1 - PIECE)));
}

static void a_failure_in_the_middle_reaches_all(void **state)
{
    (void)state;
    enum { WORLD = 3 };
    set_job(true);
    asked = sizeof(float) * PIECE;
    for (abort_at = 1; abort_at < 10; abort_at++) {
        test_worker workers[WORLD];
        run_workers(WORLD, reduce_twice, NULL, workers);
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            assert_int_not_equal(workers[rank].status, LAC_OK);
            assert_non_null(strstr(workers[rank].message, "test: no more"));
        }
    }
    abort_at = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streamed_means_have_the_same_bits_and_traffic),
        cmocka_unit_test(stop_leaves_inputs_and_outputs),
        cmocka_unit_test(skip_returns_zeros),
        cmocka_unit_test(raw_sums_have_the_same_bits),
        cmocka_unit_test(a_sum_that_overflows_has_the_result_of_the_policy),
        cmocka_unit_test(no_memory_is_reported_for_streamed_values),
        cmocka_unit_test(a_failure_in_the_middle_reaches_all),
    };
    return cmocka_run_group_tests_name(
        "allreduce", tests, open_layout, close_layout);
}
