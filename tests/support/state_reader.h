// SPDX-License-Identifier: MIT
// Reads a saved state of an algorithm by its published format, so that tests
// see fields without the internals of the library. docs/format.md describes the
// bytes.
//
//     saved_state s = saved_state_open(bytes);
//     saved_field field;
//     while (saved_state_next(&s, &field)) { ... }
#ifndef LACONIC_TESTS_STATE_READER_H
#define LACONIC_TESTS_STATE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

enum { SAVED_NAME_SIZE = 64 };

// One saved field of one tensor.
typedef struct saved_field {
    char tensor[SAVED_NAME_SIZE];
    char name[SAVED_NAME_SIZE]; // empty for a tensor without fields
    uint64_t next_round;        // of the tensor
    uint32_t peer;
    size_t count;
    const uint8_t *values; // `count` floats
} saved_field;

// A position in a state.
typedef struct saved_state {
    const uint8_t *next;
    uint32_t tensors; // that follow
    uint32_t fields;  // of this tensor that follow
    saved_field field;
} saved_state;

static inline uint32_t saved_u32(saved_state *s)
{
    const uint32_t value = laci_get_u32(s->next);
    s->next += sizeof(value);
    return value;
}

static inline uint64_t saved_u64(saved_state *s)
{
    const uint64_t value = laci_get_u64(s->next);
    s->next += sizeof(value);
    return value;
}

// Reads a text, cut to the size of a name.
static inline void saved_text(saved_state *s, char *out)
{
    const size_t len = saved_u32(s);
    const size_t used = len < SAVED_NAME_SIZE ? len : SAVED_NAME_SIZE - 1;
    for (size_t i = 0; i < used; i++) {
        out[i] = (char)s->next[i];
    }
    out[used] = '\0';
    s->next += len;
}

// Begins to read a state that lac_algorithm_save has written.
static inline saved_state saved_state_open(const uint8_t *bytes)
{
    enum { MAGIC_LEN = 8, VERSION_RANK_WORLD = 12, NUMBERS = 24 };
    char ignored[SAVED_NAME_SIZE];
    saved_state s = {.next = bytes + MAGIC_LEN + VERSION_RANK_WORLD};
    saved_text(&s, ignored); // algorithm
    saved_text(&s, ignored); // compressor
    s.next += NUMBERS;       // seed, topology, step size
    s.tensors = saved_u32(&s);
    return s;
}

// Writes the next field to *out, or returns false at the end. A tensor without
// fields is returned once, with an empty name.
static inline bool saved_state_next(saved_state *s, saved_field *out)
{
    bool is_empty = false;
    if (s->fields == 0) {
        if (s->tensors == 0) {
            return false;
        }
        s->tensors--;
        saved_text(s, s->field.tensor);
        s->next += 2 * sizeof(uint64_t); // rows, columns
        s->field.next_round = saved_u64(s);
        s->fields = saved_u32(s);
        is_empty = s->fields == 0;
    }
    s->field.name[0] = '\0';
    s->field.count = 0;
    s->field.values = s->next;
    if (!is_empty) {
        s->fields--;
        saved_text(s, s->field.name);
        s->field.peer = saved_u32(s);
        s->field.count = (size_t)saved_u64(s);
        s->field.values = s->next;
        s->next += s->field.count * sizeof(float);
    }
    *out = s->field;
    return true;
}

static inline float saved_value(const saved_field *field, size_t i)
{
    return laci_get_f32(field->values + i * sizeof(float));
}

// Finds a field by the names of tensor and field.
static inline bool saved_state_find(
    const uint8_t *bytes, const char *tensor, const char *name,
    saved_field *out)
{
    saved_state s = saved_state_open(bytes);
    while (saved_state_next(&s, out)) {
        if (strcmp(out->tensor, tensor) == 0 && strcmp(out->name, name) == 0) {
            return true;
        }
    }
    return false;
}

#endif
