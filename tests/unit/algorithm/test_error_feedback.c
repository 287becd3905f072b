// SPDX-License-Identifier: MIT
// Error feedback loses nothing: results so far and the mean of the memories
// are the sum of the mean gradients.
#include "reduction.h"

enum { ROUNDS = 40 };

// Memories stay below 40, and a round has about ten roundings of at most 2^-19
// for these and for results.
static void assert_identity(const char *compressor)
{
    reduction r = {
        .algorithm = "error-feedback",
        .compressor = compressor,
        .workers = 4,
        .rounds = ROUNDS,
        .gradient = changing_gradient,
    };
    reduction_run(&r);
    double kept = 0;
    for (size_t i = 0; i < REDUCTION_VALUES; i++) {
        double expected = 0, got = r.sum[i];
        for (uint32_t rank = 0; rank < r.workers; rank++) {
            for (uint64_t round = 0; round < ROUNDS; round++) {
                expected +=
                    (double)changing_gradient(rank, round, i) / r.workers;
            }
            got += (double)r.errors[rank][i] / r.workers;
            kept += fabs((double)r.errors[rank][i]);
        }
        assert_true(fabs(got - expected) < ROUNDS * 10 * 0x1p-19);
    }
    assert_true(strcmp(compressor, "identity") == 0 ? kept == 0 : kept > 1);
}

static void nothing_is_lost(void **state)
{
    (void)state;
    static const char *const compressors[] = {
        "identity",          "sign",
        "top-k:0.1",         "random-k:0.2",
        "low-rank",          "natural",
        "random-block:0.2",  "dithering:levels=3",
        "top-k:0.2+natural",
    };
    for (size_t c = 0; c < sizeof(compressors) / sizeof(*compressors); c++) {
        print_message("%s\n", compressors[c]);
        assert_identity(compressors[c]);
    }
}

static void assert_payload(const char *compressor, uint64_t expected)
{
    reduction r = {
        .algorithm = "error-feedback",
        .compressor = compressor,
        .workers = 3,
        .rounds = 2,
        .gradient = changing_gradient,
    };
    reduction_run(&r);
    assert_int_equal(r.traffic.payload_bytes, 2 * expected);
    assert_int_equal(r.traffic.messages, 2);
}

// Shared keys need no indices, and counts do not count.
static void a_payload_is_the_compressors(void **state)
{
    (void)state;
    assert_payload("identity", 4 * 60);
    assert_payload("random-k:0.5", 4 * 30);
    assert_payload("random-block:rank=1", 4 * 16);
    assert_payload("sign", 60 / 8 + 1 + 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(a_payload_is_the_compressors),
    };
    return cmocka_run_group_tests_name("error_feedback", tests, NULL, NULL);
}
