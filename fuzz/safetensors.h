// SPDX-License-Identifier: MIT
// Checkpoints whose length and checksum are right, so that the header is
// parsed.
#ifndef LACONIC_FUZZ_SAFETENSORS_H
#define LACONIC_FUZZ_SAFETENSORS_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "fuzz.h"
#include "train/safetensors_file.h"

// fuzz_safetensors returns a file: a header, from behind the digits of its
// checksum on, and `values` bytes `value`.
static inline data_bytes fuzz_safetensors(
    const fuzz_input *tail, size_t values, uint8_t value)
{
    const size_t behind = TRAIN_DIGITS_AT + TRAIN_DIGITS;
    const size_t len = behind + tail->size + values;
    const uint64_t header_len = len - values - TRAIN_LENGTH_SIZE;
    char digits[TRAIN_DIGITS + 1];
    uint8_t *const file = fuzz_alloc(len);
    for (int i = 0; i < TRAIN_LENGTH_SIZE; i++) {
        file[i] = (uint8_t)(header_len >> 8 * i);
    }
    memcpy(
        file + TRAIN_LENGTH_SIZE, TRAIN_HEADER_BEGIN,
        TRAIN_DIGITS_AT - TRAIN_LENGTH_SIZE);
    memset(file + TRAIN_DIGITS_AT, '0', TRAIN_DIGITS);
    if (tail->size > 0) {
        memcpy(file + behind, tail->data, tail->size);
    }
    memset(file + len - values, value, values);
    (void)snprintf(
        digits, sizeof(digits), "%016" PRIx64, XXH3_64bits(file, len));
    memcpy(file + TRAIN_DIGITS_AT, digits, TRAIN_DIGITS);
    return (data_bytes){"input", file, len};
}

#endif
