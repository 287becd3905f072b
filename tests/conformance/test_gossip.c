// SPDX-License-Identifier: MIT
// What every model algorithm owes its callers when nothing goes wrong.
#include "gossip.h"

enum { ROUNDS = 4 };

static lac_status mix_rounds(player *p)
{
    LAC_TRY(player_open(p));
    LAC_TRY(player_start(p));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(player_mix(p, round));
    }
    return player_save(p);
}

static void assert_same_end(const play *a, const play *b)
{
    assert_memory_equal(a->x, b->x, a->world * sizeof(*a->x));
    assert_same_saves(&a->saved, &b->saved, a->world);
}

// Runs `script` and demands the end that mix_rounds has.
static void assert_plays_alike(play *reference, lac_status (*script)(player *p))
{
    play other = *reference;
    play_fill(&other);
    reference->script = mix_rounds;
    play_well(reference);
    other.script = script;
    play_well(&other);
    assert_same_end(reference, &other);
    free_saves(&other.saved);
}

static lac_status mix_in_groups(player *p)
{
    static const size_t order[TENSORS] = {3, 0, 4, 1, 2};
    lac_slice slices[TENSORS];
    const float *room[TENSORS], *updates[TENSORS];
    for (size_t i = 0; i < TENSORS; i++) {
        slices[i] = p->slices[order[i]];
    }
    LAC_TRY(player_open(p));
    LAC_TRY(lac_algorithm_start(p->a, slices, TENSORS));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const float *const *const all = player_updates(p, round, room);
        for (size_t i = 0; all != NULL && i < TENSORS; i++) {
            updates[i] = all[order[i]];
        }
        const float *const *const given = all == NULL ? NULL : updates;
        LAC_TRY(lac_algorithm_mix(p->a, round, slices, given, 2));
        LAC_TRY(lac_algorithm_mix(
            p->a, round, slices + 2, given == NULL ? NULL : given + 2, 1));
        LAC_TRY(lac_algorithm_mix(
            p->a, round, slices + 3, given == NULL ? NULL : given + 3, 2));
    }
    return player_save(p);
}

static void groups_as_they_like(play *piece)
{
    assert_plays_alike(piece, mix_in_groups);
}

static lac_status mix_with_resume(player *p)
{
    LAC_TRY(player_open(p));
    LAC_TRY(player_start(p));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (round == 2) {
            lac_algorithm *const old = p->a;
            LAC_TRY(player_save(p));
            LAC_TRY(player_open(p));
            LAC_TRY(player_load(p, p->piece));
            LAC_TRY(player_mix(p, round));
            // Peers let go of the messages of the old one in a second round.
            LAC_TRY(player_mix(p, round + 1));
            lac_algorithm_close(old);
            break;
        }
        LAC_TRY(player_mix(p, round));
    }
    return player_save(p);
}

static void resume(play *piece)
{
    assert_plays_alike(piece, mix_with_resume);
}

static lac_status mix_in_halves(player *p)
{
    LAC_TRY(player_open(p));
    LAC_TRY(player_start(p));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const float *room[TENSORS];
        LAC_TRY(lac_algorithm_begin(p->a, round, p->slices, TENSORS));
        LAC_TRY(lac_algorithm_end(
            p->a, round, p->slices, player_updates(p, round, room), TENSORS));
    }
    return player_save(p);
}

static void begin_and_end(play *piece)
{
    assert_plays_alike(piece, mix_in_halves);
}

static lac_status mix_portably(player *p)
{
    const laci_kernels *portable;
    LAC_TRY(player_open(p));
    LAC_TRY(laci_kernels_find("portable", &portable));
    laci_algorithm_use_kernels(p->a, portable);
    LAC_TRY(player_start(p));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(player_mix(p, round));
    }
    return player_save(p);
}

static void portable_kernels(play *piece)
{
    if (!WORKERS_ARE_THREADS) {
        return;
    }
    assert_plays_alike(piece, mix_portably);
}

static lac_status mix_counting(player *p)
{
    LAC_TRY(player_open(p));
    LAC_TRY(player_start(p));
    LAC_TRY(player_mix(p, 0));
    LAC_TRY(player_mix(p, 1));
    const size_t before = test_allocations;
    for (uint64_t round = 2; round < 6; round++) {
        LAC_TRY(player_mix(p, round));
    }
    return test_allocations == before ? LAC_OK : LAC_ERR_NOMEM;
}

// Of a world of one, where no thread or transport allocates meanwhile; and of
// one with threads, whose transport has all it needs after two rounds.
static void allocate_nothing(play *piece)
{
    if (!WORKERS_ARE_THREADS) {
        return;
    }
    piece->script = mix_counting;
    piece->world = 1;
    piece->topology = "complete";
    play_well(piece);
}

static void assert_finite(const play *piece)
{
    for (uint32_t rank = 0; rank < piece->world; rank++) {
        for (size_t i = 0; i < VALUES; i++) {
            assert_true(isfinite(piece->x[rank][i]));
        }
    }
}

static void every_world(play *piece)
{
    static const uint32_t worlds[] = {1, 2, 3, 5, 8};
    static const char *const topologies[] = {"complete", "ring", "star"};
    const size_t topology_count = WORKERS_ARE_THREADS ? 3 : 1;
    piece->script = mix_rounds;
    for (size_t w = 0; w < sizeof(worlds) / sizeof(*worlds); w++) {
        for (size_t t = 0; t < topology_count; t++) {
            lac_topology *fits;
            piece->world = worlds[w];
            piece->topology = topologies[t];
            if (lac_topology_open(&fits, piece->topology, piece->world, 3) !=
                LAC_OK) {
                continue; // such as a ring of one
            }
            lac_topology_close(fits);
            play_fill(piece);
            play_well(piece);
            assert_finite(piece);
        }
    }
}

// Rounds of a product with W in doubles.
static void expect_exact(const play *piece, double rounds, double *x)
{
    lac_topology *t;
    double w[WORLD_MAX * WORLD_MAX] = {0}, next[WORLD_MAX * VALUES] = {0};
    assert_ok(lac_topology_open(&t, piece->topology, piece->world, 3));
    lac_topology_matrix(t, 0, w);
    lac_topology_close(t);
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < piece->world * VALUES; i++) {
            next[i] = 0;
            for (size_t k = 0; k < piece->world; k++) {
                next[i] += w[i / VALUES * piece->world + k] *
                           x[k * VALUES + i % VALUES];
            }
        }
        memcpy(x, next, piece->world * VALUES * sizeof(*x));
    }
}

static lac_status mix_purely(player *p)
{
    LAC_TRY(player_open(p));
    LAC_TRY(player_start(p));
    for (uint64_t round = 0; round < 3; round++) {
        LAC_TRY(lac_algorithm_mix(p->a, round, p->slices, NULL, TENSORS));
    }
    return LAC_OK;
}

// Values stay below 8 and each round has at most ten roundings of 2^-22 of
// such; in ecd the factor 2/t of the second and third passes twice that on.
static void identity_is_exact(play *piece)
{
    const laci_algorithm_ops *const ops = ops_of(piece);
    double expected[WORLD_MAX * VALUES] = {0};
    char spec[64];
    if (piece->compressor != NULL &&
        strcmp(piece->compressor, "identity") != 0) {
        return;
    }
    if (piece->compressor == NULL && strcmp(ops->plugin.name, "dpsgd") != 0) {
        return; // not exact without a compressor either
    }
    if (has_param(&ops->plugin, "gamma")) {
        (void)snprintf(spec, sizeof(spec), "%s:gamma=1", ops->plugin.name);
        piece->algorithm = spec;
    }
    for (size_t i = 0; i < piece->world * VALUES; i++) {
        expected[i] = (double)piece->x[i / VALUES][i % VALUES];
    }
    expect_exact(piece, 3, expected);
    piece->script = mix_purely;
    play_well(piece);
    for (size_t i = 0; i < piece->world * VALUES; i++) {
        const double got = (double)piece->x[i / VALUES][i % VALUES];
        assert_true(fabs(got - expected[i]) < 3 * 10 * 2 * 0x1p-22);
    }
}

// A payload from shapes alone is at least what is sent.
static lac_status compare_cost(player *p)
{
    const lac_algorithm_options o = player_options(p);
    lac_cost cost;
    LAC_TRY(lac_algorithm_cost(&o, &cost));
    LAC_TRY(player_open(p));
    LAC_TRY(player_start(p));
    const lac_traffic before = lac_algorithm_traffic(p->a);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(player_mix(p, round));
    }
    const lac_traffic after = lac_algorithm_traffic(p->a);
    const double messages = (double)(after.messages - before.messages);
    const double payload = (double)(after.payload_bytes - before.payload_bytes);
    const double neighbours = cost.messages / cost.phases;
    const bool right = messages == ROUNDS * cost.messages &&
                       payload <= ROUNDS * neighbours * cost.payload_bytes;
    return right ? LAC_OK : LAC_ERR_SPACE;
}

static void costs_are_bounds(play *piece)
{
    piece->script = compare_cost;
    play_well(piece);
}

DUTY(groups_as_they_like)
DUTY(resume)
DUTY(begin_and_end)
DUTY(portable_kernels)
DUTY(allocate_nothing)
DUTY(every_world)
DUTY(identity_is_exact)
DUTY(costs_are_bounds)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_groups_as_they_like),
        cmocka_unit_test(all_resume),
        cmocka_unit_test(all_begin_and_end),
        cmocka_unit_test(all_portable_kernels),
        cmocka_unit_test(all_allocate_nothing),
        cmocka_unit_test(all_every_world),
        cmocka_unit_test(all_identity_is_exact),
        cmocka_unit_test(all_costs_are_bounds),
    };
    return cmocka_run_group_tests_name(
        "gossip", tests, setup_workers, teardown_workers);
}
