// SPDX-License-Identifier: MIT
// The state of an algorithm as bytes: fields by the names of tensor, field and
// peer, so that it does not matter in which order a layout lists its tensors.
//
//     8 bytes   "LACSTATE"
//     u32       version, 1
//     u32       rank, u32 world
//     text      algorithm (u32 length, then the characters)
//     text      spec of the compressor, empty where there is none
//     u64       bits of its step size, a double; 0 where there is none
//     u32       number of tensors; for each
//       text      name
//       u64       rows, u64 columns, u64 next round
//       u32       number of saved fields; for each
//         text      name
//         u32       peer, or 2^32 - 1
//         u64       number of floats, then the floats
//     u64       XXH3 of all bytes before
//
// Loading looks at everything first and changes the state last.
#include "algorithm/handle.h"

#include <string.h>

#include <xxhash.h>

#include "base/bytes.h"
#include "base/fail.h"

static const char magic[8] = {'L', 'A', 'C', 'S', 'T', 'A', 'T', 'E'};

enum { VERSION = 1, SHOWN_MAX = 60, STEP_MAX = 2 };

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
    put_u64(w, a->progress[index].next_round);
    put_u32(w, saved);
    for (size_t i = a->memory.first[index]; i < a->memory.first[index + 1];
         i++) {
        if (a->memory.fields[i].name != NULL) {
            put_field(w, a, &a->memory.fields[i]);
        }
    }
}

static double step_of(const lac_algorithm *a)
{
    return a->ops->step == NULL ? 0 : *a->ops->step(a->state);
}

static uint64_t double_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static void put_state(writer *w, const lac_algorithm *a)
{
    const size_t tensors = lac_layout_count(a->worker.layout);
    put_bytes(w, magic, sizeof(magic));
    put_u32(w, VERSION);
    put_u32(w, a->worker.rank);
    put_u32(w, a->worker.world);
    put_text(w, a->ops->plugin.name);
    put_text(w, a->worker.compressor_spec);
    put_u64(w, double_bits(step_of(a)));
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

// Reads; past the end it gives zeros and remembers that it did.
typedef struct reader {
    const uint8_t *next;
    const uint8_t *end;
    bool cut;
} reader;

typedef struct text {
    const char *start;
    size_t len;
} text;

static const uint8_t *get_bytes(reader *r, size_t len)
{
    if ((size_t)(r->end - r->next) < len) {
        r->cut = true;
        return NULL;
    }
    const uint8_t *const bytes = r->next;
    r->next += len;
    return bytes;
}

static uint32_t get_u32(reader *r)
{
    const uint8_t *const bytes = get_bytes(r, 4);
    return bytes == NULL ? 0 : laci_get_u32(bytes);
}

static uint64_t get_u64(reader *r)
{
    const uint8_t *const bytes = get_bytes(r, 8);
    return bytes == NULL ? 0 : laci_get_u64(bytes);
}

static text get_text(reader *r)
{
    const uint32_t len = get_u32(r);
    const uint8_t *const bytes = get_bytes(r, len);
    return bytes == NULL ? (text){"", 0} : (text){(const char *)bytes, len};
}

static bool same_text(text t, const char *word)
{
    return strlen(word) == t.len && memcmp(word, t.start, t.len) == 0;
}

static int shown(text t)
{
    return (int)(t.len < SHOWN_MAX ? t.len : SHOWN_MAX);
}

// A step size that was set or found here must be the saved one; gamma=auto
// takes it over.
static lac_status get_step(reader *r, const lac_algorithm *a, bool apply)
{
    const uint64_t bits = get_u64(r);
    const double here = step_of(a);
    double step;
    memcpy(&step, &bits, sizeof(step));
    if (a->ops->step == NULL) {
        return bits == 0
                   ? LAC_OK
                   : lac_fail(
                         LAC_ERR_CORRUPT, "state: gamma is %g, %s has none",
                         step, a->ops->plugin.name);
    }
    if (!(step > 0 && step <= STEP_MAX)) {
        return lac_fail(
            LAC_ERR_CORRUPT, "state: gamma is %g, expected in (0, %d]", step,
            STEP_MAX);
    }
    if (here > 0 && bits != double_bits(here)) {
        return lac_fail(
            LAC_ERR_INVALID, "state: gamma is %.17g, expected %.17g", step,
            here);
    }
    if (apply) {
        *a->ops->step(a->state) = step;
    }
    return LAC_OK;
}

// Reads the head up to the number of tensors.
static lac_status get_head(reader *r, const lac_algorithm *a, bool apply)
{
    const uint8_t *const found = get_bytes(r, sizeof(magic));
    const uint32_t version = get_u32(r);
    const uint32_t rank = get_u32(r);
    const uint32_t world = get_u32(r);
    const text name = get_text(r);
    const text compressor = get_text(r);
    if (found == NULL || memcmp(found, magic, sizeof(magic)) != 0) {
        return lac_fail(LAC_ERR_CORRUPT, "state: is not one of laconic");
    }
    if (version != VERSION) {
        return lac_fail(
            LAC_ERR_CORRUPT, "state: version is %u, expected %u", version,
            (unsigned)VERSION);
    }
    if (!same_text(name, a->ops->plugin.name)) {
        return lac_fail(
            LAC_ERR_INVALID, "state: algorithm is %.*s, expected %s",
            shown(name), name.start, a->ops->plugin.name);
    }
    if (!same_text(compressor, a->worker.compressor_spec)) {
        return lac_fail(
            LAC_ERR_INVALID, "state: compressor is \"%.*s\", expected \"%s\"",
            shown(compressor), compressor.start, a->worker.compressor_spec);
    }
    if (rank != a->worker.rank || world != a->worker.world) {
        return lac_fail(
            LAC_ERR_INVALID, "state: is of worker %u of %u, expected %u of %u",
            rank, world, a->worker.rank, a->worker.world);
    }
    LAC_TRY(get_step(r, a, apply));
    const uint32_t tensors = get_u32(r);
    if (tensors != lac_layout_count(a->worker.layout)) {
        return lac_fail(
            LAC_ERR_INVALID, "state: has %u tensors, expected %zu", tensors,
            lac_layout_count(a->worker.layout));
    }
    return LAC_OK;
}

static lac_status get_field(
    reader *r, const lac_algorithm *a, const char *tensor, laci_field *field,
    bool apply)
{
    const text name = get_text(r);
    const uint32_t peer = get_u32(r);
    const uint64_t count = get_u64(r);
    if (!same_text(name, field->name) || peer != field->peer ||
        count != field->count) {
        return lac_fail(
            LAC_ERR_INVALID,
            "state: %s has field %.*s of peer %u with %llu values, expected %s "
            "of peer %u with %zu",
            tensor, shown(name), name.start, peer, (unsigned long long)count,
            field->name, field->peer, field->count);
    }
    const uint8_t *const floats = get_bytes(r, field->count * sizeof(float));
    if (apply && floats != NULL && field->is_errors) {
        laci_get_floats(floats, a->worker.scratch, field->count);
        laci_field_write(field, a->worker.scratch);
    } else if (apply && floats != NULL) {
        laci_get_floats(floats, field->values, field->count);
    }
    return LAC_OK;
}

static lac_status get_fields(
    reader *r, lac_algorithm *a, size_t index, const char *name, bool apply)
{
    const uint32_t saved = get_u32(r);
    uint32_t seen = 0;
    for (size_t i = a->memory.first[index]; i < a->memory.first[index + 1];
         i++) {
        if (a->memory.fields[i].name != NULL) {
            LAC_TRY(get_field(r, a, name, &a->memory.fields[i], apply));
            seen++;
        }
    }
    if (seen != saved) {
        return lac_fail(
            LAC_ERR_INVALID, "state: %s has %u fields, expected %u", name,
            saved, seen);
    }
    return LAC_OK;
}

static const lac_tensor *find_tensor(const lac_algorithm *a, text name)
{
    for (size_t t = 0; t < lac_layout_count(a->worker.layout); t++) {
        const lac_tensor *const tensor = lac_layout_tensor(a->worker.layout, t);
        if (same_text(name, tensor->name)) {
            return tensor;
        }
    }
    return NULL;
}

static lac_status get_tensor(reader *r, lac_algorithm *a, bool apply)
{
    const text name = get_text(r);
    const uint64_t rows = get_u64(r), cols = get_u64(r), round = get_u64(r);
    const lac_tensor *const tensor = find_tensor(a, name);
    if (tensor == NULL) {
        return lac_fail(
            LAC_ERR_INVALID, "state: tensor %.*s is not in the layout",
            shown(name), name.start);
    }
    if (rows != tensor->shape.rows || cols != tensor->shape.cols) {
        return lac_fail(
            LAC_ERR_INVALID, "state: %s is %llu x %llu, expected %zu x %zu",
            tensor->name, (unsigned long long)rows, (unsigned long long)cols,
            tensor->shape.rows, tensor->shape.cols);
    }
    const size_t index =
        (size_t)(tensor - lac_layout_tensor(a->worker.layout, 0));
    if (a->progress[index].named) {
        return lac_fail(
            LAC_ERR_CORRUPT, "state: %s is there twice", tensor->name);
    }
    a->progress[index].named = true;
    LAC_TRY(get_fields(r, a, index, tensor->name, apply));
    if (apply) {
        a->progress[index].next_round = round;
        a->progress[index].begun = false;
    }
    return LAC_OK;
}

static lac_status get_state(
    lac_algorithm *a, const uint8_t *in, size_t len, bool apply)
{
    reader r = {in, in + len, false};
    lac_status status = get_head(&r, a, apply);
    for (size_t t = 0;
         status == LAC_OK && t < lac_layout_count(a->worker.layout); t++) {
        status = get_tensor(&r, a, apply);
    }
    for (size_t t = 0; t < lac_layout_count(a->worker.layout); t++) {
        a->progress[t].named = false;
    }
    if (r.cut || (status == LAC_OK && r.next != r.end)) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "state: has %zu bytes, which is not what its "
            "fields add up to",
            len);
    }
    return status;
}

lac_status lac_algorithm_load(lac_algorithm *a, const uint8_t *in, size_t len)
{
    if (len < 8 || laci_get_u64(in + len - 8) != XXH3_64bits(in, len - 8)) {
        return lac_fail(
            LAC_ERR_CORRUPT, "state: the checksum of its %zu bytes is wrong",
            len);
    }
    LAC_TRY(get_state(a, in, len - 8, false));
    LAC_TRY(get_state(a, in, len - 8, true));
    a->started = true;
    return LAC_OK;
}
