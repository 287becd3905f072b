// SPDX-License-Identifier: MIT
// Two bits a value: its bins, what their means keep, and its payload.
#include "lac_test.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"

enum { CHUNK = 4096, CHUNKS = 64, VALUES = CHUNK * CHUNKS, K = 64 * CHUNKS };

static const lac_key any_key = {1, 2, LAC_SCOPE_WORKER};

static uint8_t payload[VALUES];

// y = C(x). Returns the length of the payload.
static size_t compress(const char *spec, const float *x, size_t n, float *y)
{
    const lac_shape shape = {n, 1};
    lac_compressor *c;
    size_t len = 0;
    assert_ok(lac_compressor_open(&c, spec, LAC_FORM_PLAIN));
    assert_ok(lac_compressor_reserve(c, shape));
    assert_ok(
        lac_compressor_encode(c, &any_key, shape, x, payload, VALUES, &len));
    assert_ok(lac_compressor_decode(c, &any_key, shape, payload, len, y));
    lac_compressor_close(c);
    return len;
}

static double sum_of(const float *x, const float *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * (double)y[i];
    }
    return sum;
}

// Mean 0 and standard deviation 2 (the sum of squares is 36 = 9 * 4), so bins
// are 3 wide: below -4.5, to -1.5, to 1.5, above. The ends belong to bin 2.
static void bins_are_as_documented(void **state)
{
    (void)state;
    const float x[] = {5, 1.5f, -1.5f, -2, -1, -1, -0.5f, -0.5f, 0, 0};
    const float middle = -0.375f;
    const float expected[] = {5,      middle, middle, -2,     middle,
                              middle, middle, middle, middle, middle};
    const uint8_t codes[] = {0x6b, 0xaa, 0x0a};
    float y[10];
    assert_int_equal(compress("two-bit", x, 10, y), 16 + 3);
    assert_memory_equal(y, expected, sizeof(y));
    assert_true(laci_get_f32(payload) == 0); // no value is in bin 0
    assert_true(laci_get_f32(payload + 4) == -2);
    assert_true(laci_get_f32(payload + 8) == -0.375f);
    assert_true(laci_get_f32(payload + 12) == 5);
    assert_memory_equal(payload + 16, codes, 3);
}

// Every bin keeps its sum: the sum of all stays, and the error is orthogonal to
// the result. A mean is rounded once, by 2^-24 of itself, so sums are off by at
// most 2^-24 of the sum of the magnitudes, and squares by twice that.
static void sums_stay_and_errors_are_orthogonal(void **state)
{
    (void)state;
    static float x[VALUES], y[VALUES], ones[VALUES], magnitudes[VALUES];
    for (uint64_t seed = 0; seed < 4; seed++) {
        fill_normal(x, VALUES, seed);
        for (size_t i = 0; i < VALUES; i++) {
            x[i] = powf(x[i], (float)(1 + seed)) + (float)seed;
            ones[i] = 1;
        }
        (void)compress("two-bit", x, VALUES, y);
        double error = 0;
        for (size_t i = 0; i < VALUES; i++) {
            const double d = (double)x[i] - (double)y[i];
            magnitudes[i] = fabsf(y[i]);
            error += d * d;
        }
        const double sum = sum_of(x, ones, VALUES);
        const double size = sum_of(magnitudes, ones, VALUES);
        assert_true(fabs(sum_of(y, ones, VALUES) - sum) < 0x1p-24 * size);
        const double norm = sum_of(x, x, VALUES), kept = sum_of(y, y, VALUES);
        assert_true(fabs(error - (norm - kept)) < 0x1p-22 * norm);
        assert_true(error < norm);
    }
}

// Exactly normal, unlike those of fill_normal, whose tails end.
static void fill_tailed(float *x, size_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const double u =
            ((double)lac_key_draw(&any_key, 2 * i) + 0.5) * 0x1p-32;
        const double v = (double)lac_key_draw(&any_key, 2 * i + 1) * 0x1p-32;
        x[i] = (float)(sqrt(-2 * log(u)) * cos(2 * acos(-1) * v));
    }
}

// The kept values of normal chunks are beyond 2.4 standard deviations on both
// sides, with an exponential tail. Of the four bins they use two, and the error
// is that of signs times their mean magnitude: 0.0116 of |v|^2. The mean square
// of K deviations of an exponential tail has a relative standard deviation of
// sqrt(8 / K), 4.4 %: five of them are less than a quarter.
static void the_largest_of_normal_chunks_are_in_two_bins(void **state)
{
    (void)state;
    static float x[VALUES], v[VALUES], two[VALUES], sign[VALUES];
    size_t kept = 0;
    fill_tailed(x, VALUES);
    (void)compress("top-k:0.015625,chunk=4096", x, VALUES, v);
    (void)compress("top-k:0.015625,chunk=4096+sign", x, VALUES, sign);
    const size_t len =
        compress("top-k:0.015625,chunk=4096+two-bit", x, VALUES, two);
    const uint8_t *const codes = payload + len - K / 4;
    size_t counts[4] = {0};
    for (size_t i = 0; i < K; i++) {
        counts[codes[i / 4] >> 2 * (i % 4) & 3]++;
    }
    print_message(
        "%zu %zu %zu %zu\n", counts[0], counts[1], counts[2], counts[3]);
    assert_int_equal(counts[1] + counts[3], K);
    double errors[2] = {0};
    for (size_t i = 0; i < VALUES; i++) {
        errors[0] += pow((double)v[i] - (double)two[i], 2);
        errors[1] += pow((double)v[i] - (double)sign[i], 2);
        kept += v[i] != 0;
    }
    assert_int_equal(kept, K);
    const double norm = sum_of(v, v, VALUES);
    print_message("%.5f %.5f\n", errors[0] / norm, errors[1] / norm);
    assert_true(fabs(errors[1] / norm - 0.0116) < 0.0116 / 4);
    assert_true(fabs(errors[0] / errors[1] - 1) < 0.02);
}

// Equal values, one value, and two of which nothing stays.
static void few_and_equal_values(void **state)
{
    (void)state;
    float x[100], y[100];
    for (size_t i = 0; i < 100; i++) {
        x[i] = 0.1f;
    }
    for (size_t n = 1; n <= 100; n++) {
        assert_int_equal(compress("two-bit", x, n, y), 16 + (n + 3) / 4);
        assert_memory_equal(x, y, n * sizeof(*x));
    }
    const float pair[] = {1, -1};
    (void)compress("two-bit", pair, 2, y);
    assert_true(y[0] == 0 && y[1] == 0);
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, "two-bit", LAC_FORM_CONTRACTIVE));
    assert_true(lac_compressor_guarantee(c, (lac_shape){1, 1}).error == 0);
    assert_true(lac_compressor_guarantee(c, (lac_shape){2, 1}).error == 1);
    assert_true(
        lac_compressor_guarantee(c, (lac_shape){10, 1}).error == 1 - 0.0625);
    lac_compressor_close(c);
}

static void the_largest_floats_stay_finite(void **state)
{
    (void)state;
    float x[10] = {FLT_MAX}, y[10];
    for (size_t i = 1; i < 10; i++) {
        x[i] = -FLT_MAX;
    }
    (void)compress("two-bit", x, 10, y);
    assert_memory_equal(x, y, sizeof(x));
}

static void malformed_payloads_are_refused(void **state)
{
    (void)state;
    const lac_shape shape = {10, 1};
    float x[10], y[10];
    lac_compressor *c;
    fill_normal(x, 10, 4);
    const size_t len = compress("two-bit", x, 10, y);
    assert_ok(lac_compressor_open(&c, "two-bit", LAC_FORM_PLAIN));
    assert_ok(lac_compressor_reserve(c, shape));
    payload[len - 1] |= 0x10;
    assert_fails(
        lac_compressor_check(c, &any_key, shape, payload, len), LAC_ERR_CORRUPT,
        "two-bit: codes past the last value are not zero, expected zero");
    payload[len - 1] &= 0x0f;
    laci_put_f32(payload + 8, INFINITY);
    assert_fails(
        lac_compressor_check(c, &any_key, shape, payload, len), LAC_ERR_CORRUPT,
        "two-bit: the mean of bin 2 is inf, expected a finite number");
    laci_put_f32(payload + 8, 1);
    laci_put_f32(payload, NAN);
    laci_put_f32(payload + 4, -0.5f);
    assert_fails(
        lac_compressor_check(c, &any_key, shape, payload, len), LAC_ERR_CORRUPT,
        "two-bit: the mean of bin 1 is -0.5, expected nan, as that of bin 0");
    lac_compressor_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_are_as_documented),
        cmocka_unit_test(sums_stay_and_errors_are_orthogonal),
        cmocka_unit_test(the_largest_of_normal_chunks_are_in_two_bins),
        cmocka_unit_test(few_and_equal_values),
        cmocka_unit_test(the_largest_floats_stay_finite),
        cmocka_unit_test(malformed_payloads_are_refused),
    };
    return cmocka_run_group_tests_name("two_bit", tests, NULL, NULL);
}
