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

typedef enum tail { NORMAL, LAPLACE } tail;

// Exactly normal, unlike those of fill_normal, whose tails end; or Laplace.
static void fill_tailed(tail kind, float *x, size_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const double u =
            ((double)lac_key_draw(&any_key, 2 * i) + 0.5) * 0x1p-32;
        const double v = (double)lac_key_draw(&any_key, 2 * i + 1) * 0x1p-32;
        const double normal = sqrt(-2 * log(u)) * cos(2 * acos(-1) * v);
        const double laplace = v < 0.5 ? log(u) : -log(u);
        x[i] = (float)(kind == NORMAL ? normal : laplace);
    }
}

// The entropy of codes in bits.
static double entropy_of(const uint8_t *codes, size_t n)
{
    double counts[4] = {0}, bits = 0;
    for (size_t i = 0; i < n; i++) {
        counts[codes[i / 4] >> 2 * (i % 4) & 3]++;
    }
    for (int k = 0; k < 4; k++) {
        const double part = counts[k] / (double)n;
        bits -= part > 0 ? part * log2(part) : 0;
    }
    print_message(
        "%.0f %.0f %.0f %.0f: %.4f bits\n", counts[0], counts[1], counts[2],
        counts[3], bits);
    return bits;
}

// The 64 largest of 4096 values are beyond t, where 1/64 of them are, on both
// sides, with a tail that is exponential or shorter. Two of the four bins have
// nearly all of them: bin 2 ends at 3/4 of their root mean square r, and bin 0
// at -9/4 of it. The error is that of signs times their mean magnitude.
//
// Normal: t = 2.418 and r = 2.8, so that the other bins have none; the error is
// 0.0116 of |v|^2. Laplace: t = log 64 = 4.16, and t + 1 is the mean of an
// exponential tail, with the variance 1: the error is 1 / (1 + (t + 1)^2) =
// 0.0362, and r = 5.25. The least of a chunk has a standard deviation of 1/8
// around t, so that 0.12 values a chunk, 8 of all, are below 3/4 r, and
// e^-(9/4 r - t) / 2, 1 of all, are below -9/4 r: fewer than 40 together, a
// part p of K, which takes less than p log2(e / p) = 0.08 bits of entropy.
//
// The mean square of K deviations of an exponential tail has a relative
// standard deviation of sqrt(8 / K), 4.4 %: five of them are less than a
// quarter. That of two-bit lacks the p of the values that are far out or near.
static void the_largest_of_chunks_are_in_two_bins(void **state)
{
    (void)state;
    static const double lost[] = {0.0116, 0.0362};
    static float x[VALUES], v[VALUES], two[VALUES], sign[VALUES];
    for (tail kind = NORMAL; kind <= LAPLACE; kind++) {
        size_t kept = 0;
        fill_tailed(kind, x, VALUES);
        (void)compress("top-k:0.015625,chunk=4096", x, VALUES, v);
        (void)compress("top-k:0.015625,chunk=4096+sign", x, VALUES, sign);
        const size_t len =
            compress("top-k:0.015625,chunk=4096+two-bit", x, VALUES, two);
        assert_true(fabs(entropy_of(payload + len - K / 4, K) - 1) < 0.08);
        double errors[2] = {0};
        for (size_t i = 0; i < VALUES; i++) {
            errors[0] += pow((double)v[i] - (double)two[i], 2);
            errors[1] += pow((double)v[i] - (double)sign[i], 2);
            kept += v[i] != 0;
        }
        assert_int_equal(kept, K);
        const double norm = sum_of(v, v, VALUES);
        print_message("%.5f %.5f\n", errors[0] / norm, errors[1] / norm);
        assert_true(fabs(errors[1] / norm / lost[kind] - 1) < 0.25);
        assert_true(fabs(errors[0] / errors[1] - 1) < 0.25);
        assert_true(kind == LAPLACE || fabs(errors[0] / errors[1] - 1) < 0.02);
    }
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
        cmocka_unit_test(the_largest_of_chunks_are_in_two_bins),
        cmocka_unit_test(few_and_equal_values),
        cmocka_unit_test(the_largest_floats_stay_finite),
        cmocka_unit_test(malformed_payloads_are_refused),
    };
    return cmocka_run_group_tests_name("two_bit", tests, NULL, NULL);
}
