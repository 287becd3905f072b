// SPDX-License-Identifier: MIT
// Arbitrary bytes as a checkpoint. What is refused must leave the tensors and
// the number as they were; what is taken must be the bytes of the file.
// An input is: 0 and a whole file; or how many values there are, and a header
// from behind the digits of its checksum on. The length and the checksum are
// then put right, so that the header is looked at.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "fuzz.h"
#include "train/safetensors_file.h"

enum { X_VALUES = 2, Y_BYTES = 3, UNTOUCHED = 0xa5, VALUE = 0x5a };

static data_bytes make_file(const fuzz_input *tail, size_t values)
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
    memset(file + len - values, VALUE, values);
    (void)snprintf(
        digits, sizeof(digits), "%016" PRIx64, XXH3_64bits(file, len));
    memcpy(file + TRAIN_DIGITS_AT, digits, TRAIN_DIGITS);
    return (data_bytes){"input", file, len};
}

static bool all_are(const void *data, size_t len, uint8_t value)
{
    const uint8_t *const bytes = data;
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != value) {
            return false;
        }
    }
    return true;
}

static void load(data_bytes bytes, bool made)
{
    float x[X_VALUES];
    uint8_t y[Y_BYTES];
    uint64_t n;
    memset(x, UNTOUCHED, sizeof(x));
    memset(y, UNTOUCHED, sizeof(y));
    memset(&n, UNTOUCHED, sizeof(n));
    const train_tensor tensors[] = {
        {"a.", "x", TRAIN_F32, {1, X_VALUES}, 2, x},
        {NULL, "y", TRAIN_U8, {Y_BYTES}, 1, y},
        {NULL, "z", TRAIN_F32, {0}, 1, NULL},
    };
    const train_number number = {"n", &n, false};
    const train_record record = {
        .tensors = tensors,
        .tensor_count = 3,
        .numbers = &number,
        .number_count = 1};
    train_file f;
    lac_status status = train_file_open(&f, bytes);
    if (status == LAC_OK) {
        status = train_file_load(&f, &record);
        train_file_close(&f);
    }
    if (status == LAC_OK) {
        fuzz_require(
            !made ||
                (all_are(x, sizeof(x), VALUE) && all_are(y, sizeof(y), VALUE)),
            "values come from elsewhere");
        return;
    }
    fuzz_require(
        status == LAC_ERR_CORRUPT || status == LAC_ERR_INVALID,
        "a file is neither good, corrupt nor another's");
    fuzz_require(lac_error_message()[0] != '\0', "no message");
    fuzz_require(
        all_are(x, sizeof(x), UNTOUCHED) && all_are(y, sizeof(y), UNTOUCHED) &&
            all_are(&n, sizeof(n), UNTOUCHED),
        "a file was refused after something was written");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    const uint8_t values = fuzz_byte(&input);
    if (values == 0) {
        const data_bytes bytes = {
            "input", fuzz_copy(input.data, input.size), input.size};
        load(bytes, false);
    } else {
        load(make_file(&input, values), true);
    }
    return 0;
}
