// SPDX-License-Identifier: MIT
// Integer sums: results are exactly the sum of integers times the scale, no sum
// exceeds its type, and too many workers are refused.
#include "cost.h"
#include "reduction.h"

#include "kernels/integer.h"

enum { ROUNDS = 20, WORLD = REDUCTION_WORKERS };

// What the workers compute in the first round: the common scale and the sum of
// integers of each value.
static float expect_sums(
    const char *algorithm, int32_t most, double *sums, int32_t *levels_out)
{
    const bool memory = strstr(algorithm, "memory=no") == NULL;
    const size_t size = most == INT8_MAX ? 1 : 2;
    float max = 0;
    for (uint32_t i = 0; i < WORLD * REDUCTION_VALUES; i++) {
        max = fmaxf(
            max, fabsf(changing_gradient(
                     i / REDUCTION_VALUES, 0, i % REDUCTION_VALUES)));
    }
    const laci_integers type = {size, most / WORLD, max};
    memset(sums, 0, REDUCTION_VALUES * sizeof(*sums));
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        const lac_key key = lac_key_make(
            lac_algorithm_options_default().seed, LAC_PURPOSE_COMPRESS, 0,
            lac_scope_worker(rank), lac_name_hash("x"));
        float g[REDUCTION_VALUES];
        int16_t words[REDUCTION_VALUES];
        const int8_t *const bytes = (const void *)words;
        for (size_t i = 0; i < REDUCTION_VALUES; i++) {
            g[i] = changing_gradient(rank, 0, i);
        }
        const laci_stream stream = laci_stream_of(&key);
        laci_integer_portable.encode(
            &type, memory ? NULL : &stream, 0, g, words, REDUCTION_VALUES);
        for (size_t i = 0; i < REDUCTION_VALUES; i++) {
            sums[i] += size == 1 ? bytes[i] : words[i];
        }
    }
    *levels_out = type.levels;
    return max;
}

static void the_result_is_the_scale_times_the_sum(void **state)
{
    (void)state;
    static const struct {
        const char *algorithm;
        int32_t most;
    } cases[] = {
        {"integer", INT8_MAX},
        {"integer:bits=16", INT16_MAX},
        {"integer:memory=no", INT8_MAX},
        {"integer:bits=16,memory=no", INT16_MAX},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        double sums[REDUCTION_VALUES];
        int32_t levels;
        reduction r = {
            .algorithm = cases[c].algorithm,
            .workers = WORLD,
            .rounds = 1,
            .gradient = changing_gradient,
        };
        reduction_run(&r);
        const float max =
            expect_sums(r.algorithm, cases[c].most, sums, &levels);
        const double scale = (double)max / ((double)levels * WORLD);
        for (size_t i = 0; i < REDUCTION_VALUES; i++) {
            assert_true(r.last[i] == (float)(scale * sums[i]));
        }
    }
}

// Results so far and the mean memory are the sum of the mean gradients: sums
// stay below 40, with about five roundings of 2^-19 a round. A memory is at
// most half a level, of M / 31.
static void nothing_is_lost(void **state)
{
    (void)state;
    reduction r = {
        .algorithm = "integer",
        .workers = WORLD,
        .rounds = ROUNDS,
        .gradient = changing_gradient,
    };
    reduction_run(&r);
    double kept = 0;
    for (size_t i = 0; i < REDUCTION_VALUES; i++) {
        double expected = 0, got = r.sum[i];
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            for (uint64_t round = 0; round < ROUNDS; round++) {
                expected += (double)changing_gradient(rank, round, i) / WORLD;
            }
            got += (double)r.errors[rank][i] / WORLD;
            kept = fmax(kept, fabs((double)r.errors[rank][i]));
        }
        assert_true(fabs(got - expected) < ROUNDS * 5 * 0x1p-19);
    }
    assert_true(kept > 0 && kept < 6.0 / 31 / 2);
}

// 15.4 levels leave an error of 0.4 in the first round. Added to the largest
// gradient of the second, it raises the scale.
static float rising_gradient(uint32_t rank, uint64_t round, size_t i)
{
    (void)rank;
    return round == i % 2 ? 1 : round == 0 ? 15.4f / 31 : 0;
}

static void the_scale_includes_the_memory(void **state)
{
    (void)state;
    reduction r = {
        .algorithm = "integer",
        .workers = WORLD,
        .rounds = 2,
        .gradient = rising_gradient,
    };
    reduction_run(&r);
    assert_true(fabs((double)r.last[1] - (1 + 0.4 / 31)) < 8 * 0x1p-24);
}

// 4000 roundings of a gradient at random: the standard deviation of a mean of 4
// workers is at most M / (2 L sqrt(4 * 4000)), of which 5 are allowed.
static void without_memory_it_is_unbiased(void **state)
{
    (void)state;
    enum { MANY = 4000 };
    reduction r = {
        .algorithm = "integer:memory=no",
        .workers = WORLD,
        .rounds = MANY,
        .gradient = steady_gradient,
    };
    reduction_run(&r);
    for (size_t i = 0; i < REDUCTION_VALUES; i++) {
        double mean = 0;
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            mean += (double)steady_gradient(rank, 0, i) / WORLD;
        }
        const double deviation = 4.0 / (2 * 31 * sqrt(4.0 * MANY));
        assert_true(fabs(r.sum[i] / MANY - mean) < 5 * deviation);
    }
}

// All workers have the largest value: the sum is 4 * 31 of at most 127.
static float saturated_gradient(uint32_t rank, uint64_t round, size_t i)
{
    (void)rank, (void)round;
    return i % 2 == 0 ? 2.5f : -2.5f;
}

static void sums_at_the_bound_do_not_wrap(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "integer", "integer:memory=no", "integer:bits=16"};
    for (size_t c = 0; c < 3; c++) {
        reduction r = {
            .algorithm = specs[c],
            .workers = WORLD,
            .rounds = 2,
            .gradient = saturated_gradient,
        };
        reduction_run(&r);
        for (size_t i = 0; i < REDUCTION_VALUES; i++) {
            const float expected = saturated_gradient(0, 0, i);
            assert_true(fabsf(r.last[i] / expected - 1) < 4 * 0x1p-23f);
        }
    }
}

static void a_payload_is_an_integer_a_value_and_a_scale(void **state)
{
    (void)state;
    reduction r = {
        .algorithm = "integer:bits=16",
        .workers = 3,
        .rounds = 2,
        .gradient = changing_gradient,
    };
    reduction_run(&r);
    assert_int_equal(r.traffic.payload_bytes, 2 * (2 * REDUCTION_VALUES + 4));
    assert_int_equal(r.traffic.messages, 2 * 2);
}

static void too_many_workers_are_refused(void **state)
{
    (void)state;
    lac_cost cost;
    assert_ok(tensor_cost("integer", NULL, 127, &cost));
    assert_true(cost.payload_bytes == 60 + 4);
    assert_refused(
        "integer", NULL, 128,
        "integer: bits=8 leave no level for each of 128 workers, expected "
        "bits=16, or 127 workers or fewer");
    assert_ok(tensor_cost("integer:bits=16", NULL, 128, &cost));
    assert_refused(
        "integer:bits=16", NULL, 40000,
        "integer: bits=16 leave no level for each of 40000 workers, expected "
        "32767 workers or fewer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_result_is_the_scale_times_the_sum),
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(the_scale_includes_the_memory),
        cmocka_unit_test(without_memory_it_is_unbiased),
        cmocka_unit_test(sums_at_the_bound_do_not_wrap),
        cmocka_unit_test(a_payload_is_an_integer_a_value_and_a_scale),
        cmocka_unit_test(too_many_workers_are_refused),
    };
    return cmocka_run_group_tests_name("integer", tests, NULL, NULL);
}
