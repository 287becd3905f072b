// SPDX-License-Identifier: MIT
// Arbitrary bytes as a checkpoint. What is refused must leave the tensors and
// the number as they were; what is taken must be the bytes of the file.
// An input is: 0 and a whole file; or how many values there are, and a header
// from behind the digits of its checksum on. The length and the checksum are
// then put right, so that the header is looked at.
#include <string.h>

#include "safetensors.h"

enum { X_VALUES = 2, Y_BYTES = 3, UNTOUCHED = 0xa5, VALUE = 0x5a };

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
        load(fuzz_safetensors(&input, values, VALUE), true);
    }
    return 0;
}
