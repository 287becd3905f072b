// SPDX-License-Identifier: MIT
// What every model algorithm does when a worker has a value that is not finite:
// all stop and say whose, and which, and nothing else has changed.
#include "gossip_failures.h"

static lac_status spoil_a_value(player *p)
{
    LAC_TRY(player_open(p));
    LAC_TRY(player_start(p));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (p->rank == ODD && round == 2) {
            p->x[40] = NAN; // of bias
        }
        LAC_TRY(mix_or_keep(p, round));
    }
    return LAC_OK;
}

static lac_status spoil_an_update(player *p)
{
    LAC_TRY(player_open(p));
    LAC_TRY(player_start(p));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const float spoilt[13] = {1, 2, INFINITY};
        const float *const updates[TENSORS] = {
            NULL, NULL, p->rank == ODD ? spoilt : NULL, NULL, NULL};
        if (round == 2) {
            LAC_TRY(
                lac_algorithm_mix(p->a, round, p->slices, updates, TENSORS));
        } else {
            LAC_TRY(mix_or_keep(p, round));
        }
    }
    return LAC_OK;
}

// The odd one has begun the round like the others when its step goes wrong. Its
// round is then as if it had not begun, except where begin wrote what is saved:
// there it can be ended with another update, and is not saved in between.
static lac_status fail_an_end(player *p, uint64_t round)
{
    static const float spoilt[13] = {1, 2, INFINITY};
    const float *const updates[TENSORS] = {
        NULL, NULL, p->rank == ODD ? spoilt : NULL, NULL, NULL};
    const bool stays = ops_of(p->piece)->begin_saves;
    const lac_status status =
        lac_algorithm_end(p->a, round, p->slices, updates, TENSORS);
    if (status == LAC_OK || p->rank != ODD) {
        return status;
    }
    char sentence[512];
    (void)snprintf(sentence, sizeof(sentence), "%s", lac_error_message());
    if (!stays) {
        return fail_again(p, round, status);
    }
    EXPECT(player_save(p) == LAC_ERR_INVALID);
    EXPECT(
        strstr(lac_error_message(), "state: round 2 of ") != NULL &&
        strstr(lac_error_message(), " was begun and not ended") != NULL);
    LAC_TRY(lac_algorithm_end(p->a, round, p->slices, NULL, TENSORS));
    return lac_fail(status, "%s", sentence);
}

static lac_status spoil_an_end(player *p)
{
    float x[VALUES];
    LAC_TRY(player_open(p));
    LAC_TRY(player_start(p));
    LAC_TRY(mix_or_keep(p, 0));
    LAC_TRY(mix_or_keep(p, 1));
    LAC_TRY(player_save(p));
    uint8_t *const before = p->piece->saved.states[p->rank];
    const size_t len = p->piece->saved.lens[p->rank];
    p->piece->saved.states[p->rank] = NULL;
    memcpy(x, p->x, sizeof(x));
    lac_status status = lac_algorithm_begin(p->a, 2, p->slices, TENSORS);
    if (status == LAC_OK) {
        status = fail_an_end(p, 2);
    }
    if (status != LAC_OK && !ops_of(p->piece)->begin_saves) {
        LAC_TRY(player_save(p));
        p->piece->spoilt[p->rank] =
            memcmp(before, p->piece->saved.states[p->rank], len) != 0 ||
            memcmp(x, p->x, sizeof(x)) != 0;
    }
    free(before);
    for (uint64_t round = 3; status == LAC_OK && round < ROUNDS; round++) {
        status = mix_or_keep(p, round);
    }
    return status;
}

static lac_status spoil_the_start(player *p)
{
    if (p->rank == ODD) {
        p->x[40] = INFINITY;
    }
    return mix_until_it_fails(p);
}

static void values_that_are_not_finite(play *piece)
{
    static lac_status (*const scripts[])(player * p) = {
        spoil_a_value, spoil_an_update, spoil_an_end, spoil_the_start};
    test_worker workers[WORLD_MAX];
    for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
        piece->script = scripts[i];
        assert_all_fail(piece, true, workers);
        assert_all_say(
            piece, workers, "worker 2 has a value in bias that is not finite");
    }
}

DUTY(values_that_are_not_finite)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_values_that_are_not_finite),
    };
    return cmocka_run_group_tests_name(
        "gossip nonfinite", tests, setup_workers, teardown_workers);
}
