// SPDX-License-Identifier: MIT
// Packing against its definition, a bit at a time, for every width, size and
// alignment, by every set of kernels. Blocks are exactly as long as the codes,
// so that a sanitizer sees an access beyond them.
#include "lac_test.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/pack.h"

enum { SIZE_MAX_TESTED = 300, GUARD = 0xa5 };

static const laci_pack_kernels *pack;

static int use_portable(void **state)
{
    (void)state;
    pack = &laci_pack_portable;
    return 0;
}

static int use_fast(void **state)
{
    (void)state;
    pack = laci_kernels_best()->pack;
    return 0;
}

static uint32_t code_at(size_t i, unsigned bits)
{
    const lac_key key = {.low = 7, .high = bits};
    return lac_key_draw(&key, (uint32_t)i) >> (32 - bits);
}

static uint32_t stream_at(const uint8_t *in, size_t i, unsigned bits)
{
    uint32_t code = 0;
    for (size_t j = 0; j < bits; j++) {
        const size_t at = i * bits + j;
        code |= (uint32_t)(in[at / 8] >> at % 8 & 1) << j;
    }
    return code;
}

static void *block_of(size_t size)
{
    void *const block = malloc(size + 1); // never 0 bytes
    assert_non_null(block);
    memset(block, GUARD, size + 1);
    return block;
}

static void check_stream(const uint8_t *out, size_t n, unsigned bits)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(stream_at(out, i, bits), code_at(i, bits));
    }
    for (size_t at = n * bits; at % 8 != 0; at++) {
        assert_int_equal(out[at / 8] >> at % 8 & 1, 0);
    }
    assert_int_equal(out[laci_packed_size(n, bits)], GUARD);
}

static void check_bytes(unsigned bits, size_t n, size_t shift)
{
    const size_t len = laci_packed_size(n, bits);
    uint8_t *const codes = block_of(n + shift);
    uint8_t *const out = block_of(len + shift);
    for (size_t i = 0; i < n; i++) {
        codes[shift + i] = (uint8_t)code_at(i, bits);
    }
    pack->pack_bytes(bits, codes + shift, n, out + shift);
    check_stream(out + shift, n, bits);
    memset(codes, GUARD, n + shift);
    uint8_t *const in = malloc(len + shift + (len + shift == 0));
    assert_non_null(in);
    memcpy(in, out, len + shift);
    pack->unpack_bytes(bits, in + shift, n, codes + shift);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(codes[shift + i], code_at(i, bits));
    }
    assert_int_equal(codes[n + shift], GUARD);
    free(in);
    free(out);
    free(codes);
}

static void check_words(unsigned bits, size_t n, size_t shift)
{
    const size_t len = laci_packed_size(n, bits);
    uint32_t *const codes = block_of(n * sizeof(*codes));
    uint8_t *const out = block_of(len + shift);
    for (size_t i = 0; i < n; i++) {
        codes[i] = code_at(i, bits);
    }
    pack->pack_words(bits, codes, n, out + shift);
    check_stream(out + shift, n, bits);
    memset(codes, GUARD, n * sizeof(*codes));
    uint8_t *const in = malloc(len + shift + (len + shift == 0));
    assert_non_null(in);
    memcpy(in, out, len + shift);
    pack->unpack_words(bits, in + shift, n, codes);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(codes[i], code_at(i, bits));
    }
    assert_int_equal(((uint8_t *)codes)[n * sizeof(*codes)], GUARD);
    free(in);
    free(out);
    free(codes);
}

static void bytes_are_where_the_format_puts_them(void **state)
{
    (void)state;
    for (unsigned bits = 1; bits <= 8; bits++) {
        for (size_t n = 0; n <= SIZE_MAX_TESTED; n++) {
            check_bytes(bits, n, n % 5);
        }
    }
}

static void words_are_where_the_format_puts_them(void **state)
{
    (void)state;
    for (unsigned bits = 1; bits <= LACI_PACK_WORD_BITS; bits++) {
        for (size_t n = 0; n <= SIZE_MAX_TESTED; n++) {
            check_words(bits, n, n % 5);
        }
    }
}

static void bits_fill_bytes_from_the_lowest(void **state)
{
    (void)state;
    static const uint8_t codes[] = {1, 2, 7, 0, 5};
    uint8_t out[2];
    pack->pack_bytes(3, codes, 5, out);
    // 101 000 111 010 001 from the last to the first
    assert_int_equal(out[0], 0xd1);
    assert_int_equal(out[1], 0x51);
}

// Mostly gaps that suit the parameter, some of many times its 2^b. The last
// index stays below 2^32.
static uint32_t gap_at(size_t i, unsigned b)
{
    const uint32_t draw = code_at(i, 32);
    const uint32_t most = b < 20 ? 3u << b : 1u << 22;
    return draw % 61 == 0 && b < 20 ? draw % (400u << (b < 14 ? b : 14))
                                    : draw % most;
}

static uint32_t bit_at(const uint8_t *in, size_t at)
{
    return in[at / 8] >> at % 8 & 1;
}

// Reads the codes a bit at a time. The block ends with them.
static void check_gaps(unsigned b, size_t k, size_t shift)
{
    uint32_t *const indices = block_of(k * sizeof(*indices));
    uint64_t zeros = 0;
    for (size_t i = 0; i < k; i++) {
        const uint32_t before = i == 0 ? UINT32_MAX : indices[i - 1];
        indices[i] = before + 1 + gap_at(i, b);
        zeros += gap_at(i, b) >> b;
    }
    const size_t len = (zeros + k * (b + 1) + 7) / 8;
    uint8_t *const block = block_of(len + shift);
    const uint8_t *const out = block + shift;
    size_t at = 0;
    assert_int_equal(pack->gaps_zeros(b, indices, k), zeros);
    pack->pack_gaps(b, indices, k, block + shift);
    for (size_t i = 0; i < k; i++) {
        uint32_t gap = 0;
        for (; bit_at(out, at) == 0; at++) {
            gap += 1u << b;
        }
        at++;
        for (unsigned j = 0; j < b; j++) {
            gap |= bit_at(out, at++) << j;
        }
        assert_int_equal(gap, gap_at(i, b));
    }
    for (; at % 8 != 0; at++) {
        assert_int_equal(bit_at(out, at), 0);
    }
    assert_int_equal(at / 8, len);
    assert_int_equal(out[len], GUARD);
    free(block);
    free(indices);
}

static void gaps_are_where_the_format_puts_them(void **state)
{
    (void)state;
    for (unsigned b = 0; b <= 31; b++) {
        for (size_t k = 1; k <= SIZE_MAX_TESTED; k++) {
            check_gaps(b, k, k % 5);
        }
    }
}

#define BOTH(test)                                                             \
    cmocka_unit_test_setup(test, use_portable),                                \
        cmocka_unit_test_setup(test, use_fast)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(bytes_are_where_the_format_puts_them),
        BOTH(words_are_where_the_format_puts_them),
        BOTH(bits_fill_bytes_from_the_lowest),
        BOTH(gaps_are_where_the_format_puts_them),
    };
    return cmocka_run_group_tests_name("kernels.pack", tests, NULL, NULL);
}
