// SPDX-License-Identifier: MIT
// What every gradient algorithm owes its callers when nothing goes wrong.
#include "gradient.h"

#include <xxhash.h>

static void every_world_agrees(voyage *v)
{
    static const uint32_t worlds[] = {1, 2, 3, 5, 8};
    for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++) {
        v->world = worlds[i];
        voyage_well(v, reduce_rounds);
        assert_agreement(v);
        assert_finite(v);
    }
}

// Runs `script` and demands the results and the state of reduce_rounds.
static void assert_alike(voyage *v, lac_status (*script)(crewman *m))
{
    voyage other = *v;
    voyage_well(v, reduce_rounds);
    voyage_well(&other, script);
    assert_memory_equal(
        v->results, other.results, v->world * sizeof(*v->results));
    assert_same_saves(&v->saved, &other.saved, v->world);
    free_saves(&other.saved);
}

static lac_status reduce_in_groups(crewman *m)
{
    static const size_t order[TENSORS] = {3, 0, 4, 1, 2};
    lac_slice slices[TENSORS], shuffled[TENSORS];
    LAC_TRY(crewman_open(m));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        fill_gradient(m->rank, round, m->gradient);
        make_slices(m, round, slices);
        for (size_t i = 0; i < TENSORS; i++) {
            shuffled[i] = slices[order[i]];
        }
        const size_t first = 1 + round % 3;
        LAC_TRY(lac_algorithm_reduce(m->a, round, shuffled, first));
        LAC_TRY(lac_algorithm_reduce(m->a, round, NULL, 0));
        LAC_TRY(lac_algorithm_reduce(
            m->a, round, shuffled + first, TENSORS - first));
    }
    return crewman_save(m);
}

static void groups_as_they_like(voyage *v)
{
    assert_alike(v, reduce_in_groups);
}

static lac_status reduce_in_place(crewman *m)
{
    LAC_TRY(crewman_open(m));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        lac_slice slices[TENSORS];
        make_slices(m, round, slices);
        fill_gradient(m->rank, round, result_of(m, round));
        for (size_t t = 0; t < TENSORS; t++) {
            slices[t].in = slices[t].out;
        }
        LAC_TRY(lac_algorithm_reduce(m->a, round, slices, TENSORS));
    }
    return crewman_save(m);
}

static void results_may_replace_gradients(voyage *v)
{
    assert_alike(v, reduce_in_place);
}

static lac_status reduce_with_resume(crewman *m)
{
    LAC_TRY(crewman_open(m));
    LAC_TRY(reduce_round(m, 0));
    LAC_TRY(reduce_round(m, 1));
    lac_algorithm *const old = m->a;
    LAC_TRY(crewman_save(m));
    LAC_TRY(crewman_open(m));
    LAC_TRY(lac_algorithm_load(
        m->a, m->v->saved.states[m->rank], m->v->saved.lens[m->rank]));
    for (uint64_t round = 2; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(m, round));
    }
    lac_algorithm_close(old);
    return crewman_save(m);
}

static void resume(voyage *v)
{
    assert_alike(v, reduce_with_resume);
}

static lac_status reduce_portably(crewman *m)
{
    const laci_kernels *portable;
    LAC_TRY(crewman_open(m));
    LAC_TRY(laci_kernels_find("portable", &portable));
    laci_algorithm_use_kernels(m->a, portable);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(m, round));
    }
    return crewman_save(m);
}

static void portable_kernels(voyage *v)
{
    if (!WORKERS_ARE_THREADS) {
        return;
    }
    assert_alike(v, reduce_portably);
}

// A mean of 5 normal numbers, each below 6, has at most ten roundings of at
// most 2^-21; error memories of the identity stay empty.
static void identity_is_the_mean(voyage *v)
{
    const bool exact = v->compressor == NULL
                           ? strcmp(v->algorithm, "allreduce") == 0
                           : strcmp(v->compressor, "identity") == 0;
    if (!exact) {
        return;
    }
    voyage_well(v, reduce_rounds);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        double sum[VALUES] = {0};
        for (uint32_t rank = 0; rank < v->world; rank++) {
            float g[VALUES];
            fill_gradient(rank, round, g);
            for (size_t i = 0; i < VALUES; i++) {
                sum[i] += (double)g[i];
            }
        }
        for (size_t i = 0; i < VALUES; i++) {
            const double got = (double)v->results[0][round][i];
            assert_true(fabs(got - sum[i] / v->world) < 10 * 0x1p-21);
        }
    }
}

// What shapes alone tell is at least what is sent, over all workers. It is told
// of rounds that compress.
static void costs_are_bounds(voyage *v)
{
    if (!WORKERS_ARE_THREADS ||
        strstr(v->algorithm, "start-iteration") != NULL) {
        return;
    }
    voyage_well(v, reduce_rounds);
    lac_layout *layout;
    lac_topology *topology; // tells how many workers there are
    lac_cost cost;
    assert_ok(lac_layout_open(&layout, tensors, TENSORS));
    assert_ok(lac_topology_open(&topology, "complete", v->world, 1));
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = v->algorithm;
    o.compressor = v->compressor;
    o.layout = layout;
    o.topology = topology;
    assert_ok(lac_algorithm_cost(&o, &cost));
    lac_topology_close(topology);
    lac_layout_close(layout);
    double payload = 0;
    for (uint32_t rank = 0; rank < v->world; rank++) {
        payload += (double)v->traffic[rank].payload_bytes;
        assert_true(
            (double)v->traffic[rank].messages == ROUNDS * cost.messages);
    }
    assert_true(payload > 0);
    assert_true(payload <= ROUNDS * v->world * cost.payload_bytes * (1 + 1e-9));
}

static lac_status reduce_counting(crewman *m)
{
    LAC_TRY(crewman_open(m));
    LAC_TRY(reduce_round(m, 0));
    LAC_TRY(reduce_round(m, 1));
    const size_t before = test_thread_allocations;
    LAC_TRY(reduce_round(m, 2));
    LAC_TRY(reduce_round(m, 3));
    EXPECT(test_thread_allocations == before);
    return LAC_OK;
}

// Of one worker: what a transport gets for messages is its own.
static void allocate_nothing(voyage *v)
{
    if (!WORKERS_ARE_THREADS) {
        return;
    }
    v->world = 1;
    voyage_well(v, reduce_counting);
    v->nonfinite = LAC_NONFINITE_RAW;
    voyage_well(v, reduce_counting);
}

// Every allocation of an open fails in turn.
static lac_status open_with_little(crewman *m)
{
    for (long left = 0;; left++) {
        test_allocations_left = left;
        const lac_status status = crewman_open(m);
        test_allocations_left = -1;
        if (status == LAC_OK) {
            EXPECT(left > 5);
            return reduce_round(m, 0);
        }
        EXPECT(status == LAC_ERR_NOMEM);
        EXPECT(m->a == NULL);
    }
}

static void survive_little_memory(voyage *v)
{
    if (!WORKERS_ARE_THREADS) {
        return;
    }
    v->world = 1;
    voyage_well(v, open_with_little);
    v->nonfinite = LAC_NONFINITE_RAW;
    voyage_well(v, open_with_little);
}

static lac_status reduce_zeros(crewman *m)
{
    LAC_TRY(crewman_open(m));
    LAC_TRY(reduce_given(m, 0)); // zeros
    LAC_TRY(reduce_given(m, 1));
    for (uint64_t round = 2; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(m, round));
    }
    return LAC_OK;
}

static void zeros_do_no_harm(voyage *v)
{
    voyage_well(v, reduce_zeros);
    assert_agreement(v);
    assert_finite(v);
    double last = 0;
    for (size_t i = 0; i < VALUES; i++) {
        last += fabs((double)v->results[0][ROUNDS - 1][i]);
    }
    assert_true(last > 1);
}

// What each worker got of a sum that a transport may do by itself.
typedef struct large_sum {
    uint64_t hashes[WORLD_MAX];
} large_sum;

enum { LARGE = 9001 };

// Every worker has a NaN of its own in the same place, and one in another.
static lac_status sum_nans(test_worker *w)
{
    static const lac_tensor tensor = {.name = "large", .shape = {LARGE, 1}};
    large_sum *const sum = w->context;
    lac_algorithm_options o = lac_algorithm_options_default();
    lac_layout *layout = NULL;
    lac_algorithm *a = NULL;
    float x[LARGE];
    for (uint32_t i = 0; i < LARGE; i++) {
        x[i] = 0.1f * (float)(i % 100) + (float)w->rank;
    }
    const uint32_t bits = 0x7fc00001 + w->rank;
    memcpy(&x[7], &bits, sizeof(bits));
    memcpy(&x[5000 + w->rank], &bits, sizeof(bits));
    lac_status status = lac_layout_open(&layout, &tensor, 1);
    o.layout = layout;
    o.transport = w->transport;
    o.nonfinite = LAC_NONFINITE_RAW;
    if (status == LAC_OK) {
        status = lac_algorithm_open(&a, &o);
    }
    if (status == LAC_OK) {
        const lac_slice slice = {0, LAC_F32, x, x};
        status = lac_algorithm_reduce(a, 0, &slice, 1);
        sum->hashes[w->rank] = XXH3_64bits(x, sizeof(x));
    }
    lac_transport_leave(w->transport);
    w->transport = NULL;
    lac_algorithm_close(a);
    lac_layout_close(layout);
    return status;
}

static void large_sums_of_nans_have_the_same_bits(void **state)
{
    (void)state;
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        test_worker workers[WORLD_MAX];
        large_sum sum = {0};
        run_workers(world, sum_nans, &sum, workers);
        share_rows(sum.hashes, sizeof(*sum.hashes), world);
        assert_all_ok(workers, world);
        for (uint32_t rank = 1; rank < world; rank++) {
            assert_true(sum.hashes[rank] == sum.hashes[0]);
        }
    }
}

DUTY(every_world_agrees)
DUTY(groups_as_they_like)
DUTY(results_may_replace_gradients)
DUTY(resume)
DUTY(portable_kernels)
DUTY(identity_is_the_mean)
DUTY(costs_are_bounds)
DUTY(allocate_nothing)
DUTY(survive_little_memory)
DUTY(zeros_do_no_harm)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_every_world_agrees),
        cmocka_unit_test(all_groups_as_they_like),
        cmocka_unit_test(all_results_may_replace_gradients),
        cmocka_unit_test(all_resume),
        cmocka_unit_test(all_portable_kernels),
        cmocka_unit_test(all_identity_is_the_mean),
        cmocka_unit_test(all_costs_are_bounds),
        cmocka_unit_test(all_allocate_nothing),
        cmocka_unit_test(all_survive_little_memory),
        cmocka_unit_test(all_zeros_do_no_harm),
        cmocka_unit_test(large_sums_of_nans_have_the_same_bits),
    };
    return cmocka_run_group_tests_name(
        "gradient", tests, setup_workers, teardown_workers);
}
