// SPDX-License-Identifier: MIT
// Clipped gossip: the threshold, the influence of one neighbour, the mean under
// a common threshold, and a worker with wrong values among eight.
#include "consensus.h"

#include <float.h>
#include <math.h>

#include "algorithm/framework/handle.h"
#include "algorithm/shared/clip.h"

enum { WORKERS = 8, VALUES = 40, NEIGHBOURS = WORKERS - 1 };

static float x[WORKERS * VALUES], before[WORKERS * VALUES];

// Twice the tolerated weight lies beyond the threshold, or it is 0. Equal
// distances count one by one, and a neighbour with a larger weight for more.
static void the_threshold_leaves_twice_the_tolerated_beyond_it(void **state)
{
    (void)state;
    const lac_edge even[] = {{1, 0.125}, {2, 0.125}, {3, 0.125}, {4, 0.125}};
    const lac_edge uneven[] = {{1, 0.05}, {2, 0.05}, {3, 0.2}, {4, 0.1}};
    const double apart[] = {3, 1, 4, 2}, close[] = {5, 5, 5, 5};
    assert_true(laci_clip_threshold(even, 4, apart, 0) == 4);
    assert_true(laci_clip_threshold(even, 4, apart, 0.5) == 3);
    assert_true(laci_clip_threshold(even, 4, apart, 1) == 2);
    assert_true(laci_clip_threshold(even, 4, apart, 1.5) == 1);
    assert_true(laci_clip_threshold(even, 4, apart, 2) == 0);
    assert_true(laci_clip_threshold(even, 4, close, 1) == 5);
    assert_true(laci_clip_threshold(even, 4, close, 2) == 0);
    assert_true(laci_clip_threshold(even, 0, apart, 1) == 0);
    // Beyond 1, 2, 3, 4 lie weights of 0.35, 0.25, 0.2 and 0.
    assert_true(laci_clip_threshold(uneven, 4, apart, 0.5) == 3);
    assert_true(laci_clip_threshold(uneven, 4, apart, 0.6) == 2);
    assert_true(laci_clip_threshold(uneven, 4, apart, 0.8) == 1);
    assert_true(laci_clip_threshold(uneven, 4, apart, 1) == 0);
}

static void write_payload(const float *values, size_t n, uint8_t *out)
{
    memcpy(out, values, n * sizeof(*values)); // little-endian, as payloads are
}

static void distances_do_not_overflow(void **state)
{
    (void)state;
    const float own[] = {-FLT_MAX, -FLT_MAX, 1};
    float theirs[] = {FLT_MAX, FLT_MAX, 1};
    uint8_t payload[sizeof(theirs)];
    write_payload(theirs, 3, payload);
    const double far = 2 * sqrt(2) * (double)FLT_MAX;
    assert_true(
        fabs(laci_clip_distance(payload, own, 3) / far - 1) < 4 * DBL_EPSILON);
    theirs[2] = NAN;
    write_payload(theirs, 3, payload);
    assert_true(laci_clip_distance(payload, own, 3) == 0);
    theirs[2] = -INFINITY;
    write_payload(theirs, 3, payload);
    assert_true(laci_clip_distance(payload, own, 3) == 0);
}

// One worker of a complete graph, without a group: the values of all are in x.
typedef struct bench_round {
    lac_edge edges[NEIGHBOURS];
    laci_view views[NEIGHBOURS];
    uint8_t payloads[NEIGHBOURS][VALUES * sizeof(float)];
    laci_item item;
    laci_round round;
    double distances[NEIGHBOURS];
} bench_round;

static void set_round(bench_round *b, uint32_t rank)
{
    memset(b, 0, sizeof(*b));
    for (uint32_t k = 0; k < NEIGHBOURS; k++) {
        const uint32_t peer = k < rank ? k : k + 1;
        b->edges[k] = (lac_edge){peer, 1.0 / WORKERS};
        write_payload(before + peer * VALUES, VALUES, b->payloads[k]);
        b->views[k].bytes = b->payloads[k];
        b->distances[k] =
            laci_clip_distance(b->payloads[k], before + rank * VALUES, VALUES);
    }
    b->item = (laci_item){.n = VALUES, .in = before + rank * VALUES};
    b->round = (laci_round){
        .items = &b->item,
        .count = 1,
        .edges = b->edges,
        .edge_count = NEIGHBOURS,
        .views = b->views,
    };
}

// What one worker gains the other loses, to the last bit before the rounding of
// a result to float: values are below 8, so that it is at most 2^-22.
static void a_common_threshold_preserves_the_mean(void **state)
{
    (void)state;
    bench_round b;
    size_t clipped = 0;
    double mean[VALUES] = {0};
    fill_normal(before, sizeof(before) / sizeof(*before), 3);
    const double tau = sqrt(2.0 * VALUES); // the typical distance
    for (uint32_t rank = 0; rank < WORKERS; rank++) {
        set_round(&b, rank);
        laci_clip_mix(&b.round, 0, 1, b.distances, tau, x + rank * VALUES);
        for (size_t k = 0; k < NEIGHBOURS; k++) {
            clipped += b.distances[k] > tau;
        }
        for (size_t i = 0; i < VALUES; i++) {
            const size_t at = rank * VALUES + i;
            mean[i] += ((double)x[at] - (double)before[at]) / WORKERS;
        }
    }
    assert_between(clipped, 5, WORKERS * NEIGHBOURS - 5);
    for (size_t i = 0; i < VALUES; i++) {
        assert_true(fabs(mean[i]) <= 0x1p-22);
    }
}

// With one neighbour alone, a worker moves by its weight times the distance, or
// times tau if that is less, to the rounding of 40 values below 8.
static void a_difference_is_clipped_to_the_length_tau(void **state)
{
    (void)state;
    static const double parts[] = {0, 0.5, 0.95, 1, 1.05, 3};
    fill_normal(before, sizeof(before) / sizeof(*before), 3);
    for (size_t p = 0; p < sizeof(parts) / sizeof(*parts); p++) {
        bench_round b;
        double square = 0;
        set_round(&b, 0);
        b.round.edge_count = 1;
        const double tau = parts[p] * b.distances[0];
        laci_clip_mix(&b.round, 0, 1, b.distances, tau, x);
        for (size_t i = 0; i < VALUES; i++) {
            square += pow((double)x[i] - (double)before[i], 2);
        }
        const double expected = fmin(tau, b.distances[0]) / WORKERS;
        assert_true(fabs(sqrt(square) - expected) < 7 * 0x1p-22);
    }
}

// Worker 0 is moved to anywhere: worker 1 then differs from where it would be
// without that neighbour by at most its weight times tau, and a rounding of
// 2^-22 of each of 40 values.
static void a_neighbour_moves_a_worker_by_at_most_its_weight_times_tau(
    void **state)
{
    (void)state;
    static const float wrong[] = {0.5f, 30, -1e10f, FLT_MAX, NAN, INFINITY};
    const double tau = 3;
    for (size_t w = 0; w < sizeof(wrong) / sizeof(*wrong); w++) {
        bench_round b;
        float out[VALUES];
        double square = 0;
        fill_normal(before, sizeof(before) / sizeof(*before), 3);
        for (size_t i = 0; i < VALUES; i++) {
            before[i] = wrong[w] * (i % 2 == 0 ? 1.0f : 0.7f);
        }
        set_round(&b, 1);
        laci_clip_mix(&b.round, 0, 1, b.distances, tau, x);
        b.distances[0] = 0; // of worker 0
        laci_clip_mix(&b.round, 0, 1, b.distances, tau, out);
        for (size_t i = 0; i < VALUES; i++) {
            const double d = (double)x[i] - (double)out[i];
            square += d * d;
        }
        assert_true(sqrt(square) <= tau / WORKERS + 7 * 0x1p-22);
        assert_true(isfinite(wrong[w]) ? square > 0 : square == 0);
    }
}

// A round of dpsgd on a complete graph is the functions above, with its rate
// and its own threshold for each worker.
static void a_round_clips_by_its_rate_and_thresholds(void **state)
{
    (void)state;
    consensus c = {
        .algorithm = "dpsgd:clip=2,rate=0.75",
        .topology = "complete",
        .workers = WORKERS,
        .shape = {VALUES, 1},
        .rounds = 1,
        .x = x,
    };
    consensus_fill_normal(&c, 5);
    memcpy(before, x, sizeof(x));
    consensus_run(&c);
    for (uint32_t rank = 0; rank < WORKERS; rank++) {
        bench_round b;
        float expected[VALUES];
        set_round(&b, rank);
        const double tau =
            laci_clip_threshold(b.edges, NEIGHBOURS, b.distances, 2);
        laci_clip_mix(&b.round, 0, 0.75, b.distances, tau, expected);
        assert_memory_equal(x + rank * VALUES, expected, sizeof(expected));
    }
}

// Worker 0 sends huge finite values in every round, as a faulty or hostile
// program would: its slice is set back to them before each.
static void stay_hostile(
    const consensus *c, uint32_t rank, uint32_t round, const lac_algorithm *a,
    const float *values)
{
    (void)round, (void)a;
    const size_t n = consensus_values(c);
    for (size_t i = 0; rank == 0 && i < n; i++) {
        assert_ptr_equal(values, c->x);
        c->x[i] = 1e30f;
    }
}

static double largest_honest(void)
{
    double most = 0;
    for (size_t i = VALUES; i < (size_t)WORKERS * VALUES; i++) {
        most = fmax(most, fabs((double)x[i]));
    }
    return most;
}

static consensus hostile_run(const char *algorithm)
{
    consensus c = {
        .algorithm = algorithm,
        .topology = "complete",
        .workers = WORKERS,
        .shape = {VALUES, 1},
        .rounds = 60,
        .seed = 3,
        .x = x,
        .after = stay_hostile,
    };
    consensus_fill_normal(&c, 4);
    return c;
}

// Plain gossip follows the wrong values. Clipped, the others stay among their
// initial values, which are below 4, and agree: the sum of their squared
// distances to worker 1 falls a thousandfold.
static void one_hostile_worker_of_eight_is_bounded(void **state)
{
    (void)state;
    consensus plain = hostile_run("dpsgd");
    consensus_run(&plain);
    assert_true(largest_honest() > 1e29);
    consensus clipped = hostile_run("dpsgd:clip=1");
    consensus_run(&clipped);
    assert_true(largest_honest() < 4);
    double apart = 0;
    for (size_t i = VALUES; i < (size_t)WORKERS * VALUES; i++) {
        const double d = (double)x[i] - (double)x[VALUES + i % VALUES];
        apart += d * d;
    }
    assert_true(apart < 2.0 * VALUES * (WORKERS - 2) / 1000);
}

// Without wrong values workers agree, near their mean: the drift of the
// adaptive thresholds is below a tenth of the initial distances, of about
// sqrt(40).
static void honest_workers_agree(void **state)
{
    (void)state;
    double mean[VALUES];
    consensus c = hostile_run("dpsgd:clip=1");
    c.after = NULL;
    consensus_mean(&c, mean);
    const double initial = consensus_error(&c, mean);
    consensus_run(&c);
    assert_true(consensus_error(&c, mean) < 0.01 * initial);
}

enum { FEW = 4 };

// Worker 1 sends a payload with a NaN by hand; worker 0 has others to mix with.
static lac_status mix_or_send_nan(test_worker *w, lac_algorithm *a)
{
    float values[FEW] = {(float)w->rank, 1, 2, 3};
    const lac_slice slice = {0, LAC_F32, values, values};
    LAC_TRY(lac_algorithm_start(a, &slice, 1));
    if (w->rank == 1) {
        laci_writer *const message = laci_group_message(a->round.group, 0);
        const float nan[FEW] = {NAN, 1, 2, 3};
        write_payload(nan, FEW, laci_writer_room(message, sizeof(nan)));
        laci_writer_commit(message, sizeof(nan));
        LAC_TRY(laci_group_exchange(
            a->round.group, 0, 0, a->round.edges, a->round.edge_count, true,
            a->round.readers));
    } else {
        LAC_TRY(lac_algorithm_mix(a, 0, &slice, NULL, 1));
        EXPECT(isfinite(values[0]) && values[1] == 1);
    }
    return LAC_OK;
}

static lac_status mix_with_nan(test_worker *w)
{
    const lac_tensor tensor = {.name = "x", .shape = {FEW, 1}};
    return with_algorithm(
        w, options_for("dpsgd:clip=1", NULL), "complete", &tensor, 1,
        mix_or_send_nan);
}

static void values_that_are_not_finite_do_not_stop_the_round(void **state)
{
    (void)state;
    test_worker workers[WORKERS];
    run_workers(WORKERS, mix_with_nan, NULL, workers);
    assert_all_ok(workers, WORKERS);
}

static lac_status expect_warning(test_worker *w, lac_algorithm *a)
{
    const char *const warning = lac_algorithm_warning(a);
    const bool ring = strcmp(w->context, "ring") == 0;
    EXPECT(ring == (warning != NULL));
    EXPECT(
        !ring ||
        strcmp(
            warning, "dpsgd: worker 0 has 2 neighbours and does not mix, "
                     "clip=1 needs more than 2") == 0);
    return LAC_OK;
}

static lac_status open_on_ring(test_worker *w)
{
    const lac_tensor tensor = {.name = "x", .shape = {VALUES, 1}};
    return with_algorithm(
        w, options_for("dpsgd:clip=1", NULL), w->context, &tensor, 1,
        expect_warning);
}

static void too_few_neighbours_are_warned_about(void **state)
{
    (void)state;
    test_worker workers[WORKERS];
    char ring[] = "ring", complete[] = "complete";
    run_workers(WORKERS, open_on_ring, ring, workers);
    assert_all_ok(workers, WORKERS);
    run_workers(WORKERS, open_on_ring, complete, workers);
    assert_all_ok(workers, WORKERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_threshold_leaves_twice_the_tolerated_beyond_it),
        cmocka_unit_test(distances_do_not_overflow),
        cmocka_unit_test(a_common_threshold_preserves_the_mean),
        cmocka_unit_test(a_difference_is_clipped_to_the_length_tau),
        cmocka_unit_test(
            a_neighbour_moves_a_worker_by_at_most_its_weight_times_tau),
        cmocka_unit_test(a_round_clips_by_its_rate_and_thresholds),
        cmocka_unit_test(one_hostile_worker_of_eight_is_bounded),
        cmocka_unit_test(honest_workers_agree),
        cmocka_unit_test(values_that_are_not_finite_do_not_stop_the_round),
        cmocka_unit_test(too_few_neighbours_are_warned_about),
    };
    return cmocka_run_group_tests_name("clip", tests, NULL, NULL);
}
