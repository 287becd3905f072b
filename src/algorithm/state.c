// SPDX-License-Identifier: MIT
// Saving a state: the bytes of state.h.
#include "algorithm/state.h"

#include <string.h>

#include <xxhash.h>

#include "base/bytes.h"
#include "base/fail.h"

// Writes, or only counts while `out` is NULL.
typedef struct writer {
    uint8_t *out;
    size_t len;
} writer;

static void put_bytes(writer *w, const void *bytes, size_t len)
{
    if (w->out != NULL && len > 0) {
        memcpy(w->out + w->len, bytes, len);
    }
    w->len += len;
}

static void put_u32(writer *w, uint32_t value)
{
    uint8_t bytes[4];
    laci_put_u32(bytes, value);
    put_bytes(w, bytes, sizeof(bytes));
}

static void put_u64(writer *w, uint64_t value)
{
    uint8_t bytes[8];
    laci_put_u64(bytes, value);
    put_bytes(w, bytes, sizeof(bytes));
}

static void put_text(writer *w, const char *text)
{
    put_u32(w, (uint32_t)strlen(text));
    put_bytes(w, text, strlen(text));
}

static void put_field(
    writer *w, const lac_algorithm *a, const laci_field *field)
{
    put_text(w, field->name);
    put_u32(w, field->peer);
    put_u64(w, field->count);
    if (w->out != NULL && field->is_errors) {
        laci_field_read(field, a->worker.scratch);
        laci_put_floats(w->out + w->len, a->worker.scratch, field->count);
    } else if (w->out != NULL) {
        laci_put_floats(w->out + w->len, field->values, field->count);
    }
    w->len += field->count * sizeof(float);
}

static void put_tensor(writer *w, const lac_algorithm *a, size_t index)
{
    const lac_tensor *const tensor = lac_layout_tensor(a->worker.layout, index);
    uint32_t saved = 0;
    for (size_t i = a->memory.first[index]; i < a->memory.first[index + 1];
         i++) {
        saved += a->memory.fields[i].name != NULL;
    }
    put_text(w, tensor->name);
    put_u64(w, tensor->shape.rows);
    put_u64(w, tensor->shape.cols);
    const bool begun = a->progress[index].begun && a->ops->begin_saves;
    put_u64(w, a->progress[index].next_round | (begun ? LACI_STATE_BEGUN : 0));
    put_u32(w, saved);
    for (size_t i = a->memory.first[index]; i < a->memory.first[index + 1];
         i++) {
        if (a->memory.fields[i].name != NULL) {
            put_field(w, a, &a->memory.fields[i]);
        }
    }
}

static void put_state(writer *w, const lac_algorithm *a)
{
    const size_t tensors = lac_layout_count(a->worker.layout);
    put_bytes(w, LACI_STATE_MAGIC, LACI_STATE_MAGIC_LEN);
    put_u32(w, LACI_STATE_VERSION);
    put_u32(w, a->worker.rank);
    put_u32(w, a->worker.world);
    put_text(w, a->worker.spec);
    put_text(w, a->worker.compressor_spec);
    put_u64(w, a->worker.seed);
    put_u64(w, laci_state_topology(a));
    put_u64(w, laci_state_bits(laci_state_step(a)));
    put_u32(w, (uint32_t)tensors);
    for (size_t t = 0; t < tensors; t++) {
        put_tensor(w, a, t);
    }
    if (w->out != NULL) {
        laci_put_u64(w->out + w->len, XXH3_64bits(w->out, w->len));
    }
    w->len += 8;
}

size_t lac_algorithm_state_size(const lac_algorithm *a)
{
    writer w = {0};
    put_state(&w, a);
    return w.len;
}

void lac_algorithm_save(const lac_algorithm *a, uint8_t *out)
{
    writer w = {.out = out};
    put_state(&w, a);
}
