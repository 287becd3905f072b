// SPDX-License-Identifier: MIT
// The state of an algorithm as bytes: fields by the names of tensor, field and
// peer, so that the order of tensors in a layout does not matter.
//
//     8 bytes   "LACSTATE"
//     u32       version, 1
//     u32       rank, u32 world
//     text      algorithm (u32 length, then the characters), with settings
//     text      spec of the compressor, empty where there is none
//     u64       seed, u64 hash of the topology or 0
//     u64       bits of its step size, a double; 0 where there is none
//     u32       number of tensors; for each
//       text      name
//       u64       rows, u64 columns, u64 next round; its highest bit is set
//                 between begin and end if begin has changed the fields: only
//                 a round that is held is loaded
//       u32       number of saved fields, the low ones (laci_plan_low) only if
//                 the tensor has come in double; for each
//         text      name
//         u32       peer, or 2^32 - 1
//         u64       number of floats, then the floats
//     u64       bytes of the state of its inner algorithm, then these bytes, in
//               this form; only where there is one
//     u64       XXH3 of all bytes before
//
// Loading checks everything before it changes the state. Saving refuses what
// loading would refuse. Of the state of another worker, which is loaded on
// request, only the rounds, the step size and the shared fields are used; the
// other fields become zero.
#include <string.h>

#include <xxhash.h>

#include "algorithm/framework/handle.h"
#include "algorithm/framework/state_bytes.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "kernels/vector.h"

#define MAGIC "LACSTATE"

enum {
    MAGIC_LEN = 8,
    VERSION = 1,
    CHECKSUM_SIZE = 8,
    STEP_MAX = 2,
};

// Set between begin and end; load rejects it.
#define BEGUN (UINT64_C(1) << 63)

static double state_step_of(const lac_algorithm *a)
{
    return a->ops->step == NULL ? 0 : a->ops->step(a->state)->value;
}

static uint64_t topology_hash(const lac_algorithm *a)
{
    return a->worker.topology == NULL ? 0
                                      : lac_topology_hash(a->worker.topology);
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static lac_status nonfinite_field(
    lac_status status, const char *tensor, const laci_field *field)
{
    return lac_fail(
        status, "state: %s has a value in field %s that is not finite", tensor,
        field->name);
}

// Fails when a field is not finite: a NaN would stay in it for ever, and reach
// the other workers from there.
static lac_status put_field(
    state_writer *w, const lac_algorithm *a, const char *tensor,
    const laci_field *field)
{
    put_text(w, field->name);
    put_u32(w, field->peer);
    put_u64(w, field->count);
    if (w->out != NULL && field->count > 0) {
        const float *values = field->values;
        if (field->is_errors) {
            laci_field_read(field, a->round.scratch);
            values = a->round.scratch;
        }
        if (!laci_all_finite(a->worker.kernels, values, field->count)) {
            return nonfinite_field(LAC_ERR_INVALID, tensor, field);
        }
        laci_put_floats(w->out + w->len, values, field->count);
    }
    w->len += field->count * sizeof(float);
    return LAC_OK;
}

static lac_status put_tensor(
    state_writer *w, const lac_algorithm *a, size_t index)
{
    const lac_tensor *const tensor = lac_layout_tensor(a->worker.layout, index);
    uint32_t saved = 0;
    for (size_t i = a->fields.first[index]; i < a->fields.first[index + 1];
         i++) {
        saved += laci_field_saved(&a->fields.fields[i]);
    }
    put_text(w, tensor->name);
    put_u64(w, tensor->shape.rows);
    put_u64(w, tensor->shape.cols);
    const bool begun =
        a->progress[index].begun && (a->ops->begin_saves || laci_holds(a));
    put_u64(w, a->progress[index].next_round | (begun ? BEGUN : 0));
    put_u32(w, saved);
    for (size_t i = a->fields.first[index]; i < a->fields.first[index + 1];
         i++) {
        if (laci_field_saved(&a->fields.fields[i])) {
            LAC_TRY(put_field(w, a, tensor->name, &a->fields.fields[i]));
        }
    }
    return LAC_OK;
}

static lac_status put_state(state_writer *w, const lac_algorithm *a);

static lac_status put_inner(state_writer *w, const lac_algorithm *inner)
{
    state_writer nested = {0};
    put_u64(w, lac_algorithm_state_size(inner));
    nested.out = w->out == NULL ? NULL : w->out + w->len;
    LAC_TRY(put_state(&nested, inner));
    w->len += nested.len;
    return LAC_OK;
}

static lac_status put_state(state_writer *w, const lac_algorithm *a)
{
    const size_t tensors = lac_layout_count(a->worker.layout);
    put_bytes(w, MAGIC, MAGIC_LEN);
    put_u32(w, VERSION);
    put_u32(w, a->worker.rank);
    put_u32(w, a->worker.world);
    put_text(w, a->worker.spec);
    put_text(w, a->worker.compressor_spec);
    put_u64(w, a->worker.seed);
    put_u64(w, topology_hash(a));
    put_u64(w, bits_of(state_step_of(a)));
    put_u32(w, (uint32_t)tensors);
    for (size_t t = 0; t < tensors; t++) {
        LAC_TRY(put_tensor(w, a, t));
    }
    if (a->worker.inner != NULL) {
        LAC_TRY(put_inner(w, a->worker.inner));
    }
    if (w->out != NULL) {
        laci_put_u64(w->out + w->len, XXH3_64bits(w->out, w->len));
    }
    w->len += CHECKSUM_SIZE;
    return LAC_OK;
}

size_t lac_algorithm_state_size(const lac_algorithm *a)
{
    state_writer w = {0};
    // Only counting cannot fail.
    return put_state(&w, a) == LAC_OK ? w.len : 0;
}

// Fails for a state that load refuses.
static lac_status check_saveable(const lac_algorithm *a)
{
    if (a->ops->start != NULL && !a->started) {
        return lac_fail(
            LAC_ERR_INVALID, "state: %s has not started", a->worker.algorithm);
    }
    for (size_t t = 0; t < lac_layout_count(a->worker.layout); t++) {
        if (a->progress[t].begun && a->ops->begin_saves) {
            return lac_fail(
                LAC_ERR_INVALID,
                "state: round %llu of %s was begun and not ended, expected to "
                "save between rounds",
                (unsigned long long)a->progress[t].next_round,
                lac_layout_tensor(a->worker.layout, t)->name);
        }
    }
    return a->worker.inner == NULL ? LAC_OK : check_saveable(a->worker.inner);
}

lac_status lac_algorithm_save(const lac_algorithm *a, uint8_t *out, size_t cap)
{
    const size_t size = lac_algorithm_state_size(a);
    if (cap < size) {
        return lac_fail(
            LAC_ERR_SPACE, "state: needs %zu bytes, there are %zu", size, cap);
    }
    LAC_TRY(check_saveable(a));
    state_writer w = {.out = out};
    return put_state(&w, a);
}

// A step size that is a setting must equal the saved one; one that is searched
// is replaced by it.
static lac_status get_step(state_reader *r, const lac_algorithm *a)
{
    const uint64_t bits = get_u64(r);
    double step;
    memcpy(&step, &bits, sizeof(step));
    if (a->ops->step == NULL) {
        return bits == 0
                   ? LAC_OK
                   : lac_fail(
                         LAC_ERR_CORRUPT, "state: gamma is %g, %s has none",
                         step, a->worker.algorithm);
    }
    if (!(step > 0 && step <= STEP_MAX)) {
        return lac_fail(
            LAC_ERR_CORRUPT, "state: gamma is %g, expected in (0, %d]", step,
            STEP_MAX);
    }
    laci_step_size *const here = a->ops->step(a->state);
    if (here->setting.word < 0 && bits != bits_of(here->value)) {
        return lac_fail(
            LAC_ERR_INVALID, "state: gamma is %.17g, expected %.17g", step,
            here->value);
    }
    if (r->apply) {
        here->value = step;
    }
    return LAC_OK;
}

// Returns whether a state belongs to this algorithm. The only setting of an
// algorithm with a step size is that step size, which get_step checks.
static bool same_algorithm(text spec, const lac_algorithm *a)
{
    const char *const colon = memchr(spec.start, ':', spec.len);
    const text name = {
        spec.start, colon == NULL ? spec.len : (size_t)(colon - spec.start)};
    return a->ops->step == NULL ? same_text(spec, a->worker.spec)
                                : same_text(name, a->ops->plugin.name);
}

static lac_status check_worker(
    state_reader *r, const lac_algorithm *a, uint32_t rank, uint32_t world)
{
    const laci_worker *const w = &a->worker;
    r->foreign = rank != w->rank || world != w->world;
    if (r->foreign && !r->other_world) {
        return lac_fail(
            LAC_ERR_INVALID,
            "state: is of worker %u of %u, expected %u of %u%s", rank, world,
            w->rank, w->world,
            a->ops->family == LAC_FAMILY_GRADIENT
                ? "; LAC_LOAD_OTHER_WORLD loads what all workers share"
                : "");
    }
    if (rank >= world) {
        return lac_fail(
            LAC_ERR_CORRUPT, "state: is of worker %u of %u", rank, world);
    }
    return LAC_OK;
}

// Reads the head up to the number of tensors.
static lac_status get_head(state_reader *r, const lac_algorithm *a)
{
    const uint8_t *const found = get_bytes(r, MAGIC_LEN);
    const uint32_t version = get_u32(r);
    const uint32_t rank = get_u32(r);
    const uint32_t world = get_u32(r);
    const text name = get_text(r);
    const text compressor = get_text(r);
    const uint64_t seed = get_u64(r), topology = get_u64(r);
    if (found == NULL || memcmp(found, MAGIC, MAGIC_LEN) != 0) {
        return lac_fail(LAC_ERR_CORRUPT, "state: is not a state of laconic");
    }
    if (version != VERSION) {
        return lac_fail(
            LAC_ERR_CORRUPT, "state: version is %u, expected %u", version,
            (unsigned)VERSION);
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
    LAC_TRY(check_worker(r, a, rank, world));
    if (seed != a->worker.seed || topology != topology_hash(a)) {
        return lac_fail(
            LAC_ERR_INVALID, "state: is of another %s",
            seed != a->worker.seed ? "seed" : "topology");
    }
    LAC_TRY(get_step(r, a));
    const uint32_t tensors = get_u32(r);
    if (tensors != lac_layout_count(a->worker.layout)) {
        return lac_fail(
            LAC_ERR_INVALID, "state: has %u tensors, expected %zu", tensors,
            lac_layout_count(a->worker.layout));
    }
    return LAC_OK;
}

// Writes the floats of a state to a field. What belongs to another worker
// becomes zero.
static void apply_field(
    const state_reader *r, const lac_algorithm *a, const uint8_t *floats,
    laci_field *field)
{
    float *const values = field->is_errors ? a->round.scratch : field->values;
    field->is_used = true;
    if (field->count == 0) {
        return;
    }
    if (r->foreign && !field->shared) {
        memset(values, 0, field->count * sizeof(*values));
    } else {
        laci_get_floats(floats, values, field->count);
    }
    if (field->is_errors) {
        laci_field_write(field, values);
    }
}

static lac_status get_field(
    state_reader *r, const lac_algorithm *a, const char *tensor,
    laci_field *field)
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
    if (floats == NULL) {
        return LAC_OK; // get_state reports the cut
    }
    if (a->worker.kernels->vector->max_payload(floats, field->count) >=
        LACI_INFINITY_BITS) {
        return nonfinite_field(LAC_ERR_CORRUPT, tensor, field);
    }
    if (r->apply) {
        apply_field(r, a, floats, field);
    }
    return LAC_OK;
}

// A state without low fields is one of floats.
static void clear_low(const state_reader *r, laci_field *field)
{
    if (!r->apply) {
        return;
    }
    field->is_used = false;
    if (field->values != NULL && field->count > 0) {
        memset(field->values, 0, field->count * sizeof(float));
    }
}

static lac_status get_fields(
    state_reader *r, lac_algorithm *a, size_t index, const char *name)
{
    const uint32_t saved = get_u32(r);
    uint32_t seen = 0;
    for (size_t i = a->fields.first[index]; i < a->fields.first[index + 1];
         i++) {
        laci_field *const field = &a->fields.fields[i];
        if (field->is_low && seen == saved) {
            clear_low(r, field);
        } else if (field->name != NULL) {
            LAC_TRY(get_field(r, a, name, field));
            // For the reading that applies, which cannot fail.
            LAC_TRY(laci_field_reserve(field));
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

// Returns the index of a tensor, which is `expected` unless layouts differ in
// order; the number of tensors if there is none of this name.
static size_t find_tensor(const lac_algorithm *a, text name, size_t expected)
{
    const lac_layout *const layout = a->worker.layout;
    if (same_text(name, lac_layout_tensor(layout, expected)->name)) {
        return expected;
    }
    size_t t = 0;
    while (t < lac_layout_count(layout) &&
           !same_text(name, lac_layout_tensor(layout, t)->name)) {
        t++;
    }
    return t;
}

static lac_status get_tensor(state_reader *r, lac_algorithm *a, size_t expected)
{
    const text name = get_text(r);
    const uint64_t rows = get_u64(r), cols = get_u64(r), round = get_u64(r);
    const size_t index = find_tensor(a, name, expected);
    if (index == lac_layout_count(a->worker.layout)) {
        return lac_fail(
            LAC_ERR_INVALID, "state: tensor %.*s is not in the layout",
            shown(name), name.start);
    }
    const lac_tensor *const tensor = lac_layout_tensor(a->worker.layout, index);
    if (rows != tensor->shape.rows || cols != tensor->shape.cols) {
        return lac_fail(
            LAC_ERR_INVALID, "state: %s is %llu x %llu, expected %zu x %zu",
            tensor->name, (unsigned long long)rows, (unsigned long long)cols,
            tensor->shape.rows, tensor->shape.cols);
    }
    if ((round & BEGUN) != 0 && !laci_holds(a)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "state: round %llu of %s was begun and not ended, expected one "
            "between rounds",
            (unsigned long long)(round & ~BEGUN), tensor->name);
    }
    if (a->progress[index].listed) {
        return lac_fail(
            LAC_ERR_CORRUPT, "state: %s is there twice", tensor->name);
    }
    a->progress[index].listed = true;
    a->progress[index].read_round = round;
    LAC_TRY(get_fields(r, a, index, tensor->name));
    if (r->apply) {
        a->progress[index].next_round = round & ~BEGUN;
        a->progress[index].begun = (round & BEGUN) != 0;
        a->progress[index].loaded = a->progress[index].begun;
    }
    return LAC_OK;
}

static lac_status check_checksum(const uint8_t *in, size_t len)
{
    return len >= CHECKSUM_SIZE && laci_get_u64(in + len - CHECKSUM_SIZE) ==
                                       XXH3_64bits(in, len - CHECKSUM_SIZE)
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_CORRUPT,
                     "state: the checksum of its %zu bytes is wrong", len);
}

static lac_status get_state(
    lac_algorithm *a, const uint8_t *in, size_t len, unsigned flags,
    bool apply);

// The inner algorithm has made as many rounds of every tensor, and one more
// where a round is held.
static lac_status check_inner_rounds(
    const lac_algorithm *a, const lac_algorithm *inner)
{
    for (size_t t = 0; t < lac_layout_count(a->worker.layout); t++) {
        const uint64_t read = a->progress[t].read_round;
        const uint64_t expected = (read & ~BEGUN) + ((read & BEGUN) != 0);
        if (inner->progress[t].read_round != expected) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "state: round of %s in the inner algorithm %s is %llu, "
                "expected %llu",
                lac_layout_tensor(a->worker.layout, t)->name,
                inner->worker.algorithm,
                (unsigned long long)inner->progress[t].read_round,
                (unsigned long long)expected);
        }
    }
    return LAC_OK;
}

static lac_status get_inner(
    state_reader *r, lac_algorithm *inner, unsigned flags)
{
    const uint64_t len = get_u64(r);
    const uint8_t *const bytes = get_bytes(r, len);
    if (bytes == NULL) {
        return LAC_OK; // get_state reports the cut
    }
    LAC_TRY(check_checksum(bytes, len));
    LAC_TRY(get_state(inner, bytes, len - CHECKSUM_SIZE, flags, r->apply));
    inner->started = inner->started || r->apply;
    return LAC_OK;
}

static lac_status get_state(
    lac_algorithm *a, const uint8_t *in, size_t len, unsigned flags, bool apply)
{
    state_reader r = {
        .next = in,
        .end = in + len,
        .apply = apply,
        .other_world = (flags & LAC_LOAD_OTHER_WORLD) != 0,
    };
    lac_status status = get_head(&r, a);
    for (size_t t = 0;
         status == LAC_OK && t < lac_layout_count(a->worker.layout); t++) {
        status = get_tensor(&r, a, t);
    }
    for (size_t t = 0; t < lac_layout_count(a->worker.layout); t++) {
        a->progress[t].listed = false;
    }
    if (a->worker.inner != NULL && status == LAC_OK && !r.cut) {
        status = get_inner(&r, a->worker.inner, flags);
    }
    if (a->worker.inner != NULL && status == LAC_OK && !r.cut) {
        status = check_inner_rounds(a, a->worker.inner);
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

// A round that is held is in the state, and load replaces it.
static lac_status expect_between_rounds(const lac_algorithm *a)
{
    for (size_t t = 0; t < lac_layout_count(a->worker.layout); t++) {
        if (a->progress[t].begun && !laci_holds(a)) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: round %llu of %s was begun and not ended, expected to "
                "load between rounds",
                a->worker.algorithm,
                (unsigned long long)a->progress[t].next_round,
                lac_layout_tensor(a->worker.layout, t)->name);
        }
    }
    return LAC_OK;
}

static lac_status check_flags(const lac_algorithm *a, unsigned flags)
{
    if ((flags & ~(unsigned)LAC_LOAD_OTHER_WORLD) != 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "state: the flags of load are %#x, expected 0 or %#x", flags,
            (unsigned)LAC_LOAD_OTHER_WORLD);
    }
    if (flags != 0 && a->ops->family != LAC_FAMILY_GRADIENT) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: LAC_LOAD_OTHER_WORLD was given, but a model algorithm loads "
            "the state of its own worker only",
            a->worker.algorithm);
    }
    return LAC_OK;
}

lac_status lac_algorithm_load_with(
    lac_algorithm *a, const uint8_t *in, size_t len, unsigned flags)
{
    LAC_TRY(check_flags(a, flags));
    LAC_TRY(expect_between_rounds(a));
    LAC_TRY(check_checksum(in, len));
    LAC_TRY(get_state(a, in, len - CHECKSUM_SIZE, flags, false));
    LAC_TRY(get_state(a, in, len - CHECKSUM_SIZE, flags, true));
    a->started = true;
    return LAC_OK;
}

lac_status lac_algorithm_load(lac_algorithm *a, const uint8_t *in, size_t len)
{
    return lac_algorithm_load_with(a, in, len, 0);
}
