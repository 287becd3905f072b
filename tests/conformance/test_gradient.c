// SPDX-License-Identifier: MIT
// Every gradient algorithm gives all workers the same bits however it is
// called, allocates nothing in a round and sends no more than its cost.
#include "gradient.h"

#include <xxhash.h>

static void every_world_gives_the_same_bits(gradient_run *run)
{
    static const uint32_t worlds[] = {1, 2, 3, 5, 8};
    const size_t count = is_short() ? 3 : 5;
    for (size_t i = 0; i < count; i++) {
        run->world = worlds[i];
        run_gradient_ok(run, reduce_rounds);
        assert_same_results(run);
        assert_finite(run);
    }
}

// Runs `body` and demands the results and the states of reduce_rounds.
static void assert_same_as_reduce(gradient_run *run, gradient_body *body)
{
    gradient_run other = *run;
    run_gradient_ok(run, reduce_rounds);
    run_gradient_ok(&other, body);
    assert_memory_equal(
        run->results, other.results, run->world * sizeof(*run->results));
    assert_same_saves(&run->saved, &other.saved, run->world);
    free_saves(&other.saved);
}

static lac_status reduce_in_groups(gradient_worker *w)
{
    static const size_t order[TENSORS] = {3, 0, 4, 1, 2};
    lac_slice slices[TENSORS], shuffled[TENSORS];
    LAC_TRY(worker_open(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        fill_gradient(w->rank, round, w->gradient);
        make_slices(w, round, slices);
        for (size_t i = 0; i < TENSORS; i++) {
            shuffled[i] = slices[order[i]];
        }
        const size_t first = 1 + round % 3;
        LAC_TRY(lac_algorithm_reduce(w->a, round, shuffled, first));
        LAC_TRY(lac_algorithm_reduce(w->a, round, NULL, 0));
        LAC_TRY(lac_algorithm_reduce(
            w->a, round, shuffled + first, TENSORS - first));
    }
    return worker_save(w);
}

static void grouping_does_not_change_bits(gradient_run *run)
{
    assert_same_as_reduce(run, reduce_in_groups);
}

static lac_status reduce_in_place(gradient_worker *w)
{
    LAC_TRY(worker_open(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        lac_slice slices[TENSORS];
        make_slices(w, round, slices);
        fill_gradient(w->rank, round, result_of(w, round));
        for (size_t t = 0; t < TENSORS; t++) {
            slices[t].in = slices[t].out;
        }
        LAC_TRY(lac_algorithm_reduce(w->a, round, slices, TENSORS));
    }
    return worker_save(w);
}

static void results_may_replace_gradients(gradient_run *run)
{
    assert_same_as_reduce(run, reduce_in_place);
}

// Resumes twice. By the first time momentum and error memory are not zero.
static lac_status reduce_with_resume(gradient_worker *w)
{
    LAC_TRY(worker_open(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (round == 3 || round == 6) {
            LAC_TRY(worker_save(w));
            LAC_TRY(worker_reopen(w));
            LAC_TRY(worker_load(w));
        }
        LAC_TRY(reduce_round(w, round));
    }
    return worker_save(w);
}

static void a_loaded_state_continues_bit_for_bit(gradient_run *run)
{
    assert_same_as_reduce(run, reduce_with_resume);
}

static lac_status reduce_portably(gradient_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(lac_algorithm_use_kernels(w->a, "portable"));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(w, round));
    }
    return worker_save(w);
}

static void portable_kernels_give_the_same_bits(gradient_run *run)
{
    if (!WORKERS_ARE_LOCAL) {
        return;
    }
    assert_same_as_reduce(run, reduce_portably);
}

enum { ROUNDS_BEFORE = 2 };

// Notes the traffic of the rounds after the first ones, which may be exact.
static lac_status reduce_and_count(gradient_worker *w)
{
    lac_traffic *const traffic = &w->run->traffic[w->rank];
    LAC_TRY(worker_open(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (round == ROUNDS_BEFORE) {
            *traffic = lac_algorithm_traffic(w->a);
        }
        LAC_TRY(reduce_round(w, round));
    }
    const lac_traffic end = lac_algorithm_traffic(w->a);
    traffic->payload_bytes = end.payload_bytes - traffic->payload_bytes;
    traffic->messages = end.messages - traffic->messages;
    return LAC_OK;
}

// The bytes that shapes give are at least the bytes that are sent, over all
// workers. A cost is that of rounds that compress.
static void costs_are_bounds(gradient_run *run)
{
    if (!WORKERS_ARE_LOCAL ||
        (run->subject->extreme &&
         strstr(run->algorithm, "start-iteration") != NULL)) {
        return;
    }
    run_gradient_ok(run, reduce_and_count);
    lac_cost cost;
    assert_ok(cost_of(run->subject, &cost));
    const double rounds = ROUNDS - ROUNDS_BEFORE;
    double payload = 0;
    for (uint32_t rank = 0; rank < run->world; rank++) {
        payload += (double)run->traffic[rank].payload_bytes;
        assert_true(
            (double)run->traffic[rank].messages == rounds * cost.messages);
    }
    assert_true(payload > 0);
    assert_true(
        payload <= rounds * run->world * cost.payload_bytes * (1 + 1e-9));
}

static lac_status reduce_counting(gradient_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(reduce_round(w, 0));
    LAC_TRY(reduce_round(w, 1));
    const size_t before = test_thread_allocations;
    LAC_TRY(reduce_round(w, 2));
    LAC_TRY(reduce_round(w, 3));
    EXPECT(test_thread_allocations == before);
    return LAC_OK;
}

// Of one worker: the transport allocates memory for messages.
static void rounds_allocate_nothing(gradient_run *run)
{
    if (!WORKERS_ARE_LOCAL) {
        return;
    }
    run->world = 1;
    run_gradient_ok(run, reduce_counting);
    run->nonfinite = LAC_NONFINITE_RAW;
    run_gradient_ok(run, reduce_counting);
}

// Every allocation of an open fails in turn.
static lac_status open_with_little(gradient_worker *w)
{
    for (long left = 0;; left++) {
        test_allocations_left = left;
        const lac_status status = worker_open(w);
        test_allocations_left = -1;
        if (status == LAC_OK) {
            EXPECT(left > 5);
            return reduce_round(w, 0);
        }
        EXPECT(status == LAC_ERR_NOMEM);
        EXPECT(w->a == NULL);
    }
}

static void open_survives_a_lack_of_memory(gradient_run *run)
{
    if (!WORKERS_ARE_LOCAL) {
        return;
    }
    run->world = 1;
    run_gradient_ok(run, open_with_little);
    run->nonfinite = LAC_NONFINITE_RAW;
    run_gradient_ok(run, open_with_little);
}

static lac_status reduce_zeros(gradient_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(reduce_given(w, 0)); // zeros
    LAC_TRY(reduce_given(w, 1));
    for (uint64_t round = 2; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(w, round));
    }
    return LAC_OK;
}

static void zeros_are_reduced(gradient_run *run)
{
    run_gradient_ok(run, reduce_zeros);
    assert_same_results(run);
    assert_finite(run);
    double last = 0;
    for (size_t i = 0; i < VALUES; i++) {
        last += fabs((double)run->results[0][ROUNDS - 1][i]);
    }
    assert_true(last > 1);
}

// The hash of every worker's result of a sum that a transport may compute by
// itself.
typedef struct large_sum {
    uint64_t hashes[WORLD_MAX];
} large_sum;

enum { LARGE = 9001 };

// Every worker has a NaN of its own in the same place, and one in another.
static lac_status sum_nans(test_worker *w, lac_algorithm *a)
{
    large_sum *const sum = w->context;
    float x[LARGE];
    const lac_slice slice = {0, LAC_F32, x, x};
    for (uint32_t i = 0; i < LARGE; i++) {
        x[i] = 0.1f * (float)(i % 100) + (float)w->rank;
    }
    const uint32_t bits = 0x7fc00001 + w->rank;
    memcpy(&x[7], &bits, sizeof(bits));
    memcpy(&x[5000 + w->rank], &bits, sizeof(bits));
    LAC_TRY(lac_algorithm_reduce(a, 0, &slice, 1));
    sum->hashes[w->rank] = XXH3_64bits(x, sizeof(x));
    return LAC_OK;
}

static lac_status sum_body(test_worker *w)
{
    static const lac_tensor tensor = {.name = "large", .shape = {LARGE, 1}};
    lac_algorithm_options o = lac_algorithm_options_default();
    o.nonfinite = LAC_NONFINITE_RAW;
    return with_algorithm(w, o, NULL, &tensor, 1, sum_nans);
}

static void large_sums_of_nans_have_the_same_bits(void **state)
{
    (void)state;
    for (uint32_t world = 1; world <= largest_world(); world++) {
        test_worker workers[WORLD_MAX] = {{0}};
        large_sum sum = {0};
        run_workers(world, sum_body, &sum, workers);
        share_rows(sum.hashes, sizeof(*sum.hashes), world);
        assert_all_ok(workers, world);
        for (uint32_t rank = 1; rank < world; rank++) {
            assert_true(sum.hashes[rank] == sum.hashes[0]);
        }
    }
}

DUTY(every_world_gives_the_same_bits)
DUTY(grouping_does_not_change_bits)
DUTY(results_may_replace_gradients)
DUTY(a_loaded_state_continues_bit_for_bit)
DUTY(portable_kernels_give_the_same_bits)
DUTY(costs_are_bounds)
DUTY(rounds_allocate_nothing)
DUTY(open_survives_a_lack_of_memory)
DUTY(zeros_are_reduced)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_every_world_gives_the_same_bits),
        cmocka_unit_test(all_grouping_does_not_change_bits),
        cmocka_unit_test(all_results_may_replace_gradients),
        cmocka_unit_test(all_a_loaded_state_continues_bit_for_bit),
        cmocka_unit_test(all_portable_kernels_give_the_same_bits),
        cmocka_unit_test(all_costs_are_bounds),
        cmocka_unit_test(all_rounds_allocate_nothing),
        cmocka_unit_test(all_open_survives_a_lack_of_memory),
        cmocka_unit_test(all_zeros_are_reduced),
        cmocka_unit_test(large_sums_of_nans_have_the_same_bits),
    };
    return cmocka_run_group_tests_name(
        "gradient", tests, setup_workers, teardown_workers);
}
