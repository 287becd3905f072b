// SPDX-License-Identifier: MIT
// The values that every model algorithm computes: exact gossip with the
// identity, local updates that are added once, a mean that stays, convergence
// on fixed graphs and on graphs that vary, and settings that have an effect.
#include "effects.h"
#include "gossip.h"

enum { ROUNDS = 4, MANY_ROUNDS = 100 };

static const char varying[] = "one-peer-exponential";

// A round of exact gossip in doubles: x = W x + updates.
static void mix_exactly(
    const gossip_run *run, const lac_topology *t, uint64_t round, double *x)
{
    double w[WORLD_MAX * WORLD_MAX] = {0}, next[WORLD_MAX * VALUES] = {0};
    const size_t world = run->world;
    lac_topology_matrix(t, round, w);
    for (size_t i = 0; i < world * VALUES; i++) {
        for (size_t k = 0; k < world; k++) {
            next[i] += w[i / VALUES * world + k] * x[k * VALUES + i % VALUES];
        }
    }
    memcpy(x, next, world * VALUES * sizeof(*x));
}

// The update of a value, 0 for those of tensors without one.
static double update_of(uint32_t rank, size_t value)
{
    size_t tensor = 0;
    while (value >= offsets[tensor + 1]) {
        tensor++;
    }
    return has_update(rank, tensor) ? (double)update_value(rank, value) : 0;
}

static void expect_exact(const gossip_run *run, double *x)
{
    lac_topology *t;
    assert_ok(lac_topology_open(&t, run->topology, run->world, 3));
    for (uint64_t round = 0; round < run->rounds; round++) {
        mix_exactly(run, t, round, x);
        for (size_t i = 0; i < run->world * VALUES; i++) {
            if (round_has_updates(run, round)) {
                x[i] += update_of((uint32_t)(i / VALUES), i % VALUES);
            }
        }
    }
    lac_topology_close(t);
}

// Exact gossip is demanded of baselines and, with the identity and a step of 1,
// of all others that take a compressor.
static bool must_be_exact(const gossip_run *run)
{
    const laci_algorithm_ops *const claims = claims_of(run->subject->plugin);
    return run->subject->plain && !claims->inexact &&
           (run->compressor == NULL ? claims->baseline
                                    : is_uncompressed(run->compressor));
}

// Returns a case with steps of 1 in the place of the base's, such as gamma=0.3.
static algorithm_case with_full_step(const algorithm_case *base)
{
    algorithm_case c = *base;
    for (size_t i = 0; i < param_count(c.plugin); i++) {
        if (c.values[i][0] != '\0') {
            write_number(1, c.values[i]);
        }
    }
    write_spec(&c);
    return c;
}

// Values stay below 8, and each round has at most ten roundings of 2^-22 of
// such a value. In ecd the factor 2/t of later rounds passes twice that on.
static void assert_exact(gossip_run *run)
{
    double expected[WORLD_MAX * VALUES] = {0};
    const algorithm_case c = with_full_step(run->subject);
    run->algorithm = c.spec;
    for (size_t i = 0; i < run->world * VALUES; i++) {
        expected[i] = (double)run->x[i / VALUES][i % VALUES];
    }
    expect_exact(run, expected);
    run_gossip_ok(run, mix_rounds);
    run->algorithm = run->subject->spec;
    for (size_t i = 0; i < run->world * VALUES; i++) {
        const double got = (double)run->x[i / VALUES][i % VALUES];
        assert_true(fabs(got - expected[i]) < ROUNDS * 10 * 2 * 0x1p-22);
    }
}

static void the_identity_is_exact_gossip(gossip_run *run)
{
    if (must_be_exact(run)) {
        assert_exact(run);
    }
}

// Nothing is lost by compression: with the identity, and in algorithms that
// take no compressor, but for a control, which loses values by itself.
static bool is_lossless(const gossip_run *run)
{
    return is_uncompressed(run->compressor) && !is_coarse(run->subject) &&
           !(run->compressor == NULL &&
             claims_of(run->subject->plugin)->control);
}

static double largest(const gossip_run *run)
{
    double most = 1;
    for (size_t i = 0; i < run->world * VALUES; i++) {
        most = fmax(most, fabs((double)run->x[i / VALUES][i % VALUES]));
    }
    return most;
}

// The updates of the last round move the values by themselves, to the last
// bits: up to eight roundings of 2^-24 of values that are not much larger
// before the round than after it. An algorithm that sends updates compresses
// them as well, so that they may arrive later.
static void updates_are_added_once(gossip_run *run)
{
    gossip_run other = *run;
    run->update_round = ROUNDS - 1;
    run_gossip_ok(run, mix_rounds);
    other.update_round = ROUNDS;
    run_gossip_ok(&other, mix_rounds);
    free_saves(&other.saved);
    const double bound = 8 * 0x1p-24 * 4 * fmax(largest(run), largest(&other));
    const bool exact =
        !claims_of(run->subject->plugin)->inexact &&
        (is_uncompressed(run->compressor) || !run->takes_update[0]);
    for (size_t i = 0; exact && i < run->world * VALUES; i++) {
        const uint32_t rank = (uint32_t)(i / VALUES);
        const size_t value = i % VALUES;
        const double moved =
            (double)run->x[rank][value] - (double)other.x[rank][value];
        assert_true(fabs(moved - update_of(rank, value)) < bound);
    }
}

static double mean_of(const gossip_run *run, size_t value)
{
    double sum = 0;
    for (uint32_t rank = 0; rank < run->world; rank++) {
        sum += (double)run->x[rank][value];
    }
    return sum / run->world;
}

static double mean_update(const gossip_run *run, size_t value)
{
    double sum = 0;
    for (uint32_t rank = 0; rank < run->world; rank++) {
        sum += update_of(rank, value);
    }
    return sum / run->world;
}

// With a memory, such as a momentum, an update may move the mean further, but
// not less far, and never back. Where settings scale it, half of the defaults
// of two settings still moves it half as far.
static void assert_moved_along(const gossip_run *run, const double *start)
{
    double along = 0, square = 0;
    for (size_t i = 0; i < VALUES; i++) {
        const double update = mean_update(run, i);
        along += (mean_of(run, i) - start[i]) * update;
        square += update * update;
    }
    const bool rescales = claims_of(run->subject->plugin)->rescales;
    assert_true(along > (rescales ? 0.5 : 0.999) * square);
}

// Updates are given in round 1 only. The mean of every value moves by the mean
// of its updates. Each round rounds at most 20 times by 2^-24 of a value.
static void assert_mean(gossip_run *run, bool exact)
{
    double start[VALUES];
    run->update_round = 1;
    for (size_t i = 0; i < VALUES; i++) {
        start[i] = mean_of(run, i);
    }
    run_gossip_ok(run, mix_rounds);
    const double bound = (double)run->rounds * 20 * 0x1p-24 * 4 * largest(run);
    for (size_t i = 0; exact && i < VALUES; i++) {
        const double expected = start[i] + mean_update(run, i);
        assert_true(fabs(mean_of(run, i) - expected) < bound);
    }
    if (!exact) {
        assert_moved_along(run, start);
    }
}

static void the_mean_moves_by_the_updates(gossip_run *run)
{
    const laci_algorithm_ops *const claims = claims_of(run->subject->plugin);
    if (is_lossless(run) || claims->keeps_mean) {
        assert_mean(run, !claims->inexact);
    }
}

// The sum of the squared distances to the mean.
static double disagreement(const gossip_run *run)
{
    double sum = 0;
    for (size_t i = 0; i < VALUES; i++) {
        const double mean = mean_of(run, i);
        for (uint32_t rank = 0; rank < run->world; rank++) {
            const double d = (double)run->x[rank][i] - mean;
            sum += d * d;
        }
    }
    return sum;
}

// The disagreement is a sum of squares. A random compressor that always drew
// the same half of the values would leave half of it; the largest floor of a
// compressor here, that of deepsqueeze with random-k, is 0.08.
static void assert_converges(gossip_run *run)
{
    const double limit = is_uncompressed(run->compressor) ? 0.01 : 0.2;
    run->rounds = MANY_ROUNDS;
    run->update_round = MANY_ROUNDS; // never
    fill_values(run);
    const double before = disagreement(run);
    run_gossip_ok(run, mix_rounds);
    assert_true(disagreement(run) < limit * before);
}

// A step at the end of its range may diverge.
static void workers_converge(gossip_run *run)
{
    const bool claimed =
        is_lossless(run) ||
        (claims_of(run->subject->plugin)->converges && run->subject->plain);
    if (claimed && !run->subject->extreme && WORKERS_ARE_LOCAL) {
        assert_converges(run);
    }
}

static bool is_refused(gossip_run *run)
{
    test_worker workers[WORLD_MAX];
    run->body = mix_rounds;
    run_gossip(run, workers);
    if (workers[0].status == LAC_OK) {
        return false;
    }
    for (uint32_t rank = 0; rank < run->world; rank++) {
        assert_int_equal(workers[rank].status, LAC_ERR_INVALID);
        assert_non_null(strstr(workers[rank].message, "does not vary"));
    }
    return true;
}

// Neighbours change from round to round.
static void a_varying_graph_is_refused_or_converges(gossip_run *run)
{
    const laci_algorithm_ops *const claims = claims_of(run->subject->plugin);
    run->topology = varying;
    run->world = 8;
    if (run->world > largest_world() || is_refused(run)) {
        return;
    }
    fill_values(run);
    if (must_be_exact(run)) {
        assert_exact(run);
        fill_values(run);
    }
    if (is_lossless(run) || claims->keeps_mean) {
        assert_mean(run, !claims->inexact);
    }
    workers_converge(run);
}

// Runs a case with one setting at its base value and returns whether any value
// differs.
static bool setting_matters(const gossip_run *run, size_t param)
{
    const algorithm_case c = without_setting(run->subject, param);
    gossip_run other = *run;
    other.algorithm = c.spec;
    other.saved = (saves){0};
    fill_values(&other);
    run_gossip_ok(&other, mix_rounds);
    free_saves(&other.saved);
    return memcmp(run->x, other.x, run->world * sizeof(*run->x)) != 0;
}

static void try_settings(gossip_run *run)
{
    if (begin_effects(run->subject)) {
        run_gossip_ok(run, mix_rounds);
        for (size_t i = 0; i < param_count(run->subject->plugin); i++) {
            if (may_show_effect(run->subject, i) && setting_matters(run, i)) {
                effects.matters[i] = true;
            }
        }
    }
}

static void every_setting_has_an_effect(void **state)
{
    const gossip_duty duty = {try_settings, false};
    (void)state;
    if (WORKERS_ARE_LOCAL) { // which visit more cases
        visit_family(LAC_FAMILY_MODEL, run_duty, &duty);
    }
    assert_effects();
}

DUTY(the_identity_is_exact_gossip)
DUTY(updates_are_added_once)
DUTY(the_mean_moves_by_the_updates)
DUTY(workers_converge)
DUTY(a_varying_graph_is_refused_or_converges)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_the_identity_is_exact_gossip),
        cmocka_unit_test(all_updates_are_added_once),
        cmocka_unit_test(all_the_mean_moves_by_the_updates),
        cmocka_unit_test(all_workers_converge),
        cmocka_unit_test(all_a_varying_graph_is_refused_or_converges),
        cmocka_unit_test(every_setting_has_an_effect),
    };
    return cmocka_run_group_tests_name(
        "gossip values", tests, setup_workers, teardown_workers);
}
