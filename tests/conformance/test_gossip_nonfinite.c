// SPDX-License-Identifier: MIT
// A non-finite value of one worker stops all workers of a model algorithm. The
// message names the worker and the tensor, and nothing has changed.
#include "gossip_failures.h"

static lac_status spoil_a_value(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(worker_start(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (w->rank == ODD && round == 2) {
            w->x[40] = NAN; // of bias
        }
        LAC_TRY(mix_or_restore(w, round));
    }
    return LAC_OK;
}

static lac_status spoil_an_update(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(worker_start(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const float spoilt[13] = {1, 2, INFINITY};
        const float *const updates[TENSORS] = {
            NULL, NULL, w->rank == ODD ? spoilt : NULL, NULL, NULL};
        if (round == 2) {
            LAC_TRY(
                lac_algorithm_mix(w->a, round, w->slices, updates, TENSORS));
        } else {
            LAC_TRY(mix_or_restore(w, round));
        }
    }
    return LAC_OK;
}

// Returns whether the state differs from run->earlier, or cannot be saved.
static bool state_changed(gossip_worker *w)
{
    const saves *const before = &w->run->earlier, *const now = &w->run->saved;
    return worker_save(w) != LAC_OK ||
           memcmp(
               before->states[w->rank], now->states[w->rank],
               before->lens[w->rank]) != 0;
}

// The odd worker has begun the round like the others when its update is not
// finite. Its round is then as if it had not begun. Where begin has changed the
// saved state, the round stays begun instead: it can be ended with another
// update. In between, it is saved as begun or not at all.
static lac_status fail_an_end(
    gossip_worker *w, uint64_t round, bool stays_begun)
{
    static const float spoilt[13] = {1, 2, INFINITY};
    const float *const updates[TENSORS] = {
        NULL, NULL, w->rank == ODD ? spoilt : NULL, NULL, NULL};
    const lac_status status =
        lac_algorithm_end(w->a, round, w->slices, updates, TENSORS);
    if (status == LAC_OK || w->rank != ODD) {
        return status;
    }
    char message[512];
    (void)snprintf(message, sizeof(message), "%s", lac_error_message());
    if (!stays_begun) {
        return fail_again(w, round, status);
    }
    EXPECT(lac_algorithm_begun(w->a, BIAS));
    const lac_status saved = worker_save(w);
    EXPECT(saved == LAC_OK || saved == LAC_ERR_INVALID);
    EXPECT(
        saved == LAC_OK ||
        strstr(lac_error_message(), "was begun and not ended") != NULL);
    LAC_TRY(lac_algorithm_end(w->a, round, w->slices, NULL, TENSORS));
    return lac_fail(status, "%s", message);
}

static lac_status spoil_an_end(gossip_worker *w)
{
    float x[VALUES];
    LAC_TRY(worker_open(w));
    LAC_TRY(worker_start(w));
    LAC_TRY(mix_or_restore(w, 0));
    LAC_TRY(mix_or_restore(w, 1));
    LAC_TRY(save_state(&w->run->earlier, w->rank, w->a));
    memcpy(x, w->x, sizeof(x));
    bool stays_begun = false;
    lac_status status = lac_algorithm_begin(w->a, 2, w->slices, TENSORS);
    if (status == LAC_OK) {
        stays_begun = state_changed(w);
        status = fail_an_end(w, 2, stays_begun);
    }
    if (status != LAC_OK && !stays_begun) {
        w->run->changed[w->rank] =
            state_changed(w) || memcmp(x, w->x, sizeof(x)) != 0;
    }
    for (uint64_t round = 3; status == LAC_OK && round < ROUNDS; round++) {
        status = mix_or_restore(w, round);
    }
    return status;
}

static lac_status spoil_the_start(gossip_worker *w)
{
    if (w->rank == ODD) {
        w->x[40] = INFINITY;
    }
    return mix_until_it_fails(w);
}

static void nonfinite_values_stop_all_workers(gossip_run *run)
{
    static lac_status (*const bodies[])(gossip_worker * w) = {
        spoil_a_value, spoil_an_update, spoil_an_end, spoil_the_start};
    test_worker workers[WORLD_MAX];
    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
        run->body = bodies[i];
        assert_all_fail(run, true, workers);
        assert_messages(
            run, workers, "worker 2 has a value in bias that is not finite");
    }
}

DUTY(nonfinite_values_stop_all_workers)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_nonfinite_values_stop_all_workers),
    };
    return cmocka_run_group_tests_name(
        "gossip nonfinite", tests, setup_workers, teardown_workers);
}
