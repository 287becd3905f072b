// SPDX-License-Identifier: MIT
// Every model algorithm gives, for slices of any dtype, the results of floats,
// rounded to the dtype after every round, and has the state of floats. Updates
// are floats. An algorithm that keeps doubles has results of its own for them,
// which no other tensor of the call depends on.
#include "dtypes.h"
#include "gossip.h"

// Of the current run.
static size_t rotation;
static bool typed;

// Mixes, or begins and ends, with another array as `out` in every third round.
static lac_status mix_typed(gossip_worker *w, uint64_t round, typed_values *v)
{
    typed_values out = *v;
    lac_slice slices[TENSORS];
    float steps[VALUES];
    const float *room[TENSORS];
    typed_slices(v, round % 3 == 2 ? &out : v, rotation, slices);
    const float *const *const updates = worker_updates(w, round, steps, room);
    if (round % 2 == 0) {
        LAC_TRY(lac_algorithm_mix(w->a, round, slices, updates, TENSORS));
    } else {
        LAC_TRY(lac_algorithm_begin(w->a, round, slices, TENSORS));
        LAC_TRY(lac_algorithm_end(w->a, round, slices, updates, TENSORS));
    }
    *v = round % 3 == 2 ? out : *v;
    return LAC_OK;
}

static lac_status mix_floats(gossip_worker *w, uint64_t round)
{
    if (round % 2 == 0) {
        LAC_TRY(worker_mix(w, round));
    } else {
        LAC_TRY(lac_algorithm_begin(w->a, round, w->slices, TENSORS));
        LAC_TRY(worker_end(w, round));
    }
    typed_round(rotation, w->x);
    return LAC_OK;
}

static lac_status mix_all(gossip_worker *w)
{
    typed_values v = {0};
    lac_slice slices[TENSORS];
    LAC_TRY(worker_open(w));
    typed_round(rotation, w->x);
    typed_store(&v, rotation, w->x);
    typed_slices(&v, &v, rotation, slices);
    LAC_TRY(lac_algorithm_start(w->a, typed ? slices : w->slices, TENSORS));
    for (uint64_t round = 0; round < w->run->rounds; round++) {
        LAC_TRY(typed ? mix_typed(w, round, &v) : mix_floats(w, round));
    }
    if (typed) {
        typed_load(&v, rotation, w->x);
    }
    return worker_save(w);
}

static void assert_results(
    const gossip_run *floats, const gossip_run *run, bool kept)
{
    for (size_t t = 0; t < TENSORS; t++) {
        const size_t n = offsets[t + 1] - offsets[t];
        const bool same = !kept || dtype_of(rotation, t) != LAC_F64;
        for (uint32_t rank = 0; n > 0 && same && rank < run->world; rank++) {
            assert_memory_equal(
                floats->x[rank] + offsets[t], run->x[rank] + offsets[t],
                n * sizeof(float));
        }
    }
}

static void results_are_those_of_floats(gossip_run *run)
{
    for (rotation = 0; rotation < rotations(run->subject); rotation++) {
        gossip_run floats = *run;
        typed = false;
        floats.saved = (saves){0};
        fill_values(&floats);
        run_gossip_ok(&floats, mix_all);
        typed = true;
        fill_values(run);
        run_gossip_ok(run, mix_all);
        const bool kept = claims_of(run->subject->plugin)->keeps_doubles;
        assert_results(&floats, run, kept);
        if (!kept) {
            assert_same_saves(&floats.saved, &run->saved, run->world);
        }
        free_saves(&floats.saved);
    }
}

// Worker 1 aborts before round 1. The others fail in that round or the one
// before, or complete both; those that fail keep their values.
static lac_status fail_in_round_1(gossip_worker *w)
{
    typed_values v = {0}, out = {0};
    lac_slice slices[TENSORS];
    lac_status status = LAC_OK;
    LAC_TRY(worker_open(w));
    typed_store(&v, rotation, w->x);
    typed_slices(&v, w->rank % 2 == 0 ? &out : &v, rotation, slices);
    status = lac_algorithm_start(w->a, slices, TENSORS);
    for (uint64_t round = 0; status == LAC_OK && round < 2; round++) {
        if (w->rank == 1 && round == 1) {
            lac_transport_abort(w->transport, "test: no more");
            return LAC_OK;
        }
        const typed_values v_before = v, out_before = out;
        status = lac_algorithm_mix(w->a, round, slices, NULL, TENSORS);
        EXPECT(
            status == LAC_OK || (memcmp(&v, &v_before, sizeof(v)) == 0 &&
                                 memcmp(&out, &out_before, sizeof(v)) == 0));
    }
    EXPECT(w->rank != 0 || status == LAC_ERR_PEER); // a neighbour
    return LAC_OK;
}

static void failures_leave_values(gossip_run *run)
{
    for (rotation = 0; rotation < rotations(run->subject); rotation++) {
        fill_values(run);
        run_gossip_ok(run, fail_in_round_1);
    }
}

#define REFUSED(call, message)                                                 \
    do {                                                                       \
        EXPECT((call) == LAC_ERR_INVALID);                                     \
        EXPECT(strstr(lac_error_message(), message) != NULL);                  \
    } while (0)

// weight is float16, bias float64.
static lac_status misuse(gossip_worker *w)
{
    typed_values v = {0};
    lac_slice slices[TENSORS];
    float update[VALUES] = {0};
    const float *updates[TENSORS] = {NULL};
    LAC_TRY(worker_open(w));
    rotation = 1;
    typed_store(&v, rotation, w->x);
    typed_slices(&v, &v, rotation, slices);
    LAC_TRY(lac_algorithm_start(w->a, slices, TENSORS));
    lac_slice one = slices[WEIGHT];
    one.out = (uint8_t *)one.out + 1;
    REFUSED(
        lac_algorithm_mix(w->a, 0, &one, NULL, 1),
        ": the values of weight are at an address that is no multiple of 2, as "
        "float16 needs");
    one = slices[BIAS];
    one.in = (const uint8_t *)one.in + 4;
    REFUSED(
        lac_algorithm_mix(w->a, 0, &one, NULL, 1),
        ": the values of bias are at an address that is no multiple of 8, as "
        "float64 needs");
    one = slices[WEIGHT];
    one.out = (uint8_t *)slices[WEIGHT].out + 2 * 34;
    REFUSED(
        lac_algorithm_mix(w->a, 0, &one, NULL, 1),
        ": in and out of weight overlap in part");
    // The update is longer than `out`, and begins before it.
    alignas(8) uint8_t block[8 * VALUES] = {0};
    one.out = block + 4 * 34;
    updates[0] = (const void *)block;
    REFUSED(
        lac_algorithm_mix(w->a, 0, &one, updates, 1),
        ": the update of weight overlaps its out");
    one.out = block + 4 * 35 + 2;
    updates[0] = update;
    LAC_TRY(lac_algorithm_mix(w->a, 0, &one, updates, 1));
    LAC_TRY(lac_algorithm_begin(w->a, 1, slices, 1));
    one = slices[WEIGHT];
    one.dtype = LAC_BF16;
    REFUSED(
        lac_algorithm_end(w->a, 1, &one, updates, 1),
        ": round 1 of weight is ended as bfloat16, expected float16 as it was "
        "begun");
    LAC_TRY(lac_algorithm_end(w->a, 1, slices, updates, 1));
    // Beyond the range of floats.
    ((double *)typed_tensor(&v, BIAS))[12] = 1e39;
    REFUSED(
        lac_algorithm_mix(w->a, 0, &slices[BIAS], NULL, 1),
        ": worker 0 has a value in bias that is not finite");
    return LAC_OK;
}

static void wrong_calls_are_refused(gossip_run *run)
{
    run->world = 1;
    run->topology = "complete";
    run_gossip_ok(run, misuse);
}

DUTY(results_are_those_of_floats)
DUTY(failures_leave_values)
DUTY(wrong_calls_are_refused)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_results_are_those_of_floats),
        cmocka_unit_test(all_failures_leave_values),
        cmocka_unit_test(all_wrong_calls_are_refused),
    };
    return cmocka_run_group_tests_name(
        "gossip dtypes", tests, setup_workers, teardown_workers);
}
