// SPDX-License-Identifier: MIT
// Arbitrary bytes as a .lac file, after a byte that selects what to repair: bit
// 0 the length of the payload, bit 1 the checksum. Without that, no altered
// file would get beyond the checksum; an attacker can mend both too.
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "cli/files/lac_file.h"
#include "fuzz.h"

// Places in a file, from the head of src/cli/files/lac_file.c.
enum {
    PAYLOAD_OFFSET_AT = 12,
    PAYLOAD_LEN_AT = 40,
    FIXED_LEN = 56,
    CHECKSUM_LEN = 8,
    VALUES_MAX = 1 << 16,
};

static void put_u64(uint8_t *out, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        out[i] = (uint8_t)(value >> 8 * i);
    }
}

static uint32_t get_u32(const uint8_t *in)
{
    return in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 |
           (uint32_t)in[3] << 24;
}

static void mend(uint8_t *file, size_t size, uint8_t what)
{
    if (size < FIXED_LEN + CHECKSUM_LEN) {
        return;
    }
    const size_t end = size - CHECKSUM_LEN;
    const size_t offset = get_u32(file + PAYLOAD_OFFSET_AT);
    if ((what & 1) != 0 && offset <= end) {
        put_u64(file + PAYLOAD_LEN_AT, end - offset);
    }
    if ((what & 2) != 0) {
        put_u64(file + end, XXH3_64bits(file, end));
    }
}

static void decode(const cli_lac *lac)
{
    const size_t n = lac_shape_values(lac->shape);
    lac_compressor *c = NULL;
    if (n > VALUES_MAX || cli_lac_open("input", lac, &c) != LAC_OK) {
        return;
    }
    float *const x = fuzz_alloc(n * sizeof(*x));
    uint8_t *const payload = fuzz_copy(lac->payload, lac->payload_len);
    fuzz_require(
        n == 0 || lac_compressor_decode(
                      c, &lac->key, lac->shape, payload, lac->payload_len, x) ==
                      LAC_OK,
        "a payload that was checked does not decode");
    free(payload);
    free(x);
    lac_compressor_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    const uint8_t what = fuzz_byte(&input);
    uint8_t *const file = fuzz_copy(input.data, input.size);
    mend(file, input.size, what);
    cli_lac lac;
    if (cli_lac_parse("input", file, input.size, &lac) == LAC_OK) {
        decode(&lac);
    } else {
        fuzz_require(lac_error_message()[0] != '\0', "no message");
    }
    free(file);
    return 0;
}
