// SPDX-License-Identifier: MIT
// The kernels of signs: AVX2 gives the bits of the portable code, sums
// included, for every size and alignment.
#include "kernels_test.h"

#include <string.h>

#include "base/bytes.h"
#include "kernels/sign.h"
#include "kernels/vector.h"

enum {
    SMALL = 300,
    LARGE = 2100,
    ALIGNMENTS = 32,
    ROOM = LARGE + 64,
    SETS = 4
};

typedef struct results {
    uint8_t signs[2][ROOM];
    double sums[2];
    float memory[ROOM];
    float residual[ROOM];
    float decoded[ROOM];
    float added[ROOM];
} results;

static const laci_sign_kernels *fast(void)
{
    return fast_or_skip()->sign;
}

static float values_of[SETS][ROOM];

// Ordinary values, with zeros of both signs among them.
static int make_values(void **state)
{
    (void)state;
    for (size_t set = 0; set < SETS; set++) {
        const lac_key key =
            lac_key_make(set, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
        for (uint32_t i = 0; i < ROOM; i++) {
            const uint32_t draw = lac_key_draw(&key, i);
            values_of[set][i] = draw % 5 == 0 ? laci_float_of(draw & 0x80000000)
                                              : lac_key_normal(&key, i);
        }
    }
    return 0;
}

static void fill(size_t set, float *x, size_t n)
{
    memcpy(x, values_of[set], n * sizeof(*x));
}

static void run(
    const laci_sign_kernels *kernels, size_t n, size_t shift, results *out)
{
    const float scale = 0.75f;
    const size_t at = shift % 8;
    float x[ROOM];
    memset(out, 0, sizeof(*out));
    memset(out->signs, 0xa5, sizeof(out->signs));
    fill(1, x + at, n);
    fill(2, out->memory, ROOM);
    fill(3, out->added, ROOM);
    uint8_t *const signs = out->signs[1] + shift;
    out->sums[0] = kernels->encode(x + at, n, out->signs[0] + shift);
    kernels->residual(scale, out->memory + at, out->residual + at, n);
    out->sums[1] =
        kernels->encode_add(scale, x + at, out->memory + at, n, signs);
    kernels->decode(scale, signs, out->decoded + at, n);
    kernels->decode_add(scale, signs, -0.3f, out->added + at, n);
}

static void compare(size_t n, size_t shift)
{
    static results portable;
    static results other;
    run(&laci_sign_portable, n, shift, &portable);
    run(fast(), n, shift, &other);
    assert_memory_equal(&portable, &other, sizeof(portable));
}

static void fast_gives_the_same_bits(void **state)
{
    (void)state;
    for (size_t n = 0; n <= SMALL; n++) {
        for (size_t shift = 0; shift < ALIGNMENTS; shift++) {
            compare(n, shift);
        }
    }
}

static void fast_gives_the_same_bits_over_blocks_of_the_sum(void **state)
{
    (void)state;
    for (size_t n = LACI_SUM_BLOCK - 1; n < LARGE; n += 73) {
        for (size_t shift = 0; shift < ALIGNMENTS; shift++) {
            compare(n, shift);
        }
    }
    compare((size_t)2 * LACI_SUM_BLOCK, 0);
}

static void the_sum_is_that_of_the_vector_kernels(void **state)
{
    (void)state;
    float x[LARGE];
    uint8_t signs[LARGE];
    fill(0, x, LARGE);
    const double sum = laci_vector_portable.sum_magnitudes(x, LARGE);
    assert_true(laci_sign_portable.encode(x, LARGE, signs) == sum);
    assert_true(fast()->encode(x, LARGE, signs) == sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_gives_the_same_bits),
        cmocka_unit_test(fast_gives_the_same_bits_over_blocks_of_the_sum),
        cmocka_unit_test(the_sum_is_that_of_the_vector_kernels),
    };
    return cmocka_run_group_tests_name(
        "kernels.sign", tests, make_values, NULL);
}
