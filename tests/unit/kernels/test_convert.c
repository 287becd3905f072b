// SPDX-License-Identifier: MIT
// Conversions to 16 bits: the portable code against arithmetic in double, and
// AVX2 against the portable code.
#include "kernels_test.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "kernels/convert.h"

enum {
    SIZE_MAX_TRIED = 300,
    ALIGNMENTS = 32,
    ROOM = 340,
    HALVES = 65536,
    KINDS = 5,
};

static const laci_convert_kernels *fast(void)
{
    return fast_or_skip()->convert;
}

static float from_half(uint32_t half)
{
    const uint8_t bytes[2] = {(uint8_t)half, (uint8_t)(half >> 8)};
    float x;
    laci_convert_portable.half.decode(bytes, &x, 1);
    return x;
}

static uint32_t to_half(float x)
{
    uint8_t bytes[2];
    laci_convert_portable.half.encode(&x, bytes, 1);
    return bytes[0] | (uint32_t)bytes[1] << 8;
}

static uint32_t to_bfloat16(float x)
{
    uint8_t bytes[2];
    laci_convert_portable.bfloat16.encode(&x, bytes, 1);
    return bytes[0] | (uint32_t)bytes[1] << 8;
}

static void every_half_has_the_value_of_the_standard(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x7c00; half++) {
        const int field = (int)(half >> 10);
        const double mantissa = half & 0x3ff;
        const double value = field == 0 ? ldexp(mantissa, -24)
                                        : ldexp(1024 + mantissa, field - 25);
        assert_true((double)from_half(half) == value);
        assert_true((double)from_half(half | 0x8000) == -value);
    }
}

static void every_half_survives_but_signalling_nans(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < HALVES; half++) {
        const int nan = (half & 0x7fff) > 0x7c00;
        assert_int_equal(to_half(from_half(half)), nan ? half | 0x200 : half);
    }
}

// Between two neighbours lie exactly the tie and the floats on its two sides.
static void halves_round_to_nearest_ties_to_even(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x7bff; half++) {
        const float low = from_half(half);
        const float high = from_half(half + 1);
        const float tie = (low + high) / 2;
        assert_int_equal(to_half(tie), half + half % 2);
        assert_int_equal(to_half(nextafterf(tie, 0)), half);
        assert_int_equal(to_half(nextafterf(tie, INFINITY)), half + 1);
    }
}

static void bfloat16_rounds_to_nearest_ties_to_even(void **state)
{
    (void)state;
    for (uint32_t upper = 0; upper < 0x7f7f; upper++) {
        const uint32_t tie = upper << 16 | 0x8000;
        assert_int_equal(to_bfloat16(laci_float_of(upper << 16)), upper);
        assert_int_equal(to_bfloat16(laci_float_of(tie)), upper + upper % 2);
        assert_int_equal(to_bfloat16(laci_float_of(tie - 1)), upper);
        assert_int_equal(to_bfloat16(laci_float_of(tie + 1)), upper + 1);
    }
}

// Arrays, unlike payloads, have infinities beyond the range, as a cast does.
static void stores_have_infinities_beyond_the_range(void **state)
{
    (void)state;
    const laci_convert_kernels *const sets[] = {
        &laci_convert_portable, laci_kernels_best()->convert};
    for (size_t k = 0; k < 2 * 16; k++) {
        const laci_convert_kernels *const set = sets[k % 2];
        uint16_t out[16];
        float x[16] = {0};
        x[k / 2] = 65519.996f; // the last that rounds to 65504
        set->half.store(x, out, 16);
        assert_int_equal(out[k / 2], 0x7bff);
        x[k / 2] = -65520;
        set->half.store(x, out, 16);
        assert_int_equal(out[k / 2], 0xfc00);
        x[k / 2] = laci_float_of(0x7f7f7fff);
        set->bfloat16.store(x, out, 16);
        assert_int_equal(out[k / 2], 0x7f7f);
        x[k / 2] = laci_float_of(0xff7f8000);
        set->bfloat16.store(x, out, 16);
        assert_int_equal(out[k / 2], 0xff80);
        x[k / 2] = INFINITY;
        set->bfloat16.store(x, out, 16);
        assert_int_equal(out[k / 2], 0x7f80);
        x[k / 2] = laci_float_of(0xff800001);
        set->bfloat16.store(x, out, 16);
        assert_int_equal(out[k / 2], 0xffc0);
        set->half.store(x, out, 16);
        assert_int_equal(out[k / 2], 0xfe00);
    }
}

static void doubles_round_to_nearest_ties_to_even(void **state)
{
    (void)state;
    static const double in[] = {1 + 0x1p-24,    1 + 0x1.8p-23, 1 + 0x1.01p-24,
                                0x1.ffffffp127, 0x1p128,       -1e300,
                                0x1p-149,       0x1p-150,      -0x1.8p-150};
    static const float expected[] = {
        1, 1 + 0x1p-22f, 1 + 0x1p-23f, INFINITY, INFINITY, -INFINITY, 0x1p-149f,
        0, -0x1p-149f};
    enum { COUNT = sizeof(in) / sizeof(in[0]) };
    float x[COUNT];
    double out[COUNT];
    laci_load_doubles(in, x, COUNT);
    assert_memory_equal(x, expected, sizeof(x));
    laci_store_doubles(x, out, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(out[i] == (double)expected[i]);
    }
}

static float make_value(size_t what, uint32_t i)
{
    static const uint32_t special[] = {
        0,          0x80000000, 1,          0x807fffff, 0x7f7fffff, 0xff7fffff,
        0x7f800000, 0xff800000, 0x7fc00000, 0xff812345, 0x477fe000, 0x477fefff,
        0x477ff000, 0xc7800000, 0x33000000, 0x33000001, 0x7f7f7fff, 0x7f7f8000,
    };
    const lac_key key =
        lac_key_make(what, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    const uint32_t draw = lac_key_draw(&key, i);
    switch (what) {
    case 0:
        return lac_key_normal(&key, i);
    case 1:
        return laci_float_of(draw);
    case 2: // 2^-30 to 2^34: all of a half's range and its borders
        return laci_float_of((draw & 0x9fffffff) + 0x30800000);
    case 3: // finite, around the largest bfloat16
        return draw % 7 == 0 ? laci_float_of((draw & 0x8000ffff) | 0x7f7f0000)
                             : 1.0f;
    default:
        return laci_float_of(
            special[draw % (sizeof(special) / sizeof(special[0]))]);
    }
}

static float values_of[KINDS][ROOM];

static int make_values(void **state)
{
    (void)state;
    for (size_t what = 0; what < KINDS; what++) {
        for (uint32_t i = 0; i < ROOM; i++) {
            values_of[what][i] = make_value(what, i);
        }
    }
    return 0;
}

static void fill(size_t what, float *x, size_t n)
{
    memcpy(x, values_of[what], n * sizeof(*x));
}

static void try_one(
    const laci_convert_kernels *kernels, size_t what, size_t n, size_t shift)
{
    const laci_convert_kernels *const both[2] = {
        &laci_convert_portable, kernels};
    float x[ROOM];
    uint8_t bytes[2][2][2 * ROOM];
    float values[2][4][ROOM];
    const size_t at = shift % 8;
    fill(what, x + at, n);
    memset(bytes, 0xa5, sizeof(bytes));
    for (size_t k = 0; k < 2; k++) {
        uint8_t *const half = bytes[k][0] + shift;
        uint8_t *const upper = bytes[k][1] + shift;
        both[k]->half.encode(x + at, half, n);
        both[k]->bfloat16.encode(x + at, upper, n);
        for (size_t j = 0; j < 4; j++) {
            fill(0, values[k][j], ROOM);
        }
        both[k]->half.decode(half, values[k][0] + at, n);
        both[k]->half.decode_add(half, -0.3f, values[k][1] + at, n);
        both[k]->bfloat16.decode(upper, values[k][2] + at, n);
        both[k]->bfloat16.decode_add(upper, -0.3f, values[k][3] + at, n);
    }
    assert_memory_equal(bytes[0], bytes[1], sizeof(bytes[0]));
    assert_memory_equal(values[0], values[1], sizeof(values[0]));
}

// The same for arrays, which are aligned to their values.
static void try_array(
    const laci_convert_kernels *kernels, size_t what, size_t n, size_t shift)
{
    const laci_convert_kernels *const both[2] = {
        &laci_convert_portable, kernels};
    float x[ROOM];
    uint16_t stored[2][2][ROOM];
    float values[2][2][ROOM];
    const size_t at = shift % 8;
    fill(what, x + at, n);
    memset(stored, 0xa5, sizeof(stored));
    memset(values, 0xa5, sizeof(values));
    for (size_t k = 0; k < 2; k++) {
        both[k]->half.store(x + at, stored[k][0] + shift, n);
        both[k]->bfloat16.store(x + at, stored[k][1] + shift, n);
        both[k]->half.load(stored[k][0] + shift, values[k][0] + at, n);
        both[k]->bfloat16.load(stored[k][1] + shift, values[k][1] + at, n);
    }
    assert_memory_equal(stored[0], stored[1], sizeof(stored[0]));
    assert_memory_equal(values[0], values[1], sizeof(values[0]));
}

static void fast_gives_the_same_bits(void **state)
{
    (void)state;
    const laci_convert_kernels *const kernels = fast();
    for (size_t what = 0; what < KINDS; what++) {
        for (size_t n = 0; n <= SIZE_MAX_TRIED; n++) {
            for (size_t shift = 0; shift < ALIGNMENTS; shift++) {
                try_one(kernels, what, n, shift);
                try_array(kernels, what, n, shift);
            }
        }
    }
}

static void fast_decodes_every_pattern_alike(void **state)
{
    (void)state;
    static uint8_t in[2 * HALVES];
    static float x[2][HALVES];
    const laci_convert_kernels *const kernels = fast();
    for (size_t i = 0; i < HALVES; i++) {
        in[2 * i] = (uint8_t)i;
        in[2 * i + 1] = (uint8_t)(i >> 8);
    }
    laci_convert_portable.half.decode(in, x[0], HALVES);
    kernels->half.decode(in, x[1], HALVES);
    assert_memory_equal(x[0], x[1], sizeof(x[0]));
    laci_convert_portable.bfloat16.decode(in, x[0], HALVES);
    kernels->bfloat16.decode(in, x[1], HALVES);
    assert_memory_equal(x[0], x[1], sizeof(x[0]));
}

// Each pattern alone, among values that are finite, at every place of a vector.
static void every_pattern_is_finite_or_not(void **state)
{
    (void)state;
    const laci_kernels *const best = laci_kernels_best();
    const laci_convert_kernels *const sets[] = {
        &laci_convert_portable, best->convert};
    for (size_t i = 0; i < HALVES; i++) {
        uint8_t in[2 * 40] = {0};
        const size_t at = i % 40;
        float half, upper;
        in[2 * at] = (uint8_t)i;
        in[2 * at + 1] = (uint8_t)(i >> 8);
        laci_convert_portable.half.decode(in + 2 * at, &half, 1);
        laci_convert_portable.bfloat16.decode(in + 2 * at, &upper, 1);
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(sets[k]->half.finite(in, 40), isfinite(half) != 0);
            assert_int_equal(
                sets[k]->bfloat16.finite(in, 40), isfinite(upper) != 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_has_the_value_of_the_standard),
        cmocka_unit_test(every_half_survives_but_signalling_nans),
        cmocka_unit_test(halves_round_to_nearest_ties_to_even),
        cmocka_unit_test(bfloat16_rounds_to_nearest_ties_to_even),
        cmocka_unit_test(stores_have_infinities_beyond_the_range),
        cmocka_unit_test(doubles_round_to_nearest_ties_to_even),
        cmocka_unit_test(every_pattern_is_finite_or_not),
        cmocka_unit_test(fast_gives_the_same_bits),
        cmocka_unit_test(fast_decodes_every_pattern_alike),
    };
    return cmocka_run_group_tests_name(
        "kernels.convert", tests, make_values, NULL);
}
