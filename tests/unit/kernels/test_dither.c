// SPDX-License-Identifier: MIT
// The portable kernels against the definition in kernels/dither.h, computed in
// double, and the AVX2 kernels against the portable ones, bit for bit.
#include "kernels_test.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "kernels/dither.h"

enum { N = 300, SHIFTS = 9, ROOM = N + SHIFTS, GUARD = 0xa5 };

typedef struct family {
    const char *name;
    size_t offset;    // in laci_dither_kernels
    size_t code_size; // bytes
    uint32_t levels[8];
} family;

static const family families[] = {
    {"bytes",
     offsetof(laci_dither_kernels, bytes),
     1,
     {1, 2, 4, 7, 31, 100, 126, 127}},
    {"words",
     offsetof(laci_dither_kernels, words),
     4,
     {1, 127, 128, 255, 1000, 32767, 65534, 65535}},
    {"natural",
     offsetof(laci_dither_kernels, natural),
     1,
     {1, 2, 3, 8, 16, 64, 126, 127}},
};

static const uint32_t firsts[] = {0, 1, 7, 8, 15, 16, 23, 4000000000};

enum {
    FAMILIES = sizeof(families) / sizeof(families[0]),
    FIRSTS = sizeof(firsts) / sizeof(firsts[0]),
};

static const laci_dither_codes *codes_of(
    const laci_dither_kernels *kernels, const family *f)
{
    return (const void *)((const char *)kernels + f->offset);
}

static unsigned bits_of(uint32_t levels)
{
    return 1 + (unsigned)ceil(log2((double)levels + 1));
}

static laci_dither dither_of(uint32_t levels, float norm)
{
    return (laci_dither){
        .stream = {{0x12345678, 0x9abcdef0, 0x0fedcba9, 0x87654321}},
        .norm = norm,
        .levels = levels,
        .bits = bits_of(levels),
    };
}

// Values of up to the norm 1.75, of many magnitudes, with zeros, with the norm
// itself and with some that are larger.
static void make_values(float *x, size_t n)
{
    const lac_key key = {.low = 3, .high = 4};
    for (size_t i = 0; i < n; i++) {
        const uint32_t draw = lac_key_draw(&key, (uint32_t)i);
        const float u = (float)(draw >> 8) * 0x1p-24f * 1.75f;
        const float magnitude = i % 3 == 0 ? u : ldexpf(u, -(int)(draw % 20));
        x[i] = draw >> 7 & 1 ? -magnitude : magnitude;
    }
    for (size_t i = 2; i < n; i += 11) {
        x[i] = i % 2 == 0 ? 1.9f : -1.9f;
    }
    x[5] = 1.75f;
    x[17] = -1.75f;
    x[18] = 0;
    x[19] = -0.0f;
    x[20] = 0x1p-149f;
}

static uint32_t defined_uniform(const laci_dither *d, float x, uint32_t i)
{
    const float v = fabsf(x) * ((float)d->levels / d->norm);
    const uint32_t draw = laci_draw(&d->stream, i / 16 * 8 + i % 8);
    const uint32_t noise = i % 16 < 8 ? draw % 65536 : draw / 65536;
    const double level =
        floor((nearbyint((double)v * 65536) + (double)noise) / 65536);
    return (uint32_t)fmin(level, d->levels) |
           (signbit(x) ? UINT32_C(1) << (d->bits - 1) : 0);
}

static uint32_t defined_natural(const laci_dither *d, float x, uint32_t i)
{
    const double u = (double)(laci_draw(&d->stream, i) >> 9) * 0x1p-23;
    const double y = fmin((double)(fabsf(x) / d->norm), 1);
    const double z = ldexp(y, (int)d->levels - 1);
    uint32_t level;
    if (z < 1) {
        level = nearbyint(z * 0x1p23) * 0x1p-23 + u >= 1;
    } else {
        const int exponent = ilogb(z);
        level = (uint32_t)exponent + 1 + (ldexp(z, -exponent) - 1 + u >= 1);
    }
    return level | (signbit(x) ? UINT32_C(1) << (d->bits - 1) : 0);
}

static uint32_t code_at(const family *f, const void *codes, size_t i)
{
    return f->code_size == 1 ? ((const uint8_t *)codes)[i]
                             : ((const uint32_t *)codes)[i];
}

static void portable_codes_are_as_defined(void **state)
{
    (void)state;
    float x[N];
    uint32_t codes[N];
    make_values(x, N);
    for (size_t k = 0; k < FAMILIES * 8; k++) {
        const family *const f = &families[k / 8];
        const laci_dither d = dither_of(f->levels[k % 8], 1.75f);
        codes_of(&laci_dither_portable, f)->encode(&d, x, N, 9, codes);
        for (uint32_t i = 0; i < N; i++) {
            const uint32_t expected = f->name[0] == 'n'
                                          ? defined_natural(&d, x[i], 9 + i)
                                          : defined_uniform(&d, x[i], 9 + i);
            assert_int_equal(code_at(f, codes, i), expected);
        }
    }
}

static void same_encode(
    const family *f, const laci_dither *d, const float *x, size_t n,
    uint32_t first)
{
    const size_t shift = f->code_size == 1 ? n % SHIFTS : 0;
    uint32_t expected[ROOM];
    uint32_t got[ROOM];
    memset(expected, GUARD, sizeof(expected));
    memset(got, GUARD, sizeof(got));
    codes_of(&laci_dither_portable, f)
        ->encode(d, x, n, first, (uint8_t *)expected + shift);
    codes_of(fast_or_skip()->dither, f)
        ->encode(d, x, n, first, (uint8_t *)got + shift);
    assert_memory_equal(got, expected, sizeof(got));
}

// With one level and the norm 1, a value that is half of 2^-16 short of
// 1 - noise is rounded to an even number of 2^-16, which with the noise is 1 or
// just less.
static void fractions_are_rounded_to_16_bits(void **state)
{
    (void)state;
    const laci_dither d = dither_of(1, 1);
    float x[N];
    uint8_t codes[N];
    uint32_t noise[N];
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t draw = laci_draw(&d.stream, i / 16 * 8 + i % 8);
        noise[i] = i % 16 < 8 ? draw % 65536 : draw / 65536;
        x[i] = ((float)(65536 - noise[i]) - 0.5f) * 0x1p-16f;
    }
    laci_dither_portable.bytes.encode(&d, x, N, 0, codes);
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(codes[i], noise[i] % 2 == 0);
    }
    same_encode(&families[0], &d, x, N, 0);
    same_encode(&families[1], &d, x, N, 0);
}

static void portable_values_are_as_defined(void **state)
{
    (void)state;
    for (size_t k = 0; k < FAMILIES * 8; k++) {
        const family *const f = &families[k / 8];
        const laci_dither d = dither_of(f->levels[k % 8], 1.75f);
        for (uint32_t level = 0; level <= d.levels; level++) {
            const uint32_t wide = level | UINT32_C(1) << (d.bits - 1);
            const uint8_t narrow = (uint8_t)wide;
            const void *const code =
                f->code_size == 1 ? (const void *)&narrow : &wide;
            float got;
            codes_of(&laci_dither_portable, f)->decode(&d, code, 1, &got);
            const float power = ldexpf(level > 0, (int)level - (int)d.levels);
            const float expected =
                f->name[0] == 'n' ? -(power * 1.75f)
                                  : -((float)level * (1.75f / (float)d.levels));
            assert_memory_equal(&got, &expected, sizeof(got));
        }
    }
}

static void fast_codes_are_the_portable_ones(void **state)
{
    (void)state;
    float x[ROOM];
    make_values(x, ROOM);
    for (size_t k = 0; k < FAMILIES * 8; k++) {
        const family *const f = &families[k / 8];
        const laci_dither d = dither_of(f->levels[k % 8], 1.75f);
        for (size_t n = 0; n <= N; n++) {
            for (size_t j = 0; j < FIRSTS; j++) {
                same_encode(f, &d, x + j, n, firsts[j]);
            }
        }
    }
}

static void fast_codes_are_the_portable_ones_for_any_norm(void **state)
{
    (void)state;
    static const float norms[] = {
        LACI_DITHER_NORM_MIN, 1e-10f, 1, 3.3f, 1e30f, 0x1p127f};
    float x[ROOM];
    float scaled[ROOM];
    make_values(x, ROOM);
    for (size_t k = 0; k < FAMILIES * 8; k++) {
        const family *const f = &families[k / 8];
        for (size_t j = 0; j < sizeof(norms) / sizeof(norms[0]); j++) {
            const laci_dither d = dither_of(f->levels[k % 8], norms[j]);
            for (size_t i = 0; i < ROOM; i++) {
                scaled[i] = x[i] / 1.75f * norms[j];
            }
            same_encode(f, &d, scaled, N, 5);
        }
    }
}

// Every code that `check` lets pass, for a norm.
static void same_decode(
    const family *f, const laci_dither *d, size_t n, size_t shift)
{
    uint32_t codes[ROOM] = {0};
    float expected[ROOM];
    float got[ROOM];
    const lac_key key = {.low = 5, .high = d->levels};
    uint8_t *const bytes = (uint8_t *)codes + (f->code_size == 1 ? shift : 0);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t draw = lac_key_draw(&key, i);
        const uint32_t code =
            draw % (d->levels + 1) | draw >> 31 << (d->bits - 1);
        bytes[i] = (uint8_t)code;
        if (f->code_size == 4) {
            codes[i] = code;
        }
    }
    make_values(expected, ROOM);
    make_values(got, ROOM);
    codes_of(&laci_dither_portable, f)->decode(d, bytes, n, expected + shift);
    codes_of(fast_or_skip()->dither, f)->decode(d, bytes, n, got + shift);
    assert_memory_equal(got, expected, sizeof(got));
    make_values(expected, ROOM);
    make_values(got, ROOM);
    codes_of(&laci_dither_portable, f)
        ->decode_add(d, bytes, n, 0.3f, expected + shift);
    codes_of(fast_or_skip()->dither, f)
        ->decode_add(d, bytes, n, 0.3f, got + shift);
    assert_memory_equal(got, expected, sizeof(got));
}

static void fast_values_are_the_portable_ones(void **state)
{
    (void)state;
    static const float norms[] = {1.7f, 0, 1e-40f, 0x1.fffffep127f};
    for (size_t k = 0; k < FAMILIES * 8; k++) {
        const family *const f = &families[k / 8];
        for (size_t n = 0; n <= N; n++) {
            const laci_dither d = dither_of(f->levels[k % 8], norms[n % 4]);
            same_decode(f, &d, n, n % SHIFTS);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable_codes_are_as_defined),
        cmocka_unit_test(fractions_are_rounded_to_16_bits),
        cmocka_unit_test(portable_values_are_as_defined),
        cmocka_unit_test(fast_codes_are_the_portable_ones),
        cmocka_unit_test(fast_codes_are_the_portable_ones_for_any_norm),
        cmocka_unit_test(fast_values_are_the_portable_ones),
    };
    return cmocka_run_group_tests_name("kernels.dither", tests, NULL, NULL);
}
