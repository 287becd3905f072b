// SPDX-License-Identifier: MIT
// Arbitrary bytes as a file of a data set. The first byte chooses the reader;
// what it accepts must lie within the file and be what it promises.
#include <stdlib.h>
#include <string.h>

#include "data/cifar.h"
#include "data/idx.h"
#include "data/libsvm.h"
#include "data/png.h"
#include "data/vocabulary.h"
#include "fuzz.h"

enum { CLASSES = 10, UNPACKED_MAX = 1 << 20, SIDE = 8, READERS = 6 };

static lac_status read_images(data_bytes *bytes)
{
    data_idx idx;
    lac_status status = data_gunzip(bytes, UNPACKED_MAX);
    if (status == LAC_OK) {
        status = data_idx_images(bytes, &idx);
    }
    if (status == LAC_OK) {
        const size_t len = (size_t)idx.count * idx.height * idx.width;
        fuzz_require(
            idx.values + len == bytes->data + bytes->len,
            "the images do not fill the file");
    }
    return status;
}

static lac_status read_labels(data_bytes *bytes)
{
    data_idx idx;
    const lac_status status = data_idx_labels(bytes, CLASSES, &idx);
    for (uint32_t i = 0; status == LAC_OK && i < idx.count; i++) {
        fuzz_require(idx.values[i] < CLASSES, "a label is out of range");
    }
    return status;
}

static lac_status read_cifar(data_bytes *bytes)
{
    size_t count = 0;
    const lac_status status = data_cifar_check(bytes, &count);
    fuzz_require(
        status != LAC_OK || count * DATA_CIFAR_RECORD == bytes->len,
        "the records do not fill the file");
    return status;
}

static lac_status read_libsvm(data_bytes *bytes)
{
    data_table t;
    const lac_status status = data_libsvm_parse(bytes, &t);
    if (status == LAC_OK) {
        fuzz_require(t.start[t.count] == t.values, "values without a row");
        for (size_t i = 0; i < t.values; i++) {
            fuzz_require(t.column[i] < t.width, "a column is out of range");
        }
        data_table_free(&t);
    }
    return status;
}

static lac_status read_png(data_bytes *bytes)
{
    uint8_t *pixels = NULL;
    const lac_status status = data_png_read(bytes, SIDE, SIDE, &pixels);
    free(pixels);
    return status;
}

// Every word of a text is in its own vocabulary.
static lac_status read_text(data_bytes *bytes)
{
    data_vocabulary v;
    const lac_status status = data_vocabulary_build(bytes, 1, 1, &v);
    if (status == LAC_OK) {
        const size_t count = data_vocabulary_count(bytes);
        uint32_t *const tokens = fuzz_alloc(count * sizeof(*tokens) + 1);
        data_vocabulary_read(&v, bytes, tokens);
        for (size_t i = 0; i < count; i++) {
            fuzz_require(tokens[i] < v.count, "a word has no number");
        }
        free(tokens);
        data_vocabulary_free(&v);
    }
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lac_status (*const readers[READERS])(data_bytes *) = {
        read_images, read_labels, read_cifar, read_libsvm, read_png, read_text};
    fuzz_input input = {data, size};
    const uint8_t which = fuzz_byte(&input) % READERS;
    data_bytes bytes = {"input", fuzz_copy(input.data, input.size), input.size};
    if (readers[which](&bytes) != LAC_OK) {
        fuzz_require(lac_error_message()[0] != '\0', "no message");
    }
    data_bytes_free(&bytes);
    return 0;
}
