// SPDX-License-Identifier: MIT
// Every model algorithm gives the same bits however it is called, allocates
// nothing in a round and sends no more than its cost.
#include "gossip.h"

enum { ROUNDS = 8, FIRST_RESUME = 3, SECOND_RESUME = 6 };

// Runs `body` and demands the values and states that mix_rounds gives.
static void assert_same_as_mix(gossip_run *reference, gossip_body *body)
{
    reference->rounds = ROUNDS;
    gossip_run other = *reference;
    run_gossip_ok(reference, mix_rounds);
    run_gossip_ok(&other, body);
    assert_memory_equal(
        reference->x, other.x, reference->world * sizeof(*reference->x));
    assert_same_saves(&reference->saved, &other.saved, reference->world);
    free_saves(&other.saved);
    free_saves(&other.earlier);
}

static lac_status mix_in_groups(gossip_worker *w)
{
    static const size_t order[TENSORS] = {3, 0, 4, 1, 2};
    lac_slice slices[TENSORS];
    float steps[VALUES];
    const float *room[TENSORS], *updates[TENSORS];
    for (size_t i = 0; i < TENSORS; i++) {
        slices[i] = w->slices[order[i]];
    }
    LAC_TRY(worker_open(w));
    LAC_TRY(lac_algorithm_start(w->a, slices, TENSORS));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const float *const *const all = worker_updates(w, round, steps, room);
        for (size_t i = 0; all != NULL && i < TENSORS; i++) {
            updates[i] = all[order[i]];
        }
        const float *const *const given = all == NULL ? NULL : updates;
        LAC_TRY(lac_algorithm_mix(w->a, round, slices, given, 2));
        LAC_TRY(lac_algorithm_mix(
            w->a, round, slices + 2, given == NULL ? NULL : given + 2, 1));
        LAC_TRY(lac_algorithm_mix(
            w->a, round, slices + 3, given == NULL ? NULL : given + 3, 2));
    }
    return worker_save(w);
}

static void grouping_does_not_change_bits(gossip_run *run)
{
    assert_same_as_mix(run, mix_in_groups);
}

// Resumes twice, at a round with and one without updates. By the first one
// every field has been written several times.
static lac_status mix_with_resume(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(worker_start(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (round == FIRST_RESUME || round == SECOND_RESUME) {
            LAC_TRY(worker_save(w));
            LAC_TRY(worker_reopen(w));
            LAC_TRY(worker_load(w, w->run));
        }
        LAC_TRY(worker_mix(w, round));
    }
    return worker_save(w);
}

static void a_loaded_state_continues_bit_for_bit(gossip_run *run)
{
    assert_same_as_mix(run, mix_with_resume);
}

static lac_status mix_in_halves(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(worker_start(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(lac_algorithm_begin(w->a, round, w->slices, TENSORS));
        LAC_TRY(worker_end(w, round));
    }
    return worker_save(w);
}

static void begin_and_end_are_mix(gossip_run *run)
{
    assert_same_as_mix(run, mix_in_halves);
}

static bool same_states(const gossip_worker *w)
{
    const saves *const a = &w->run->earlier, *const b = &w->run->saved;
    return a->lens[w->rank] == b->lens[w->rank] &&
           memcmp(a->states[w->rank], b->states[w->rank], a->lens[w->rank]) ==
               0;
}

// Saves after a begin. Either begin has left the saved state as it was, and a
// new handle resumes the round from its beginning. Or the state has the round
// as begun, and a new handle ends it. Or save refuses, and the handle ends the
// round.
static lac_status continue_begun_round(gossip_worker *w, uint64_t round)
{
    const lac_status saved = worker_save(w);
    EXPECT(lac_algorithm_begun(w->a, BIAS));
    if (saved != LAC_OK) {
        EXPECT(saved == LAC_ERR_INVALID);
        return worker_end(w, round);
    }
    LAC_TRY(worker_reopen(w));
    LAC_TRY(worker_load(w, w->run));
    const bool begun = lac_algorithm_begun(w->a, BIAS);
    EXPECT(begun != same_states(w));
    return begun ? worker_end(w, round) : worker_mix(w, round);
}

static lac_status mix_with_begun_save(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(worker_start(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (round == FIRST_RESUME) {
            LAC_TRY(save_state(&w->run->earlier, w->rank, w->a));
            LAC_TRY(lac_algorithm_begin(w->a, round, w->slices, TENSORS));
            LAC_TRY(continue_begun_round(w, round));
        } else {
            LAC_TRY(worker_mix(w, round));
        }
    }
    return worker_save(w);
}

static void a_begun_round_is_resumed_or_refused(gossip_run *run)
{
    assert_same_as_mix(run, mix_with_begun_save);
}

static lac_status mix_portably(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(lac_algorithm_use_kernels(w->a, "portable"));
    LAC_TRY(worker_start(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(worker_mix(w, round));
    }
    return worker_save(w);
}

static void portable_kernels_give_the_same_bits(gossip_run *run)
{
    if (WORKERS_ARE_LOCAL) {
        assert_same_as_mix(run, mix_portably);
    }
}

static lac_status mix_counting(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(worker_start(w));
    LAC_TRY(worker_mix(w, 0));
    LAC_TRY(worker_mix(w, 1));
    const size_t before = test_thread_allocations;
    for (uint64_t round = 2; round < 6; round++) {
        LAC_TRY(worker_mix(w, round));
    }
    EXPECT(test_thread_allocations == before);
    return LAC_OK;
}

// Of one worker: the transport allocates memory for messages.
static void rounds_allocate_nothing(gossip_run *run)
{
    if (WORKERS_ARE_LOCAL) {
        run->world = 1;
        run->topology = "complete";
        run_gossip_ok(run, mix_counting);
    }
}

static void assert_finite(const gossip_run *run)
{
    for (uint32_t rank = 0; rank < run->world; rank++) {
        for (size_t i = 0; i < VALUES; i++) {
            assert_true(isfinite(run->x[rank][i]));
        }
    }
}

static void every_world_works(gossip_run *run)
{
    static const uint32_t worlds[] = {1, 2, 3, 5, 8};
    static const char *const topologies[] = {"complete", "ring", "star"};
    const size_t topology_count = WORKERS_ARE_LOCAL ? 3 : 1;
    const size_t world_count = is_short() ? 3 : 5;
    for (size_t w = 0; w < world_count; w++) {
        for (size_t t = 0; t < topology_count; t++) {
            lac_topology *accepted;
            run->world = worlds[w];
            run->topology = topologies[t];
            if (lac_topology_open(&accepted, run->topology, run->world, 3) !=
                LAC_OK) {
                continue; // such as a ring of one
            }
            lac_topology_close(accepted);
            fill_values(run);
            run_gossip_ok(run, mix_rounds);
            assert_finite(run);
        }
    }
}

// The bytes that shapes give are at least the bytes that are sent.
static lac_status compare_cost(gossip_worker *w)
{
    const lac_algorithm_options o = worker_options(w);
    lac_cost cost;
    LAC_TRY(lac_algorithm_cost(&o, &cost));
    LAC_TRY(worker_open(w));
    LAC_TRY(worker_start(w));
    const lac_traffic before = lac_algorithm_traffic(w->a);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(worker_mix(w, round));
    }
    const lac_traffic after = lac_algorithm_traffic(w->a);
    const double messages = (double)(after.messages - before.messages);
    const double payload = (double)(after.payload_bytes - before.payload_bytes);
    const double neighbours = cost.messages / cost.phases;
    EXPECT(messages == ROUNDS * cost.messages);
    EXPECT(payload <= ROUNDS * neighbours * cost.payload_bytes);
    return LAC_OK;
}

static void costs_are_bounds(gossip_run *run)
{
    run_gossip_ok(run, compare_cost);
}

DUTY(grouping_does_not_change_bits)
DUTY_WITH_SEARCHES(a_loaded_state_continues_bit_for_bit)
DUTY(begin_and_end_are_mix)
DUTY(a_begun_round_is_resumed_or_refused)
DUTY(portable_kernels_give_the_same_bits)
DUTY(rounds_allocate_nothing)
DUTY(every_world_works)
DUTY(costs_are_bounds)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_grouping_does_not_change_bits),
        cmocka_unit_test(all_a_loaded_state_continues_bit_for_bit),
        cmocka_unit_test(all_begin_and_end_are_mix),
        cmocka_unit_test(all_a_begun_round_is_resumed_or_refused),
        cmocka_unit_test(all_portable_kernels_give_the_same_bits),
        cmocka_unit_test(all_rounds_allocate_nothing),
        cmocka_unit_test(all_every_world_works),
        cmocka_unit_test(all_costs_are_bounds),
    };
    return cmocka_run_group_tests_name(
        "gossip", tests, setup_workers, teardown_workers);
}
