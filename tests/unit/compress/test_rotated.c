// SPDX-License-Identifier: MIT
// Rotated quantisation: its law and its mean, whatever the values; the last
// values, zeros, seeds and malformed payloads.
#include "lac_test.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "compress/compressor.h"

enum {
    BLOCK = 1024,
    BLOCKS = 5000,
    VALUES = BLOCK * BLOCKS,
    SMALL = 2048,
    CAP = 4 * SMALL + 8,
};

static const double law[] = {0.36338, 0.11748, 0.03455, 0.009501};

static lac_key key_of(uint64_t round, lac_scope scope)
{
    return lac_key_make(1, LAC_PURPOSE_COMPRESS, round, scope, 0);
}

static lac_compressor *opened(const char *spec, lac_form form, size_t n)
{
    lac_compressor *c = NULL;
    assert_ok(lac_compressor_open(&c, spec, form));
    assert_ok(lac_compressor_reserve(c, (lac_shape){n, 1}));
    return c;
}

static lac_compressor *opened_bits(unsigned bits, lac_form form, size_t n)
{
    static const char *const specs[] = {
        "rotated:1", "rotated:2", "rotated:3", "rotated:4"};
    return opened(specs[bits - 1], form, n);
}

// Small inputs: y = C(x), returns the length of the payload.
static size_t compress(
    lac_compressor *c, const lac_key *key, const float *x, size_t n, float *y)
{
    const lac_shape shape = {n, 1};
    uint8_t payload[CAP];
    size_t len = 0;
    assert_ok(lac_compressor_encode(c, key, shape, x, payload, CAP, &len));
    assert_ok(lac_compressor_decode(c, key, shape, payload, len, y));
    return len;
}

static double square(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    return sum;
}

typedef enum input { NORMAL, LAPLACE, STUDENT, SPARSE, TOWER, INPUTS } input;

static float input_value(
    input kind, size_t block, const lac_key *key, uint32_t i)
{
    const float normal = lac_key_normal(key, 4 * i);
    const float uniform =
        ((float)(lac_key_draw(key, ~i) >> 8) + 0.5f) * 0x1p-24f;
    float chi = 0;
    switch (kind) {
    case LAPLACE:
        return normal < 0 ? logf(uniform) : -logf(uniform);
    case STUDENT: // with 3 degrees of freedom
        for (uint32_t k = 1; k <= 3; k++) {
            chi += powf(lac_key_normal(key, 4 * i + k), 2);
        }
        return normal / sqrtf(chi / 3);
    case SPARSE: // 4 equal values of a block
        return i % (block / 4) == 0 ? 1 : 0;
    case TOWER:
        return i % block == block / 3 ? 100 : 0.01f * normal;
    default:
        return normal;
    }
}

typedef struct law_stats {
    double mean; // of |C(x) - x|^2 / |x|^2 over the blocks
    double error;
} law_stats;

static law_stats measure(lac_compressor *c, const float *x, size_t size)
{
    static float y[VALUES];
    static uint8_t payload[VALUES];
    const lac_shape shape = {BLOCKS, BLOCK};
    const lac_key key = key_of(3, lac_scope_shared());
    double sum = 0, squares = 0;
    size_t len = 0;
    assert_ok(lac_compressor_encode(
        c, &key, shape, x, payload, sizeof(payload), &len));
    assert_ok(lac_compressor_decode(c, &key, shape, payload, len, y));
    const double count = (double)VALUES / (double)size;
    for (size_t at = 0; at < VALUES; at += size) {
        const double norm = square(x + at, size);
        for (size_t i = at; i < at + size; i++) {
            y[i] -= x[i];
        }
        const double error = square(y + at, size) / norm;
        sum += error;
        squares += error * error;
    }
    const double mean = sum / count;
    const double variance = fmax(0, squares / count - mean * mean);
    return (law_stats){mean, sqrt(variance / count)};
}

// The errors of single blocks of 1024 values have a standard deviation of at
// most 16 % of their mean, so 5 standard errors of 5000 blocks are at most
// 1.2 %. A block of this size is within 0.7 % of the law of normal deviates.
static void the_error_is_that_of_normal_deviates(void **state)
{
    (void)state;
    static float x[VALUES];
    for (input kind = NORMAL; kind < INPUTS; kind++) {
        const lac_key data = {kind, 7, LAC_SCOPE_SHARED};
        for (uint32_t i = 0; i < VALUES; i++) {
            x[i] = input_value(kind, BLOCK, &data, i);
        }
        for (unsigned bits = 1; bits <= 4; bits++) {
            for (int unbiased = 0; unbiased < 2; unbiased++) {
                lac_compressor *const c = opened_bits(
                    bits, unbiased ? LAC_FORM_UNBIASED : LAC_FORM_CONTRACTIVE,
                    VALUES);
                const double d = law[bits - 1];
                const double expected = unbiased ? d / (1 - d) : d;
                const law_stats got = measure(c, x, BLOCK);
                print_message(
                    "input %u, %u bits: %.5f of the law, spread %.5f\n", kind,
                    bits, got.mean / expected, got.error / expected);
                assert_true(5 * got.error < 0.012 * expected);
                assert_true(fabs(got.mean / expected - 1) < 0.02);
                const lac_guarantee g =
                    lac_compressor_guarantee(c, (lac_shape){VALUES, 1});
                assert_int_equal(g.unbiased, unbiased);
                assert_true(fabs(g.error / expected - 1.01) < 1e-9);
                lac_compressor_close(c);
            }
        }
    }
}

// Blocks of 64 are few values for a law of many. A value of a rotated block is
// at most the length of the block, 8 standard deviations, so that its tails are
// shorter than those of normal deviates: errors are 2 to 7 % below the law, 10
// % for few equal values, and not above what is guaranteed. Single errors have
// a standard deviation of less than their mean, so that 80000 blocks have a
// standard error of at most 0.36 %, and 5 of them are less than 2 %.
static void small_blocks_are_within_the_guarantee(void **state)
{
    (void)state;
    static float x[VALUES];
    static const char *const specs[] = {
        "rotated:1,block=64", "rotated:2,block=64", "rotated:3,block=64",
        "rotated:4,block=64"};
    for (input kind = NORMAL; kind < INPUTS; kind++) {
        const lac_key data = {kind, 8, LAC_SCOPE_SHARED};
        for (uint32_t i = 0; i < VALUES; i++) {
            x[i] = input_value(kind, 64, &data, i);
        }
        for (unsigned bits = 1; bits <= 4; bits += 3) {
            lac_compressor *const c =
                opened(specs[bits - 1], LAC_FORM_CONTRACTIVE, VALUES);
            const law_stats got = measure(c, x, 64);
            const double part = got.mean / law[bits - 1];
            print_message(
                "input %u, %u bits: %.4f of the law, spread %.5f\n", kind, bits,
                part, got.error / law[bits - 1]);
            assert_true(5 * got.error < 0.02 * law[bits - 1]);
            assert_true(part > 0.9 - 0.02 && part < 1.01 + 0.02);
            lac_compressor_close(c);
        }
    }
}

// What dithering to 7 levels of the largest of each bucket of 512 values loses
// in the mean: f (1 - f) of a squared level, for a value f of a level above
// another one.
static double dithering_loss(const float *x, size_t n)
{
    enum { BUCKET = 512, LEVELS = 7 };
    double lost = 0;
    for (size_t at = 0; at < n; at += BUCKET) {
        double most = 0;
        for (size_t i = at; i < at + BUCKET; i++) {
            most = fmax(most, fabs((double)x[i]));
        }
        for (size_t i = at; i < at + BUCKET; i++) {
            const double level = LEVELS * fabs((double)x[i]) / most;
            const double part = level - floor(level);
            lost += part * (1 - part) * pow(most / LEVELS, 2);
        }
    }
    return lost / square(x, n);
}

// 4 bits of both, unbiased. Normal: the largest of 512 has a mean square of
// 10, and f (1 - f) is 1/6 in the mean: an error of 10 / 49 / 6 = 0.034, 3.5
// times that of rotated. Laplace: (log 512 + 0.58)^2 + 1.6 = 48, of a variance
// of 2: 0.083. Student-3: the largest of a bucket is larger still. That of
// rotated is always the same.
//
// A million squared errors have a relative standard deviation far below 2 %,
// also where a few buckets have most of them.
static void dithering_loses_more_the_longer_the_tails(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    static const double times[] = {3, 7, 15};
    static float x[VALUES], y[VALUES];
    static uint8_t payload[N];
    const lac_shape shape = {N, 1};
    const lac_key key = key_of(4, lac_scope_shared());
    const double own = law[3] / (1 - law[3]);
    for (input kind = NORMAL; kind <= STUDENT; kind++) {
        const lac_key data = {kind, 9, LAC_SCOPE_SHARED};
        size_t len = 0;
        for (uint32_t i = 0; i < N; i++) {
            x[i] = input_value(kind, BLOCK, &data, i);
        }
        lac_compressor *const c =
            opened("dithering:7,norm=inf,bucket=512", LAC_FORM_UNBIASED, N);
        assert_ok(lac_compressor_encode(
            c, &key, shape, x, payload, sizeof(payload), &len));
        assert_ok(lac_compressor_decode(c, &key, shape, payload, len, y));
        assert_true(len > N / 2 && len < N / 2 + 4 * N / 512 + 16);
        for (size_t i = 0; i < N; i++) {
            y[i] -= x[i];
        }
        const double found = square(y, N) / square(x, N);
        print_message(
            "input %u: %.4f of %.4f\n", kind, found, dithering_loss(x, N));
        assert_true(fabs(found / dithering_loss(x, N) - 1) < 0.02);
        assert_true(found > times[kind] * own);
        lac_compressor_close(c);
    }
}

// |mean of C(x) - x| / |x| over DRAWS rotations of one block of 64.
static double bias_of(lac_compressor *c, const float *x, uint64_t draws)
{
    enum { N = 64 };
    double sum[N] = {0}, bias = 0;
    for (uint64_t k = 0; k < draws; k++) {
        const lac_key key = key_of(k, lac_scope_shared());
        float y[N];
        (void)compress(c, &key, x, N, y);
        for (size_t i = 0; i < N; i++) {
            sum[i] += (double)y[i] - (double)x[i];
        }
    }
    for (size_t i = 0; i < N; i++) {
        bias += sum[i] * sum[i];
    }
    return sqrt(bias / square(x, N)) / (double)draws;
}

// With no bias, the square of the mean error is omega / DRAWS of |x|^2, with a
// standard deviation of sqrt(2 / 64) of itself: less than twice that. The
// square of a bias of 0.2 % adds 14 %. One round instead of two would be off by
// 50 % of (2, 1, 0, ...); without unequal stages, the tower by 8 %.
static void one_bit_is_unbiased(void **state)
{
    (void)state;
    const uint64_t draws = 20000;
    const double most = sqrt(2.2 * law[0] / (1 - law[0]) / (double)draws);
    lac_compressor *const c = opened("rotated:1", LAC_FORM_UNBIASED, 64);
    float pair[64] = {2, 1}, tower[64];
    fill_normal(tower, 64, 5);
    for (size_t i = 0; i < 64; i++) {
        tower[i] *= i == 33 ? 0 : 0.01f;
    }
    tower[33] = 100;
    assert_true(bias_of(c, pair, draws) < most);
    assert_true(bias_of(c, tower, draws) < most);
    lac_compressor_close(c);
}

// 1024, 512 and 64 values are rotated, 37 are not.
static void the_last_values_are_sent_unchanged(void **state)
{
    (void)state;
    const size_t n = 1024 + 512 + 64 + 37;
    const lac_key key = key_of(1, lac_scope_shared());
    float x[SMALL], y[SMALL];
    fill_normal(x, n, 1);
    for (unsigned bits = 1; bits <= 4; bits++) {
        lac_compressor *const c = opened_bits(bits, LAC_FORM_PLAIN, n);
        const size_t len = compress(c, &key, x, n, y);
        assert_int_equal(len, 3 * 4 + bits * 1600 / 8 + 4 * 37);
        assert_memory_equal(x + 1600, y + 1600, 37 * sizeof(*x));
        for (size_t i = 0; i < 1600; i++) {
            assert_true(x[i] != y[i]);
        }
        lac_compressor_close(c);
    }
}

static void few_values_are_sent_unchanged_without_a_seed(void **state)
{
    (void)state;
    const lac_key key = key_of(1, lac_scope_worker(2));
    lac_compressor *const c = opened("rotated:1", LAC_FORM_CONTRACTIVE, 64);
    float x[64], y[64];
    fill_normal(x, 64, 2);
    for (size_t n = 1; n < 64; n++) {
        const lac_guarantee g = lac_compressor_guarantee(c, (lac_shape){n, 1});
        assert_true(g.unbiased && g.error == 0);
        assert_int_equal(compress(c, &key, x, n, y), 4 * n);
        assert_memory_equal(x, y, n * sizeof(*x));
    }
    assert_int_equal(compress(c, &key, x, 64, y), 8 + 4 + 8);
    lac_compressor_close(c);
}

// Blocks do not affect one another.
static void blocks_of_zeros_and_of_nan_stay_what_they_are(void **state)
{
    (void)state;
    const lac_key key = key_of(2, lac_scope_shared());
    for (lac_form form = LAC_FORM_PLAIN; form <= LAC_FORM_CONTRACTIVE; form++) {
        lac_compressor *const c = opened("rotated:4,block=128", form, 512);
        float x[512], y[512];
        fill_normal(x, 512, 3);
        for (size_t i = 128; i < 256; i++) {
            x[i] = i % 2 == 0 ? 0.0f : -0.0f;
        }
        x[300] = NAN;
        x[400] = 0;
        (void)compress(c, &key, x, 512, y);
        for (size_t i = 0; i < 512; i++) {
            const size_t block = i / 128;
            assert_true(block != 1 || y[i] == 0);
            assert_int_equal(isnan(y[i]) != 0, block == 2);
        }
        assert_true(fabsf(x[7] - y[7]) < 0.5f);
        x[300] = INFINITY;
        (void)compress(c, &key, x, 512, y);
        assert_true(isnan(y[256]) && isfinite(y[255]));
        lac_compressor_close(c);
    }
}

// From the smallest float to where the length of a block is beyond the largest:
// a power of two changes the scale alone, where it is a normal number.
static void huge_and_tiny_values_have_the_same_codes(void **state)
{
    (void)state;
    static const float powers[] = {0x1p-110f, 0x1p-70f, 0x1p-50f,
                                   0x1p90f,   0x1p110f, 0x1p121f};
    const lac_key key = key_of(4, lac_scope_shared());
    lac_compressor *const c = opened("rotated", LAC_FORM_CONTRACTIVE, BLOCK);
    float x[BLOCK], y[BLOCK], expected[BLOCK];
    fill_normal(x, BLOCK, 4);
    (void)compress(c, &key, x, BLOCK, expected);
    for (size_t k = 0; k < sizeof(powers) / sizeof(*powers); k++) {
        float scaled[BLOCK];
        for (size_t i = 0; i < BLOCK; i++) {
            scaled[i] = x[i] * powers[k];
        }
        (void)compress(c, &key, scaled, BLOCK, y);
        for (size_t i = 0; i < BLOCK; i++) {
            // Of a lower power, sums may be subnormal.
            const double error =
                (double)y[i] / (double)powers[k] - (double)expected[i];
            assert_true(fabs(error) < 1e-6);
        }
    }
    for (size_t i = 0; i < BLOCK; i++) {
        x[i] = i % 3 == 0 ? 0x1p-149f : 0;
    }
    (void)compress(c, &key, x, BLOCK, y);
    assert_true(isfinite(y[0]) && fabsf(y[0]) < 0x1p-140f);
    lac_compressor_close(c);
}

static void a_seed_of_8_bytes_is_sent_to_who_cannot_derive_it(void **state)
{
    (void)state;
    const lac_shape shape = {256, 1};
    const lac_key own = key_of(5, lac_scope_worker(1));
    const lac_key other = key_of(6, lac_scope_worker(2));
    const lac_key shared = {own.low, own.high, LAC_SCOPE_SHARED};
    lac_compressor *const c = opened("rotated", LAC_FORM_PLAIN, 256);
    uint8_t sent[CAP], derived[CAP];
    float x[256], y[256], z[256];
    size_t len = 0, shorter = 0;
    fill_normal(x, 256, 5);
    assert_ok(lac_compressor_encode(c, &own, shape, x, sent, CAP, &len));
    assert_ok(
        lac_compressor_encode(c, &shared, shape, x, derived, CAP, &shorter));
    assert_int_equal(len, shorter + 8);
    assert_memory_equal(sent + 8, derived, shorter);
    assert_ok(lac_compressor_decode(c, &other, shape, sent, len, y));
    assert_ok(lac_compressor_decode(c, &shared, shape, derived, shorter, z));
    assert_memory_equal(y, z, sizeof(y));
    sent[3] ^= 1;
    assert_ok(lac_compressor_decode(c, &other, shape, sent, len, y));
    assert_memory_not_equal(y, z, sizeof(y));
    assert_fails(
        lac_compressor_check(c, &own, shape, sent, 7), LAC_ERR_CORRUPT,
        "rotated: payload has 7 bytes, expected at least the 8 of its seed");
    lac_compressor_close(c);
}

static void malformed_payloads_are_refused(void **state)
{
    (void)state;
    const lac_shape shape = {192, 1};
    const lac_key key = key_of(7, lac_scope_shared());
    lac_compressor *const c = opened("rotated:3", LAC_FORM_PLAIN, 192);
    uint8_t payload[CAP];
    float x[192];
    size_t len = 0;
    fill_normal(x, 192, 6);
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
    assert_int_equal(len, 8 + 72);
    assert_fails(
        lac_compressor_check(c, &key, shape, payload, len - 1), LAC_ERR_CORRUPT,
        "rotated: payload has 79 bytes, expected 80");
    static const float bad[] = {-1, -0.0f, INFINITY, -INFINITY, -NAN};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        laci_put_f32(payload + 4, bad[i]);
        assert_status(
            lac_compressor_check(c, &key, shape, payload, len),
            LAC_ERR_CORRUPT);
    }
    laci_put_f32(payload + 4, -1);
    assert_fails(
        lac_compressor_check(c, &key, shape, payload, len), LAC_ERR_CORRUPT,
        "rotated: the scale of block 1 is -1, expected a finite number from 0 "
        "up, or nan");
    laci_put_f32(payload + 4, 0);
    assert_ok(lac_compressor_check(c, &key, shape, payload, len));
    lac_compressor_close(c);
}

// The scale of a block may be so large that its values overflow, or the last
// values may not be finite.
static void values_that_are_not_finite_are_found(void **state)
{
    (void)state;
    const lac_shape shape = {192 + 3, 1};
    const lac_key key = key_of(8, lac_scope_shared());
    lac_compressor *const c = opened("rotated", LAC_FORM_PLAIN, 195);
    const lac_call call = laci_call_make(c, &key, shape);
    static const float scales[] = {1, 1e36f, 1e37f, FLT_MAX / 8, FLT_MAX, NAN};
    uint8_t payload[CAP];
    float x[195], y[195];
    size_t len = 0;
    bool seen[2] = {false, false};
    fill_normal(x, 195, 8);
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
    for (size_t k = 0; k < sizeof(scales) / sizeof(*scales); k++) {
        bool finite = true;
        laci_put_f32(payload + 4, scales[k]);
        assert_ok(lac_compressor_decode(c, &key, shape, payload, len, y));
        for (size_t i = 0; i < 195; i++) {
            finite = finite && isfinite(y[i]);
        }
        assert_int_equal(laci_payload_finite(c, &call, payload, len), finite);
        seen[finite] = true;
    }
    assert_true(seen[0] && seen[1]);
    laci_put_f32(payload + 4, 1);
    laci_put_f32(payload + len - 4, INFINITY);
    assert_false(laci_payload_finite(c, &call, payload, len));
    lac_compressor_close(c);
}

// These bytes may never change.
static void payload_is_always_the_same(void **state)
{
    (void)state;
    const uint8_t expected[] = {
        0x8f, 0x21, 0x8d, 0xd7, 0x97, 0x04, 0x76, 0x3a, 0xef, 0x5b, 0x8c, 0x3f,
        0x09, 0xda, 0x99, 0x3f, 0x20, 0xba, 0xb9, 0x93, 0xd0, 0x59, 0x32, 0xaa,
        0x2a, 0x82, 0xd9, 0x19, 0x82, 0x3c, 0x02, 0xd9, 0x66, 0x8e, 0x21, 0x85,
        0x82, 0x5c, 0xf2, 0xf8, 0xab, 0x6a, 0x29, 0xed, 0x2a, 0x2a, 0x20, 0x4a,
        0x48, 0x24, 0x26, 0x14, 0xfc, 0x7e, 0x5b, 0x7a, 0xc0, 0xbd, 0x24, 0xa0,
        0x8e, 0x09, 0xae, 0x0e, 0x42, 0x00, 0x84, 0x3f};
    const lac_shape shape = {128 + 64 + 1, 1};
    const lac_key key = {1, 2, LAC_SCOPE_WORKER};
    float x[193];
    uint8_t payload[CAP];
    size_t len;
    for (uint32_t i = 0; i < 193; i++) {
        x[i] = lac_key_normal(&key, 1000 + i);
    }
    lac_compressor *const c = opened("rotated:2", LAC_FORM_PLAIN, 193);
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
    assert_int_equal(len, sizeof(expected));
    assert_memory_equal(payload, expected, sizeof(expected));
    lac_compressor_close(c);
}

static void a_block_is_a_power_of_two(void **state)
{
    (void)state;
    lac_compressor *c;
    assert_fails(
        lac_compressor_open(&c, "rotated:block=96", LAC_FORM_PLAIN),
        LAC_ERR_INVALID, "rotated: block is 96, expected a power of two");
    assert_status(
        lac_compressor_open(&c, "rotated:block=32", LAC_FORM_PLAIN),
        LAC_ERR_INVALID);
    assert_status(
        lac_compressor_open(&c, "rotated:bits=5", LAC_FORM_PLAIN),
        LAC_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_error_is_that_of_normal_deviates),
        cmocka_unit_test(small_blocks_are_within_the_guarantee),
        cmocka_unit_test(dithering_loses_more_the_longer_the_tails),
        cmocka_unit_test(one_bit_is_unbiased),
        cmocka_unit_test(the_last_values_are_sent_unchanged),
        cmocka_unit_test(few_values_are_sent_unchanged_without_a_seed),
        cmocka_unit_test(blocks_of_zeros_and_of_nan_stay_what_they_are),
        cmocka_unit_test(huge_and_tiny_values_have_the_same_codes),
        cmocka_unit_test(a_seed_of_8_bytes_is_sent_to_who_cannot_derive_it),
        cmocka_unit_test(malformed_payloads_are_refused),
        cmocka_unit_test(values_that_are_not_finite_are_found),
        cmocka_unit_test(payload_is_always_the_same),
        cmocka_unit_test(a_block_is_a_power_of_two),
    };
    return cmocka_run_group_tests_name("rotated", tests, NULL, NULL);
}
