// SPDX-License-Identifier: MIT
// Compression to a server and back is unbiased when both compressors are.
#include "reduction.h"

enum { ROUNDS = 4000, WORKERS = 4 };

// A result has variance (1 + b) (a / 4 * s + m^2) - m^2 at most, for errors a
// of the way up and b of the way back relative to squares: with natural (1/8)
// both ways, s the mean of the workers' squares and m the mean. The mean of
// 4000 is within 5 of its standard deviations of m; 60 values fail together
// with a chance of 4e-5.
static void the_mean_of_many_rounds_is_the_mean(void **state)
{
    (void)state;
    reduction r = {
        .algorithm = "compressed",
        .compressor = "natural",
        .workers = WORKERS,
        .rounds = ROUNDS,
        .gradient = steady_gradient,
    };
    reduction_run(&r);
    double moved = 0;
    for (size_t i = 0; i < REDUCTION_VALUES; i++) {
        double mean = 0, squares = 0;
        for (uint32_t rank = 0; rank < WORKERS; rank++) {
            const double g = (double)steady_gradient(rank, 0, i);
            mean += g / WORKERS;
            squares += g * g / WORKERS;
        }
        const double variance =
            (1 + 0.125) * (0.125 / WORKERS * squares + mean * mean) -
            mean * mean;
        const double off = fabs(r.sum[i] / ROUNDS - mean);
        assert_true(off < 5 * sqrt(variance / ROUNDS));
        moved += fabs((double)r.last[i] - mean);
    }
    assert_true(moved > 1); // it does compress
}

static uint64_t payload_of(const char *algorithm, const char *compressor)
{
    reduction r = {
        .algorithm = algorithm,
        .compressor = compressor,
        .workers = WORKERS,
        .rounds = 1,
        .gradient = steady_gradient,
    };
    reduction_run(&r);
    return r.traffic.payload_bytes;
}

// Worker 0 owns the only tensor, so that its payload has both ways.
static void the_way_back_counts_once_for_its_owner(void **state)
{
    (void)state;
    const uint64_t natural = 68; // 60 values of 9 bits
    assert_int_equal(payload_of("compressed", "natural"), 2 * natural);
    assert_int_equal(
        payload_of("compressed:server=(identity)", "natural"),
        natural + 4 * 60);
    assert_int_equal(
        payload_of("compressed:server=(random-k:0.5)", "identity"),
        4 * 60 + 4 * 30);
}

static void exact_servers_and_workers_give_the_mean(void **state)
{
    (void)state;
    reduction r = {
        .algorithm = "compressed:server=(identity)",
        .compressor = "identity",
        .workers = 3,
        .rounds = 1,
        .gradient = steady_gradient,
    };
    reduction_run(&r);
    for (size_t i = 0; i < REDUCTION_VALUES; i++) {
        double mean = 0;
        for (uint32_t rank = 0; rank < 3; rank++) {
            mean += (double)steady_gradient(rank, 0, i) / 3;
        }
        // Three roundings of numbers below 16.
        assert_true(fabs((double)r.last[i] - mean) < 4 * 0x1p-20);
    }
}

static lac_status expect_warning(test_worker *w, lac_algorithm *a)
{
    const char *const *const specs = w->context;
    const char *const warning = lac_algorithm_warning(a);
    EXPECT(
        specs[2] == NULL ||
        (warning != NULL && strstr(warning, specs[2]) != NULL));
    return LAC_OK;
}

static lac_status open_biased(test_worker *w)
{
    const char *const *const specs = w->context;
    return with_algorithm(
        w, options_for(specs[0], specs[1]), NULL, &reduction_tensor, 1,
        expect_warning);
}

static void biased_compressors_get_a_warning(void **state)
{
    (void)state;
    test_worker worker;
    const char *up[] = {"compressed:server=(natural)", "top-k", "top-k"};
    run_workers(1, open_biased, up, &worker);
    assert_all_ok(&worker, 1);
    const char *back[] = {"compressed:server=(sign)", "natural", "sign"};
    run_workers(1, open_biased, back, &worker);
    assert_all_ok(&worker, 1);
    const char *unknown[] = {"compressed:server=(nature)", "natural", NULL};
    run_workers(1, open_biased, unknown, &worker);
    assert_int_equal(worker.status, LAC_ERR_NOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_of_many_rounds_is_the_mean),
        cmocka_unit_test(the_way_back_counts_once_for_its_owner),
        cmocka_unit_test(exact_servers_and_workers_give_the_mean),
        cmocka_unit_test(biased_compressors_get_a_warning),
    };
    return cmocka_run_group_tests_name("compressed", tests, NULL, NULL);
}
