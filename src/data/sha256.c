// SPDX-License-Identifier: MIT
// SHA-256 (FIPS 180-4).
#include "data/sha256.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, WORDS = 8, ROUNDS = 64, LENGTH_AT = 56 };

static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static void expand_block(const uint8_t *block, uint32_t w[ROUNDS])
{
    for (int i = 0; i < 16; i++) {
        w[i] = data_read_be32(block + (ptrdiff_t)4 * i);
    }
    for (int i = 16; i < ROUNDS; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

static void add_block(uint32_t state[WORDS], const uint8_t *block)
{
    uint32_t w[ROUNDS], s[WORDS];
    expand_block(block, w);
    memcpy(s, state, sizeof(s));
    for (int i = 0; i < ROUNDS; i++) {
        const uint32_t e = s[4], a = s[0];
        const uint32_t one = s[7] +
                             (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                             ((e & s[5]) ^ (~e & s[6])) + constants[i] + w[i];
        const uint32_t two = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                             ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof(*s));
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < WORDS; i++) {
        state[i] += s[i];
    }
}

void data_sha256(
    const uint8_t *data, size_t len, char digits_out[DATA_SHA256_SIZE])
{
    uint32_t state[WORDS] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const size_t whole = len / BLOCK * BLOCK, rest = len - whole;
    for (size_t at = 0; at < whole; at += BLOCK) {
        add_block(state, data + at);
    }
    // The rest, a bit 1, zeros and the number of bits: one block or two.
    uint8_t last[2 * BLOCK] = {0};
    if (rest > 0) {
        memcpy(last, data + whole, rest);
    }
    last[rest] = 0x80;
    uint8_t *const end = last + (rest < LENGTH_AT ? BLOCK : 2 * BLOCK);
    for (int i = 0; i < 8; i++) {
        end[-1 - i] = (uint8_t)((uint64_t)len * 8 >> 8 * i);
    }
    for (const uint8_t *block = last; block < end; block += BLOCK) {
        add_block(state, block);
    }
    for (int i = 0; i < WORDS; i++) {
        (void)snprintf(digits_out + 8 * i, 9, "%08x", (unsigned)state[i]);
    }
}

lac_status data_sha256_check(const data_bytes *bytes, const char *digits)
{
    char found[DATA_SHA256_SIZE];
    data_sha256(bytes->data, bytes->len, found);
    if (strcmp(found, digits) != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: sha256 is %s, expected %s", bytes->name,
            found, digits);
    }
    return LAC_OK;
}
