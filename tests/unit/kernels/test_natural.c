// SPDX-License-Identifier: MIT
// The kernels of natural compression: AVX2 gives the bits of the portable code
// for every size and alignment.
#include "kernels_test.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "kernels/natural.h"

enum {
    SIZE_MAX_TRIED = 300,
    ALIGNMENTS = 32,
    ROOM = SIZE_MAX_TRIED + ALIGNMENTS,
    GUARD = 0xa5,
};

static const laci_stream stream = {{0x12345678, 0x9abcdef0, 7, 0xffffffff}};

static const laci_natural_kernels *fast(void)
{
    return fast_or_skip()->natural;
}

typedef enum kind {
    ORDINARY,
    ANY_BITS,
    HUGE,
    AROUND_THE_WINDOW,
    MANY_ZEROS,
    KINDS,
} kind;

static float make_value(kind what, uint32_t i)
{
    const lac_key key =
        lac_key_make(what, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    const uint32_t draw = lac_key_draw(&key, i);
    const uint32_t sign = draw & 0x80000000;
    switch (what) {
    case ORDINARY:
        return lac_key_normal(&key, i);
    case ANY_BITS:
        return laci_float_of(draw);
    case HUGE: // fields 252 to 255
        return laci_float_of(draw | 0x7e000000);
    case AROUND_THE_WINDOW: // fields 0 to 31
        return laci_float_of(sign | (draw & 0x0fffffff));
    default:
        return draw % 3 == 0 ? lac_key_normal(&key, i) : laci_float_of(sign);
    }
}

static float values_of[KINDS][ROOM];

static int make_values(void **state)
{
    (void)state;
    for (int what = 0; what < KINDS; what++) {
        for (uint32_t i = 0; i < ROOM; i++) {
            values_of[what][i] = make_value((kind)what, i);
        }
    }
    return 0;
}

// Puts `count` values of a kind at x.
static void fill(kind what, float *x, size_t count)
{
    memcpy(x, values_of[what], count * sizeof(*x));
}

// Tries every size with every alignment of floats and bytes.
typedef void trial(
    const laci_natural_kernels *kernels, kind what, size_t n, size_t shift);

static void try_all(trial *each)
{
    const laci_natural_kernels *const kernels = fast();
    for (int what = 0; what < KINDS; what++) {
        for (size_t n = 0; n <= SIZE_MAX_TRIED; n++) {
            for (size_t shift = 0; shift < ALIGNMENTS; shift++) {
                each(kernels, (kind)what, n, shift);
            }
        }
    }
}

static void try_nine_bits(
    const laci_natural_kernels *kernels, kind what, size_t n, size_t shift)
{
    static float x[ROOM];
    uint8_t bytes[2][2 * ROOM];
    float values[2][ROOM];
    const laci_natural_kernels *const both[2] = {
        &laci_natural_portable, kernels};
    fill(what, x + shift % 8, n);
    memset(bytes, GUARD, sizeof(bytes));
    for (size_t k = 0; k < 2; k++) {
        uint8_t *const exponents = bytes[k] + shift;
        uint8_t *const signs = exponents + n;
        float *const y = values[k] + shift % 8;
        both[k]->encode(&stream, 5, x + shift % 8, n, exponents, signs);
        fill(ORDINARY, values[k], ROOM);
        both[k]->decode(exponents, signs, y, n);
        both[k]->decode_add(exponents, signs, -0.3f, y, n);
    }
    assert_memory_equal(bytes[0], bytes[1], sizeof(bytes[0]));
    assert_memory_equal(values[0], values[1], sizeof(values[0]));
}

static void nine_bits_are_equal_bit_for_bit(void **state)
{
    (void)state;
    try_all(try_nine_bits);
}

// The top that an encoder would choose is at least the field of every value.
static uint32_t top_of(const float *x, size_t n)
{
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = laci_bits_of(x[i]) & 0x7fffffff;
        const uint32_t field = (magnitude + 0x7fffff) >> 23;
        top = field > top ? field : top;
    }
    return top > 255 ? 255 : top;
}

static void try_window(
    const laci_natural_kernels *kernels, kind what, size_t n, size_t shift)
{
    static float x[ROOM];
    uint8_t bytes[2][ROOM];
    float values[2][ROOM];
    const laci_natural_kernels *const both[2] = {
        &laci_natural_portable, kernels};
    fill(what, x + shift % 8, n);
    uint32_t top = top_of(x + shift % 8, n);
    if (what == AROUND_THE_WINDOW && shift % 2 == 0) {
        top = 127 + (uint32_t)n % 32; // the window's end is among the values
    }
    memset(bytes, GUARD, sizeof(bytes));
    for (size_t k = 0; k < 2; k++) {
        uint8_t *const codes = bytes[k] + shift;
        float *const y = values[k] + shift % 8;
        both[k]->encode_window(&stream, 5, top, x + shift % 8, n, codes);
        fill(ORDINARY, values[k], ROOM);
        both[k]->decode_window(top, codes, y, n);
        both[k]->decode_window_add(top, codes, -0.3f, y, n);
    }
    assert_memory_equal(bytes[0], bytes[1], sizeof(bytes[0]));
    assert_memory_equal(values[0], values[1], sizeof(values[0]));
    assert_int_equal(
        both[0]->least_code(bytes[0] + shift, n),
        both[1]->least_code(bytes[0] + shift, n));
}

static void windows_are_equal_bit_for_bit(void **state)
{
    (void)state;
    try_all(try_window);
}

static void the_least_code_leaves_out_zeros_and_signs(void **state)
{
    (void)state;
    uint8_t codes[100] = {0};
    codes[3] = 0x80;
    assert_int_equal(laci_natural_portable.least_code(codes, 100), 255);
    codes[40] = 0x7f;
    assert_int_equal(laci_natural_portable.least_code(codes, 100), 127);
    codes[70] = 0x85;
    assert_int_equal(laci_natural_portable.least_code(codes, 100), 5);
    assert_int_equal(fast()->least_code(codes, 100), 5);
}

// What is below a window rounds up with probability |x| / level exactly: here
// level = 2^-100 (field 27, so top = 153) and |x| = level * 5 / 16, for a
// number of draws whose standard deviation is sqrt(5/16 * 11/16 / 2^16).
static void values_below_a_window_keep_their_mean(void **state)
{
    (void)state;
    enum { DRAWS = 1 << 16 };
    const float x = 0x5p-104f;
    size_t ups = 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint8_t code;
        laci_natural_portable.encode_window(&stream, i, 153, &x, 1, &code);
        assert_true(code <= 1);
        ups += code;
    }
    const double deviation = sqrt(5.0 / 16 * 11 / 16 / DRAWS);
    assert_true(fabs((double)ups / DRAWS - 5.0 / 16) < 4 * deviation);
}

// The words of this stream make draw 0 all zeros, with which every value that
// is not zero rounds up unless it is below level * 2^-32; then the next 32
// bits decide, which are not zeros.
static void values_far_below_a_window_use_more_bits(void **state)
{
    (void)state;
    const laci_stream zeros = {{0, 0, 0x80000000, 0x80010000}};
    assert_int_equal(laci_draw(&zeros, 0), 0);
    const float x[3] = {0x1p-131f, 0x1p-140f, 0x1p-149f};
    uint8_t codes[3];
    for (size_t i = 0; i < 3; i++) {
        laci_natural_portable.encode_window(
            &zeros, 0, 153, x + i, 1, codes + i);
    }
    assert_int_equal(codes[0], 1);
    assert_int_equal(codes[1], 0);
    assert_int_equal(codes[2], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nine_bits_are_equal_bit_for_bit),
        cmocka_unit_test(windows_are_equal_bit_for_bit),
        cmocka_unit_test(the_least_code_leaves_out_zeros_and_signs),
        cmocka_unit_test(values_below_a_window_keep_their_mean),
        cmocka_unit_test(values_far_below_a_window_use_more_bits),
    };
    return cmocka_run_group_tests_name(
        "kernels.natural", tests, make_values, NULL);
}
