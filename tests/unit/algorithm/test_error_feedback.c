// SPDX-License-Identifier: MIT
// Error feedback loses nothing: results so far and the mean of the memories
// are the sum of the mean gradients.
#include "cost.h"
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
        "top-k:0.2+natural", "unbiased-rank:2",
    };
    for (size_t c = 0; c < sizeof(compressors) / sizeof(*compressors); c++) {
        print_message("%s\n", compressors[c]);
        assert_identity(compressors[c]);
    }
}

// The mean of e after T rounds is the sum of decay^(T - t) (mean gradient -
// result) over rounds t. The memories have decayed once more by then. Rounding
// is as above, and the product rounds once more; old roundings count less.
static void assert_decays(const char *compressor)
{
    const double decay = 0.75;
    float results[ROUNDS][REDUCTION_VALUES];
    reduction r = {
        .algorithm = "error-feedback:decay=0.75",
        .compressor = compressor,
        .workers = 4,
        .rounds = ROUNDS,
        .gradient = changing_gradient,
        .results = results,
    };
    reduction_run(&r);
    for (size_t i = 0; i < REDUCTION_VALUES; i++) {
        double expected = 0, got = 0;
        for (uint64_t round = 0; round < ROUNDS; round++) {
            expected = decay * expected - (double)results[round][i];
            for (uint32_t rank = 0; rank < r.workers; rank++) {
                expected +=
                    (double)changing_gradient(rank, round, i) / r.workers;
            }
        }
        for (uint32_t rank = 0; rank < r.workers; rank++) {
            got += (double)r.errors[rank][i] / decay / r.workers;
        }
        assert_true(fabs(got - expected) < ROUNDS * 11 * 0x1p-19);
    }
}

static void old_errors_decay(void **state)
{
    (void)state;
    static const char *const compressors[] = {
        "sign", "top-k:0.1", "random-k:0.2", "natural"};
    for (size_t c = 0; c < sizeof(compressors) / sizeof(*compressors); c++) {
        print_message("%s\n", compressors[c]);
        assert_decays(compressors[c]);
    }
}

// A decay of 1 is the algorithm without it, bit for bit.
static void without_decay_nothing_changes(void **state)
{
    (void)state;
    float results[2][ROUNDS][REDUCTION_VALUES];
    static const char *const specs[] = {
        "error-feedback", "error-feedback:decay=1"};
    for (size_t k = 0; k < 2; k++) {
        reduction r = {
            .algorithm = specs[k],
            .compressor = "sign",
            .workers = 4,
            .rounds = ROUNDS,
            .gradient = changing_gradient,
            .results = results[k],
        };
        reduction_run(&r);
    }
    assert_memory_equal(results[0], results[1], sizeof(results[0]));
}

static void a_decay_needs_a_memory(void **state)
{
    (void)state;
    assert_refused(
        "error-feedback:memory=no,decay=0.9", "sign", 4,
        "error-feedback: decay is 0.9 with memory=no, expected 1");
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
    assert_payload("unbiased-rank:2", 4 * 2 * 6);
}

// y = C(x) in the unbiased form, with the key of a round.
static void compress(
    const char *compressor, uint64_t round, lac_scope scope, const float *x,
    float *y)
{
    const lac_shape shape = {6, 10};
    const lac_key key = lac_key_make(
        lac_algorithm_options_default().seed, LAC_PURPOSE_COMPRESS, round,
        scope, lac_name_hash("x"));
    uint8_t payload[8 * REDUCTION_VALUES];
    size_t len;
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, compressor, LAC_FORM_UNBIASED));
    assert_ok(lac_compressor_reserve(c, shape));
    assert_ok(lac_compressor_encode(
        c, &key, shape, x, payload, sizeof(payload), &len));
    assert_ok(lac_compressor_decode(c, &key, shape, payload, len, y));
    lac_compressor_close(c);
}

// Without a memory every round stands for itself: the last result is the mean
// of C(g_i), with the keys of the workers where payloads are gathered, and with
// one key where they are summed, so that it is C of the mean. Values are below
// 100, and are sums of about 20 rounded ones.
static void without_memory_the_result_is_the_mean_of_payloads(void **state)
{
    (void)state;
    static const char *const compressors[] = {
        "natural", "dithering:levels=3", "random-k:0.2", "unbiased-rank:2"};
    enum { FIRST_SUMMED = 2 };
    for (size_t k = 0; k < 4; k++) {
        reduction r = {
            .algorithm = "error-feedback:memory=no",
            .compressor = compressors[k],
            .workers = 4,
            .rounds = 3,
            .gradient = changing_gradient,
        };
        double expected[REDUCTION_VALUES] = {0};
        reduction_run(&r);
        for (uint32_t rank = 0; rank < r.workers; rank++) {
            float g[REDUCTION_VALUES], y[REDUCTION_VALUES];
            for (size_t i = 0; i < REDUCTION_VALUES; i++) {
                g[i] = changing_gradient(rank, 2, i);
            }
            compress(
                compressors[k], 2,
                k < FIRST_SUMMED ? lac_scope_worker(rank) : lac_scope_shared(),
                g, y);
            for (size_t i = 0; i < REDUCTION_VALUES; i++) {
                expected[i] += (double)y[i] / r.workers;
            }
        }
        for (size_t i = 0; i < REDUCTION_VALUES; i++) {
            const double off = (double)r.last[i] - expected[i];
            assert_true(fabs(off) < 20 * 100 * 0x1p-24);
            assert_true(r.errors[0][i] == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(old_errors_decay),
        cmocka_unit_test(without_decay_nothing_changes),
        cmocka_unit_test(a_decay_needs_a_memory),
        cmocka_unit_test(a_payload_is_the_compressors),
        cmocka_unit_test(without_memory_the_result_is_the_mean_of_payloads),
    };
    return cmocka_run_group_tests_name("error_feedback", tests, NULL, NULL);
}
