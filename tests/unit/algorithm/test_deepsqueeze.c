// SPDX-License-Identifier: MIT
// DeepSqueeze: the error memory makes up for what compression drops, up to a
// floor that falls with the square of gamma.
#include "consensus.h"

#include <math.h>

enum { WORKERS = RING_WORKERS, VALUES = 500 };

static float x[WORKERS * VALUES];
static double before[VALUES], mean[VALUES];

// The distance to the mean that the workers began with.
static double error_left(
    const char *algorithm, const char *compressor, uint32_t rounds)
{
    consensus c = consensus_on_a_ring(algorithm, compressor, VALUES, rounds, x);
    consensus_mean(&c, before);
    const double first = consensus_error(&c, before);
    consensus_run(&c);
    consensus_mean(&c, mean);
    return consensus_error(&c, before) / first;
}

// A step is a sum of three terms below 8 that are rounded like them; over all
// workers they cancel but for that. With top-k values of the memory grow to
// ten times those of x.
static void the_mean_is_preserved(void **state)
{
    (void)state;
    static const char *const compressors[] = {
        "sign", "top-k:0.1", "dithering:levels=7"};
    const uint32_t rounds = 100;
    for (size_t i = 0; i < 3; i++) {
        (void)error_left("deepsqueeze:gamma=0.1", compressors[i], rounds);
        for (size_t j = 0; j < VALUES; j++) {
            assert_true(fabs(mean[j] - before[j]) < rounds * 4 * 10 * 0x1p-22);
        }
    }
}

static void converges_where_naive_does_not(void **state)
{
    (void)state;
    static const char *const compressors[] = {
        "dithering:levels=15", "random-k:0.5", "sign"};
    for (size_t i = 0; i < 3; i++) {
        const double naive = error_left("naive", compressors[i], 1500);
        const double squeezed =
            error_left("deepsqueeze:gamma=0.02", compressors[i], 1500);
        print_message("%s: %g, %g\n", compressors[i], naive, squeezed);
        assert_true(squeezed < 0.01 * naive);
    }
}

// u = x + gamma (W - I) e gossips exactly but for gamma^2 terms of e, so what
// is left of x is gamma (W - I) e: a quarter at half of gamma.
static void the_floor_falls_with_gamma_squared(void **state)
{
    (void)state;
    const double coarse =
        error_left("deepsqueeze:gamma=0.04", "random-k:0.5", 3000);
    const double fine =
        error_left("deepsqueeze:gamma=0.02", "random-k:0.5", 3000);
    print_message("%g, %g\n", coarse, fine);
    assert_true(coarse / fine > 3 && coarse / fine < 5.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_is_preserved),
        cmocka_unit_test(converges_where_naive_does_not),
        cmocka_unit_test(the_floor_falls_with_gamma_squared),
    };
    return cmocka_run_group_tests_name("deepsqueeze", tests, NULL, NULL);
}
