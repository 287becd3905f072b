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

static int use_avx2(void **state)
{
    (void)state;
    const laci_kernels *kernels = NULL;
    pack = laci_kernels_find("avx2", &kernels) == LAC_OK ? kernels->pack : NULL;
    return 0;
}

static void skip_without_kernels(void)
{
    if (pack == NULL) {
        print_message("skipped: this machine cannot run the avx2 kernels\n");
        skip();
    }
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

static void bytes_are_where_the_format_says(void **state)
{
    (void)state;
    skip_without_kernels();
    for (unsigned bits = 1; bits <= 8; bits++) {
        for (size_t n = 0; n <= SIZE_MAX_TESTED; n++) {
            check_bytes(bits, n, n % 5);
        }
    }
}

static void words_are_where_the_format_says(void **state)
{
    (void)state;
    skip_without_kernels();
    for (unsigned bits = 1; bits <= LACI_PACK_WORD_BITS; bits++) {
        for (size_t n = 0; n <= SIZE_MAX_TESTED; n++) {
            check_words(bits, n, n % 5);
        }
    }
}

static void bits_fill_bytes_from_the_lowest(void **state)
{
    (void)state;
    skip_without_kernels();
    static const uint8_t codes[] = {1, 2, 7, 0, 5};
    uint8_t out[2];
    pack->pack_bytes(3, codes, 5, out);
    // 101 000 111 010 001 from the last to the first
    assert_int_equal(out[0], 0xd1);
    assert_int_equal(out[1], 0x51);
}

#define BOTH(test)                                                             \
    cmocka_unit_test_setup(test, use_portable),                                \
        cmocka_unit_test_setup(test, use_avx2)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(bytes_are_where_the_format_says),
        BOTH(words_are_where_the_format_says),
        BOTH(bits_fill_bytes_from_the_lowest),
    };
    return cmocka_run_group_tests_name("kernels.pack", tests, NULL, NULL);
}
