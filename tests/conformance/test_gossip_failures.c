// SPDX-License-Identifier: MIT
// Every model algorithm fails in a defined way: an error message on every
// worker, no hang, and state and values as they were.
#include "gossip_failures.h"

static void different_options_are_refused(gossip_run *run)
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
    assert_ok(
        lac_topology_open(&topology, "ring:weights=max-degree", run->world, 1));
    const lac_algorithm_options odd[] = {
        {.layout = layout},
        {.seed = 77},
        {.topology = topology},
        {.compressor = run->compressor == NULL ? NULL : "half"},
        {.spec = run->compressor == NULL ? NULL : "naive"},
    };
    run->body = mix_until_it_fails;
    run->odd = ODD;
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        const bool differs = i < 3 || run->compressor != NULL;
        const bool same =
            odd[i].spec != NULL && strcmp(odd[i].spec, run->algorithm) == 0;
        if (!differs || same) {
            continue;
        }
        run->odd_options = odd[i];
        assert_all_fail(run, true, workers);
        assert_messages(
            run, workers, "runs another layout, topology, algorithm,");
    }
    lac_topology_close(topology);
    lac_layout_close(layout);
}

// One worker gives its tensors in the opposite order.
static lac_status mix_backwards(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(worker_start(w));
    if (w->rank == ODD) {
        for (size_t i = 0; i < TENSORS / 2; i++) {
            const lac_slice slice = w->slices[i];
            w->slices[i] = w->slices[TENSORS - 1 - i];
            w->slices[TENSORS - 1 - i] = slice;
        }
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(mix_or_restore(w, round));
    }
    return LAC_OK;
}

static void different_orders_are_refused(gossip_run *run)
{
    test_worker workers[WORLD_MAX];
    run->body = mix_backwards;
    assert_all_fail(run, true, workers);
    assert_messages(run, workers, "or gives other tensors");
}

static lac_status leave_early(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(worker_start(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (w->rank == ODD && round == 2) {
            return LAC_OK;
        }
        LAC_TRY(mix_or_restore(w, round));
    }
    return LAC_OK;
}

static void all_fail_when_a_worker_leaves(gossip_run *run)
{
    test_worker workers[WORLD_MAX];
    run->body = leave_early;
    assert_all_fail(run, false, workers);
}

static lac_status abort_early(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(worker_start(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (w->rank == ODD && round == 2) {
            lac_transport_abort(w->transport, "the disk is full");
        }
        LAC_TRY(mix_or_restore(w, round));
    }
    return LAC_OK;
}

static void all_fail_when_a_worker_aborts(gossip_run *run)
{
    test_worker workers[WORLD_MAX];
    run->body = abort_early;
    assert_all_fail(run, true, workers);
    assert_messages(run, workers, "the disk is full");
}

// Opens alone; every allocation fails once.
static lac_status open_without_memory(gossip_worker *w)
{
    for (long left = 0;; left++) {
        test_allocations_left = left;
        const lac_status status = worker_open(w);
        test_allocations_left = -1;
        if (status == LAC_OK) {
            LAC_TRY(worker_start(w));
            return worker_mix(w, 0);
        }
        if (status != LAC_ERR_NOMEM || w->a != NULL) {
            return lac_fail(LAC_ERR_INVALID, "allocation %ld", left);
        }
    }
}

static void open_survives_a_lack_of_memory(gossip_run *run)
{
    if (!WORKERS_ARE_LOCAL) {
        return;
    }
    run->world = 1;
    run->topology = "complete";
    run_gossip_ok(run, open_without_memory);
}

#define REFUSED(call, message)                                                 \
    do {                                                                       \
        if ((call) != LAC_ERR_INVALID ||                                       \
            strstr(lac_error_message(), message) == NULL) {                    \
            return lac_fail(                                                   \
                LAC_ERR_PEER, "%.200s, not: %s", lac_error_message(),          \
                message);                                                      \
        }                                                                      \
    } while (0)

static lac_status misuse(gossip_worker *w)
{
    lac_slice slices[TENSORS + 1];
    memcpy(slices, w->slices, sizeof(w->slices));
    slices[TENSORS] = slices[0];
    LAC_TRY(worker_open(w));
    lac_algorithm *const a = w->a;
    REFUSED(worker_mix(w, 0), ": rounds come after start or load");
    REFUSED(
        lac_algorithm_start(a, slices, 2), ": starts from all 5 tensors, 2");
    LAC_TRY(worker_start(w));
    REFUSED(worker_mix(w, 1), ": round of weight is 1, expected 0");
    REFUSED(
        lac_algorithm_mix(a, 0, slices, NULL, TENSORS + 1),
        ": 6 slices were given of 5 tensors");
    slices[2] = slices[0];
    REFUSED(
        lac_algorithm_mix(a, 0, slices, NULL, 3), ": weight was given twice");
    slices[2] = w->slices[2];
    slices[2].tensor = TENSORS;
    REFUSED(
        lac_algorithm_mix(a, 0, slices, NULL, 3),
        ": slice 2 is of tensor 5, there are 5");
    slices[2] = w->slices[2];
    slices[2].in = NULL;
    REFUSED(
        lac_algorithm_mix(a, 0, slices, NULL, 3),
        ": the values of bias are NULL");
    slices[2].in = (const char *)slices[2].out + 1;
    REFUSED(
        lac_algorithm_mix(a, 0, slices, NULL, 3),
        ": the values of bias are at an address that is no multiple of 4, as "
        "float32 needs");
    slices[2].in = slices[2].out;
    const float *odd[3] = {NULL, NULL, (void *)((char *)slices[2].out + 2)};
    REFUSED(
        lac_algorithm_mix(a, 0, slices, odd, 3),
        ": the update of bias is at an address that is no multiple of 4");
    slices[2].dtype = (lac_dtype)7;
    REFUSED(
        lac_algorithm_mix(a, 0, slices, NULL, 3),
        ": bias has dtype 7, expected 0 to 3 (LAC_F32, LAC_F16, LAC_BF16, "
        "LAC_F64)");
    REFUSED(
        lac_algorithm_end(a, 0, w->slices, NULL, 1),
        ": round 0 of weight was ended before it was begun");
    LAC_TRY(lac_algorithm_begin(a, 0, w->slices, 1));
    REFUSED(
        lac_algorithm_begin(a, 0, w->slices, 1),
        ": round 0 of weight was begun twice");
    LAC_TRY(lac_algorithm_end(a, 0, w->slices, NULL, 1));
    REFUSED(
        lac_algorithm_reduce(a, 1, w->slices, 1),
        ": is a model algorithm, expected a gradient one");
    return lac_algorithm_mix(a, 1, w->slices, NULL, 1);
}

static void wrong_calls_are_refused(gossip_run *run)
{
    if (!WORKERS_ARE_LOCAL) {
        return;
    }
    run->world = 1;
    run->topology = "complete";
    run_gossip_ok(run, misuse);
}

DUTY(different_options_are_refused)
DUTY(different_orders_are_refused)
DUTY(all_fail_when_a_worker_leaves)
DUTY(all_fail_when_a_worker_aborts)
DUTY(open_survives_a_lack_of_memory)
DUTY(wrong_calls_are_refused)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_different_options_are_refused),
        cmocka_unit_test(all_different_orders_are_refused),
        cmocka_unit_test(all_all_fail_when_a_worker_leaves),
        cmocka_unit_test(all_all_fail_when_a_worker_aborts),
        cmocka_unit_test(all_open_survives_a_lack_of_memory),
        cmocka_unit_test(all_wrong_calls_are_refused),
    };
    return cmocka_run_group_tests_name(
        "gossip failures", tests, setup_workers, teardown_workers);
}
