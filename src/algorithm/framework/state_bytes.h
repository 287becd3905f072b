// SPDX-License-Identifier: MIT
// The bytes of a state: numbers and texts, written and read one after the
// other.
#ifndef LACONIC_ALGORITHM_FRAMEWORK_STATE_BYTES_H
#define LACONIC_ALGORITHM_FRAMEWORK_STATE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

enum { SHOWN_MAX = 60 }; // characters of a text in a message

// Writes, or only counts while `out` is NULL.
typedef struct state_writer {
    uint8_t *out;
    size_t len;
} state_writer;

static inline void put_bytes(state_writer *w, const void *bytes, size_t len)
{
    if (w->out != NULL && len > 0) {
        memcpy(w->out + w->len, bytes, len);
    }
    w->len += len;
}

static inline void put_u32(state_writer *w, uint32_t value)
{
    uint8_t bytes[4];
    laci_put_u32(bytes, value);
    put_bytes(w, bytes, sizeof(bytes));
}

static inline void put_u64(state_writer *w, uint64_t value)
{
    uint8_t bytes[8];
    laci_put_u64(bytes, value);
    put_bytes(w, bytes, sizeof(bytes));
}

static inline void put_text(state_writer *w, const char *text)
{
    put_u32(w, (uint32_t)strlen(text));
    put_bytes(w, text, strlen(text));
}

// Reads; past the end it returns zeros and sets `cut`.
typedef struct state_reader {
    const uint8_t *next;
    const uint8_t *end;
    bool cut;
    bool apply;       // change the algorithm, else only check
    bool other_world; // accept the state of another worker
    bool foreign;     // it is of another worker
} state_reader;

typedef struct text {
    const char *start;
    size_t len;
} text;

static inline const uint8_t *get_bytes(state_reader *r, size_t len)
{
    if ((size_t)(r->end - r->next) < len) {
        r->cut = true;
        return NULL;
    }
    const uint8_t *const bytes = r->next;
    r->next += len;
    return bytes;
}

static inline uint32_t get_u32(state_reader *r)
{
    const uint8_t *const bytes = get_bytes(r, 4);
    return bytes == NULL ? 0 : laci_get_u32(bytes);
}

static inline uint64_t get_u64(state_reader *r)
{
    const uint8_t *const bytes = get_bytes(r, 8);
    return bytes == NULL ? 0 : laci_get_u64(bytes);
}

static inline text get_text(state_reader *r)
{
    const uint32_t len = get_u32(r);
    const uint8_t *const bytes = get_bytes(r, len);
    return bytes == NULL ? (text){"", 0} : (text){(const char *)bytes, len};
}

static inline bool same_text(text t, const char *word)
{
    return strlen(word) == t.len && memcmp(word, t.start, t.len) == 0;
}

static inline int shown(text t)
{
    return (int)(t.len < SHOWN_MAX ? t.len : SHOWN_MAX);
}

#endif
