// SPDX-License-Identifier: MIT
// CHOCO with a trigger: small changes are not sent, and nothing else differs.
#include "consensus.h"

#include <math.h>

enum { WORKERS = RING_WORKERS, VALUES = 200, ROUNDS = 50 };

static const lac_tensor tensor = {.name = "x", .shape = {VALUES, 1}};
static float x[WORKERS * VALUES], before[WORKERS * VALUES];
static double mean[VALUES], after[VALUES];

static consensus on_a_ring(const char *algorithm, uint32_t rounds)
{
    consensus c = consensus_on_a_ring(algorithm, "sign", VALUES, rounds, x);
    consensus_mean(&c, mean);
    memcpy(before, x, sizeof(x));
    return c;
}

// 0 is choco as it was; so is a trigger that every change exceeds.
static void without_a_trigger_it_is_choco(void **state)
{
    (void)state;
    static float plain[WORKERS * VALUES];
    static const char *const specs[] = {
        "choco:gamma=0.3,trigger=0", "choco:gamma=0.3,trigger=1e-20"};
    consensus c = on_a_ring("choco:gamma=0.3", ROUNDS);
    consensus_run(&c);
    memcpy(plain, x, sizeof(x));
    const lac_traffic traffic = c.traffic[3];
    for (size_t i = 0; i < 2; i++) {
        c = on_a_ring(specs[i], ROUNDS);
        consensus_run(&c);
        assert_memory_equal(x, plain, sizeof(x));
        assert_memory_equal(&c.traffic[3], &traffic, sizeof(traffic));
    }
}

// The drift of choco's own test: gamma times four roundings of 2^-23 of what is
// pulled, added up over rounds, and two roundings of x a round.
static void the_mean_is_preserved_whoever_sends(void **state)
{
    (void)state;
    const double drift =
        0.3 * 4 * 0x1p-23 * ROUNDS * (ROUNDS + 1) / 2 + ROUNDS * 2 * 0x1p-23;
    const uint64_t most = 2 * ROUNDS * (VALUES / 8 + 4);
    consensus c = on_a_ring("choco:gamma=0.3,trigger=20", ROUNDS);
    consensus_run(&c);
    consensus_mean(&c, after);
    bool differ = false;
    for (size_t j = 0; j < VALUES; j++) {
        assert_true(fabs(after[j] - mean[j]) < drift);
    }
    for (uint32_t k = 0; k < WORKERS; k++) {
        assert_between(c.traffic[k].payload_bytes, 1, most - 1);
        assert_int_equal(c.traffic[k].messages, 2 * ROUNDS);
        differ =
            differ || c.traffic[k].payload_bytes != c.traffic[0].payload_bytes;
    }
    assert_true(differ); // workers decide alone
}

static double square_of(uint32_t worker)
{
    double sum = 0;
    for (size_t j = 0; j < VALUES; j++) {
        sum += pow((double)before[worker * VALUES + j], 2);
    }
    return sum;
}

// In the first round the change is x itself. Worker 3 sends it if its square
// exceeds trigger * rate^2. Sums of squares are exact to about 2^-20.
static void the_square_is_compared_with_the_rates(void **state)
{
    (void)state;
    static const double factors[] = {0.999, 1.001};
    for (size_t i = 0; i < 2; i++) {
        char spec[64];
        consensus c = on_a_ring("choco", 1);
        const double limit = factors[i] * square_of(3);
        (void)snprintf(
            spec, sizeof(spec), "choco:gamma=0.3,trigger=%.17g", limit * 16);
        c.algorithm = spec;
        c.rate = 0.25;
        consensus_run(&c);
        assert_int_equal(c.traffic[3].payload_bytes > 0, factors[i] < 1);
    }
}

static void nothing_is_sent_and_nothing_moves(void **state)
{
    (void)state;
    consensus c = on_a_ring("choco:gamma=0.3,trigger=1e6", 5);
    consensus_run(&c);
    assert_memory_equal(x, before, sizeof(x));
    assert_int_equal(c.traffic[0].payload_bytes, 0);
}

// Workers minimise |x - b_i|^2 / 2 with normal b_i, whose mean is the minimum
// of all, by steps of 0.05. Returns the mean squared distance to it.
typedef struct descent {
    const char *algorithm;
    double payload;
    double distance[WORKERS];
} descent;

enum { DESCENT_ROUNDS = 400 };

static const float step = 0.05f;

static lac_status descend(test_worker *w, lac_algorithm *a)
{
    descent *const d = w->context;
    const uint32_t rank = w->rank;
    float values[VALUES] = {0}, update[VALUES];
    const lac_slice slice = {0, LAC_F32, values, values};
    const float *const updates[] = {update};
    LAC_TRY(lac_algorithm_set_rate(a, (double)step));
    LAC_TRY(lac_algorithm_start(a, &slice, 1));
    for (uint64_t round = 0; round < DESCENT_ROUNDS; round++) {
        for (size_t j = 0; j < VALUES; j++) {
            update[j] = -step * (values[j] - before[rank * VALUES + j]);
        }
        LAC_TRY(lac_algorithm_mix(a, round, &slice, updates, 1));
    }
    for (size_t j = 0; j < VALUES; j++) {
        d->distance[rank] += pow((double)values[j] - mean[j], 2);
    }
    if (rank == 0) {
        d->payload = (double)lac_algorithm_traffic(a).payload_bytes;
    }
    return LAC_OK;
}

static lac_status descent_body(test_worker *w)
{
    const descent *const d = w->context;
    return with_algorithm(
        w, options_for(d->algorithm, "top-k:0.1"), "ring", &tensor, 1, descend);
}

static double descend_with(const char *algorithm, double *payload_out)
{
    descent d = {.algorithm = algorithm};
    test_worker workers[WORKERS];
    double sum = 0;
    run_workers(WORKERS, descent_body, &d, workers);
    assert_all_ok(workers, WORKERS);
    for (size_t k = 0; k < WORKERS; k++) {
        sum += d.distance[k] / WORKERS;
    }
    *payload_out = d.payload;
    print_message("%s: %g, %g bytes\n", algorithm, sum, d.payload);
    return sum;
}

// Constant steps and different minima leave a floor, which the trigger hardly
// moves while it saves messages.
static void a_trigger_saves_messages_at_the_same_floor(void **state)
{
    (void)state;
    double all, some;
    (void)on_a_ring("choco", 1); // fills before and mean
    const double plain = descend_with("choco:gamma=0.2", &all);
    const double saved = descend_with("choco:gamma=0.2,trigger=3000", &some);
    assert_true(saved < 1.2 * plain);
    assert_true(some < 0.5 * all);
}

static lac_status try_rates(test_worker *w, lac_algorithm *a)
{
    (void)w;
    static const double wrong[] = {-1, (double)NAN, (double)INFINITY};
    LAC_TRY(lac_algorithm_set_rate(a, 0));
    LAC_TRY(lac_algorithm_set_rate(a, 0.1));
    for (size_t i = 0; i < 3; i++) {
        EXPECT(lac_algorithm_set_rate(a, wrong[i]) == LAC_ERR_INVALID);
        EXPECT(strstr(lac_error_message(), "expected 0 or more") != NULL);
    }
    return LAC_OK;
}

static lac_status set_rates(test_worker *w)
{
    return with_algorithm(
        w, lac_algorithm_options_default(), NULL, &tensor, 1, try_rates);
}

static void a_rate_is_finite_and_not_negative(void **state)
{
    (void)state;
    test_worker workers[1];
    run_workers(1, set_rates, NULL, workers);
    assert_all_ok(workers, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_trigger_it_is_choco),
        cmocka_unit_test(the_mean_is_preserved_whoever_sends),
        cmocka_unit_test(the_square_is_compared_with_the_rates),
        cmocka_unit_test(nothing_is_sent_and_nothing_moves),
        cmocka_unit_test(a_trigger_saves_messages_at_the_same_floor),
        cmocka_unit_test(a_rate_is_finite_and_not_negative),
    };
    return cmocka_run_group_tests_name("choco_trigger", tests, NULL, NULL);
}
