// SPDX-License-Identifier: MIT
// What every model algorithm owes its callers when something goes wrong: a
// clear error on every worker, no hang, and state and values as they were.
#include "gossip_failures.h"

static void differences_are_refused(play *piece)
{
    static const lac_tensor others[TENSORS] = {
        {.name = "weight", .shape = {5, 7}}, {.name = "empty", .shape = {0, 3}},
        {.name = "bias", .shape = {13, 1}},  {.name = "one", .shape = {1, 1}},
        {.name = "row", .shape = {1, 9}},
    };
    test_worker workers[WORLD_MAX];
    lac_layout *layout;
    lac_topology *topology;
    assert_ok(lac_layout_open(&layout, others, TENSORS));
    assert_ok(lac_topology_open(
        &topology, "ring:weights=max-degree", piece->world, 1));
    const lac_algorithm_options odd[] = {
        {.layout = layout},
        {.seed = 77},
        {.topology = topology},
        {.compressor = piece->compressor == NULL ? NULL : "half"},
        {.spec = piece->compressor == NULL ? NULL : "naive"},
    };
    piece->script = mix_until_it_fails;
    piece->odd = ODD;
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        const bool differs = i < 3 || piece->compressor != NULL;
        const bool same =
            odd[i].spec != NULL && strcmp(odd[i].spec, piece->algorithm) == 0;
        if (!differs || same) {
            continue;
        }
        piece->odd_options = odd[i];
        assert_all_fail(piece, true, workers);
        assert_all_say(
            piece, workers, "runs another layout, topology, algorithm,");
    }
    lac_topology_close(topology);
    lac_layout_close(layout);
}

// One worker names its tensors the other way round.
static lac_status mix_backwards(player *p)
{
    LAC_TRY(player_open(p));
    LAC_TRY(player_start(p));
    if (p->rank == ODD) {
        for (size_t i = 0; i < TENSORS / 2; i++) {
            const lac_slice slice = p->slices[i];
            p->slices[i] = p->slices[TENSORS - 1 - i];
            p->slices[TENSORS - 1 - i] = slice;
        }
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(mix_or_keep(p, round));
    }
    return LAC_OK;
}

static void other_orders_are_refused(play *piece)
{
    test_worker workers[WORLD_MAX];
    piece->script = mix_backwards;
    assert_all_fail(piece, true, workers);
    assert_all_say(piece, workers, "or gives other tensors");
}

static lac_status leave_early(player *p)
{
    LAC_TRY(player_open(p));
    LAC_TRY(player_start(p));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (p->rank == ODD && round == 2) {
            return LAC_OK;
        }
        LAC_TRY(mix_or_keep(p, round));
    }
    return LAC_OK;
}

static void a_worker_leaves(play *piece)
{
    test_worker workers[WORLD_MAX];
    piece->script = leave_early;
    assert_all_fail(piece, false, workers);
}

static lac_status abort_early(player *p)
{
    LAC_TRY(player_open(p));
    LAC_TRY(player_start(p));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (p->rank == ODD && round == 2) {
            lac_transport_abort(p->transport, "the disk is full");
        }
        LAC_TRY(mix_or_keep(p, round));
    }
    return LAC_OK;
}

static void a_worker_aborts(play *piece)
{
    test_worker workers[WORLD_MAX];
    piece->script = abort_early;
    assert_all_fail(piece, true, workers);
    assert_all_say(piece, workers, "the disk is full");
}

// Opens alone; every allocation fails once.
static lac_status open_without_memory(player *p)
{
    for (long left = 0;; left++) {
        test_allocations_left = left;
        const lac_status status = player_open(p);
        test_allocations_left = -1;
        if (status == LAC_OK) {
            LAC_TRY(player_start(p));
            return player_mix(p, 0);
        }
        if (status != LAC_ERR_NOMEM || p->a != NULL) {
            return lac_fail(LAC_ERR_INVALID, "allocation %ld", left);
        }
    }
}

static void memory_runs_out(play *piece)
{
    if (!WORKERS_ARE_THREADS) {
        return;
    }
    piece->script = open_without_memory;
    piece->world = 1;
    piece->topology = "complete";
    play_well(piece);
}

#define REFUSED(call, sentence)                                                \
    do {                                                                       \
        if ((call) != LAC_ERR_INVALID ||                                       \
            strstr(lac_error_message(), sentence) == NULL) {                   \
            return lac_fail(                                                   \
                LAC_ERR_PEER, "%.200s, not: %s", lac_error_message(),          \
                sentence);                                                     \
        }                                                                      \
    } while (0)

static lac_status misuse(player *p)
{
    lac_slice slices[TENSORS + 1];
    memcpy(slices, p->slices, sizeof(p->slices));
    slices[TENSORS] = slices[0];
    LAC_TRY(player_open(p));
    lac_algorithm *const a = p->a;
    REFUSED(player_mix(p, 0), ": rounds come after start or load");
    REFUSED(
        lac_algorithm_start(a, slices, 2), ": starts from all 5 tensors, 2");
    LAC_TRY(player_start(p));
    REFUSED(player_mix(p, 1), ": round of weight is 1, expected 0");
    REFUSED(
        lac_algorithm_mix(a, 0, slices, NULL, TENSORS + 1),
        ": 6 slices were given of 5 tensors");
    slices[2] = slices[0];
    REFUSED(
        lac_algorithm_mix(a, 0, slices, NULL, 3), ": weight was given twice");
    slices[2] = p->slices[2];
    slices[2].tensor = TENSORS;
    REFUSED(
        lac_algorithm_mix(a, 0, slices, NULL, 3),
        ": slice 2 is of tensor 5, there are 5");
    slices[2] = p->slices[2];
    slices[2].in = NULL;
    REFUSED(
        lac_algorithm_mix(a, 0, slices, NULL, 3),
        ": the values of bias are NULL");
    slices[2].in = (const char *)slices[2].out + 1;
    REFUSED(
        lac_algorithm_mix(a, 0, slices, NULL, 3),
        ": the values of bias, or its update, are at an address");
    slices[2].in = slices[2].out;
    const float *odd[3] = {NULL, NULL, (void *)((char *)slices[2].out + 2)};
    REFUSED(
        lac_algorithm_mix(a, 0, slices, odd, 3),
        ": the values of bias, or its update, are at an address");
    slices[2].dtype = (lac_dtype)7;
    REFUSED(
        lac_algorithm_mix(a, 0, slices, NULL, 3),
        ": bias has dtype 7, expected float32");
    REFUSED(
        lac_algorithm_end(a, 0, p->slices, NULL, 1),
        ": round 0 of weight was ended before it was begun");
    LAC_TRY(lac_algorithm_begin(a, 0, p->slices, 1));
    REFUSED(
        lac_algorithm_begin(a, 0, p->slices, 1),
        ": round 0 of weight was begun twice");
    LAC_TRY(lac_algorithm_end(a, 0, p->slices, NULL, 1));
    REFUSED(
        lac_algorithm_reduce(a, 1, p->slices, 1),
        ": is a model algorithm, expected a gradient one");
    return lac_algorithm_mix(a, 1, p->slices, NULL, 1);
}

static void wrong_calls(play *piece)
{
    if (!WORKERS_ARE_THREADS) {
        return;
    }
    piece->script = misuse;
    piece->world = 1;
    piece->topology = "complete";
    play_well(piece);
}

DUTY(differences_are_refused)
DUTY(other_orders_are_refused)
DUTY(a_worker_leaves)
DUTY(a_worker_aborts)
DUTY(memory_runs_out)
DUTY(wrong_calls)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_differences_are_refused),
        cmocka_unit_test(all_other_orders_are_refused),
        cmocka_unit_test(all_a_worker_leaves),
        cmocka_unit_test(all_a_worker_aborts),
        cmocka_unit_test(all_memory_runs_out),
        cmocka_unit_test(all_wrong_calls),
    };
    return cmocka_run_group_tests_name(
        "gossip failures", tests, setup_workers, teardown_workers);
}
