// SPDX-License-Identifier: MIT
// Loading a state: the bytes of state.h, which may be anything.
#include "algorithm/state.h"

#include <string.h>

#include <xxhash.h>

#include "base/bytes.h"
#include "base/fail.h"

enum { SHOWN_MAX = 60, STEP_MAX = 2, EXPONENT_ALL_ONES = 0x7f800000 };

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
    const double here = laci_state_step(a);
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
    if (here > 0 && bits != laci_state_bits(here)) {
        return lac_fail(
            LAC_ERR_INVALID, "state: gamma is %.17g, expected %.17g", step,
            here);
    }
    if (apply) {
        *a->ops->step(a->state) = step;
    }
    return LAC_OK;
}

// Whether a state is of this algorithm. Of those with a step size that may be
// looked for, the settings are that step size, which has a check of its own.
static bool same_algorithm(text spec, const lac_algorithm *a)
{
    const char *const colon = memchr(spec.start, ':', spec.len);
    const text name = {
        spec.start, colon == NULL ? spec.len : (size_t)(colon - spec.start)};
    return a->ops->step == NULL ? same_text(spec, a->worker.spec)
                                : same_text(name, a->ops->plugin.name);
}

// Reads the head up to the number of tensors.
static lac_status get_head(reader *r, const lac_algorithm *a, bool apply)
{
    const uint8_t *const found = get_bytes(r, LACI_STATE_MAGIC_LEN);
    const uint32_t version = get_u32(r);
    const uint32_t rank = get_u32(r);
    const uint32_t world = get_u32(r);
    const text name = get_text(r);
    const text compressor = get_text(r);
    const uint64_t seed = get_u64(r), topology = get_u64(r);
    if (found == NULL ||
        memcmp(found, LACI_STATE_MAGIC, LACI_STATE_MAGIC_LEN) != 0) {
        return lac_fail(LAC_ERR_CORRUPT, "state: is not one of laconic");
    }
    if (version != LACI_STATE_VERSION) {
        return lac_fail(
            LAC_ERR_CORRUPT, "state: version is %u, expected %u", version,
            (unsigned)LACI_STATE_VERSION);
    }
    if (!same_algorithm(name, a)) {
        return lac_fail(
            LAC_ERR_INVALID, "state: algorithm is %.*s, expected %s",
            shown(name), name.start, a->worker.spec);
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
    if (seed != a->worker.seed || topology != laci_state_topology(a)) {
        return lac_fail(
            LAC_ERR_INVALID, "state: is of another %s",
            seed != a->worker.seed ? "seed" : "topology");
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

// A NaN would stay in a memory for ever, and reach the other workers from
// there.
static lac_status check_finite(
    const uint8_t *floats, const char *tensor, const laci_field *field)
{
    for (size_t i = 0; i < field->count; i++) {
        const uint32_t bits = laci_get_u32(floats + i * sizeof(float));
        if ((bits & EXPONENT_ALL_ONES) == EXPONENT_ALL_ONES) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "state: %s has a value in field %s that is not finite", tensor,
                field->name);
        }
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
    if (!apply && floats != NULL) {
        return check_finite(floats, tensor, field);
    }
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
    if ((round & LACI_STATE_BEGUN) != 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "state: round %llu of %s was begun and not ended, expected one "
            "between rounds",
            (unsigned long long)(round & ~LACI_STATE_BEGUN), tensor->name);
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
