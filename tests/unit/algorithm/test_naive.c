// SPDX-License-Identifier: MIT
// Gossip of compressed values: the negative control stops at an error floor.
#include "consensus.h"

#include <math.h>

enum { WORKERS = RING_WORKERS, VALUES = 1000, DRAWS = 40 };

static const double pi = 3.14159265358979323846;
static float x[WORKERS * VALUES];
static double mean[VALUES];

static double error_left(
    const char *algorithm, const char *compressor, uint32_t rounds)
{
    consensus c = consensus_on_a_ring(algorithm, compressor, VALUES, rounds, x);
    consensus_run(&c);
    consensus_mean(&c, mean);
    return consensus_error(&c, mean);
}

// E|C(x) - x|^2 of what worker 0 has.
static double noise_energy(const char *compressor)
{
    static float y[VALUES];
    static uint8_t payload[8 * VALUES];
    const lac_shape shape = {VALUES, 1};
    double energy = 0;
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, compressor, LAC_FORM_UNBIASED));
    assert_ok(lac_compressor_reserve(c, shape));
    for (uint64_t i = 0; i < DRAWS; i++) {
        const lac_key key =
            lac_key_make(9, LAC_PURPOSE_COMPRESS, i, lac_scope_worker(0), 0);
        size_t len = 0;
        assert_ok(lac_compressor_encode(
            c, &key, shape, x, payload, sizeof(payload), &len));
        assert_ok(lac_compressor_decode(c, &key, shape, payload, len, y));
        for (size_t j = 0; j < VALUES; j++) {
            const double error = (double)y[j] - (double)x[j];
            energy += error * error / DRAWS;
        }
    }
    lac_compressor_close(c);
    return energy;
}

// Noise q enters as (W - w_ii I) q. Per mode of the ring, with eigenvalue l,
// (l - 1/3)^2 v comes in and l^2 stays, so (l - 1/3)^2 / (1 - l^2) v is what
// remains; the error is the mean of that over workers. It is measured on 1000
// values in modes that are correlated over a few rounds: within 25 %.
static void the_floor_is_that_of_the_noise(void **state)
{
    (void)state;
    static const char *const compressors[] = {
        "dithering:levels=127", "dithering:levels=31", "natural"};
    double gain = 0;
    for (int m = 1; m < WORKERS; m++) {
        const double l = (1 + 2 * cos(2 * pi * m / WORKERS)) / 3;
        gain += (l - 1. / 3) * (l - 1. / 3) / (1 - l * l) / WORKERS;
    }
    for (size_t i = 0; i < 3; i++) {
        const double floor = error_left("naive", compressors[i], 60);
        const double expected = gain * noise_energy(compressors[i]);
        print_message("%s: %g of %g\n", compressors[i], floor, expected);
        assert_true(fabs(floor / expected - 1) < 0.25);
    }
}

static void more_rounds_do_not_help(void **state)
{
    (void)state;
    const double floor = error_left("naive", "dithering:levels=127", 60);
    const double later = error_left("naive", "dithering:levels=127", 600);
    assert_true(later > floor / 2);
}

// 120 rounds leave 0.6476^120 = 2e-23 of it; floats stop at 2^-24 squared.
static void exact_gossip_has_none(void **state)
{
    (void)state;
    assert_true(error_left("dpsgd", NULL, 120) < VALUES * 16 * 0x1p-44);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_floor_is_that_of_the_noise),
        cmocka_unit_test(more_rounds_do_not_help),
        cmocka_unit_test(exact_gossip_has_none),
    };
    return cmocka_run_group_tests_name("naive", tests, NULL, NULL);
}
