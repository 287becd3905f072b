// SPDX-License-Identifier: MIT
// A small record to write and to read: a matrix, bytes, a scalar, an empty
// tensor, and two numbers.
#ifndef LACONIC_TESTS_TENSORS_H
#define LACONIC_TESTS_TENSORS_H

#include <string.h>

#include "lac_test.h"
#include "train/safetensors_file.h"

enum { TENSORS = 4, NUMBERS = 2 };

typedef struct sample {
    float matrix[6];
    uint8_t bytes[5];
    float scalar;
    uint64_t epoch, seed;
    train_tensor tensors[TENSORS];
    train_number numbers[NUMBERS];
    train_record record;
} sample;

// Points the record at the sample itself.
static inline void sample_bind(sample *s)
{
    const train_tensor tensors[TENSORS] = {
        {"model.", "weight", TRAIN_F32, {2, 3}, 2, s->matrix},
        {NULL, "state", TRAIN_U8, {5}, 1, s->bytes},
        {"", "scalar", TRAIN_F32, {0}, 0, &s->scalar},
        {"empty/", "\"quoted\"", TRAIN_F32, {0, 7}, 2, NULL},
    };
    memcpy(s->tensors, tensors, sizeof(tensors));
    s->numbers[0] = (train_number){"epoch", &s->epoch, false};
    s->numbers[1] = (train_number){"seed", &s->seed, false};
    s->record = (train_record){
        .tensors = s->tensors,
        .tensor_count = TENSORS,
        .numbers = s->numbers,
        .number_count = NUMBERS};
}

static inline void sample_fill(sample *s, uint64_t seed)
{
    memset(s, 0, sizeof(*s));
    // Small numbers: gcc 14 and 16 take uint64_t numbers whose known range ends
    // just below 2^64 for int32_t ones when they vectorise the conversion.
    for (size_t i = 0; i < 6; i++) {
        s->matrix[i] = (float)((seed + i) % 4096) - 2.5f;
    }
    for (size_t i = 0; i < 5; i++) {
        s->bytes[i] = (uint8_t)(251 + seed + i);
    }
    s->scalar = 1.0f / 3;
    s->epoch = seed;
    s->seed = UINT64_MAX;
    sample_bind(s);
}

static inline void sample_clear(sample *s)
{
    memset(s, 0xa5, sizeof(*s));
    sample_bind(s);
}

static inline void assert_same_sample(const sample *a, const sample *b)
{
    assert_memory_equal(a->matrix, b->matrix, sizeof(a->matrix));
    assert_memory_equal(a->bytes, b->bytes, sizeof(a->bytes));
    assert_memory_equal(&a->scalar, &b->scalar, sizeof(a->scalar));
    assert_true(a->epoch == b->epoch && a->seed == b->seed);
}

static inline lac_status read_record(
    const char *path, const train_record *record)
{
    data_bytes bytes;
    train_file f;
    LAC_TRY(data_file_read(path, &bytes));
    LAC_TRY(train_file_open(&f, bytes));
    const lac_status status = train_file_load(&f, record);
    train_file_close(&f);
    return status;
}

static inline void assert_untouched(const sample *s)
{
    sample clear;
    sample_clear(&clear);
    assert_same_sample(s, &clear);
}

#endif
