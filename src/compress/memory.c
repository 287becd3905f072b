// SPDX-License-Identifier: MIT
// Error memory: e += x, then a payload C(e), and, once that is delivered,
// e -= C(e). A compressor may have ops of its own for this, to save passes over
// the values. The floats and their tail are then in a form that only it knows.
//
// The values are always finite. Adding is refused when a sum overflows, or is
// larger than the compressor can encode. A value that subtracting makes larger
// than that becomes the largest one; an infinity or NaN, which takes a
// compressor whose C(e) overflows, becomes 0.
//
// A bound of max|e| shows in nearly all steps, without a pass over the values,
// that nothing can overflow. Adding x raises it by max|x|, subtracting C(e)
// multiplies it by the growth of the compressor. When the bound is too large,
// one pass finds max|e| itself.
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "compress/compressor.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

enum { TILE = 256 }; // values summed at a time

// Covers the rounding of floats in a step, and of a scale or norm that is a
// sum of floats.
#define ROUNDING (1 + 0x1p-16)

struct lac_memory {
    lac_compressor *c;
    lac_shape shape;
    size_t size; // of block
    float *block;
    double bound;  // at least max|e|
    double growth; // of c for this shape
    double limit;  // the largest magnitude that c encodes
    bool encoded;  // not settled since the last encode
};

lac_status lac_memory_open(lac_memory **out, lac_compressor *c, lac_shape shape)
{
    *out = NULL;
    LAC_TRY(lac_compressor_reserve(c, shape));
    const size_t n = lac_shape_values(shape);
    lac_memory *const m = laci_zalloc(sizeof(*m));
    const size_t size = n * sizeof(float) + c->ops->memory_tail;
    float *const block = m == NULL ? NULL : laci_zalloc_aligned(size);
    if (block == NULL) {
        laci_free(m);
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for the errors of %zu x %zu values",
            c->name, shape.rows, shape.cols);
    }
    *m = (lac_memory){
        .c = c,
        .shape = shape,
        .size = size,
        .block = block,
        .growth = n == 0 ? 1 : laci_payload_growth(c, shape),
        .limit =
            n == 0 ? (double)FLT_MAX : (double)laci_payload_largest(c, shape),
    };
    *out = m;
    return LAC_OK;
}

void lac_memory_close(lac_memory *m)
{
    if (m != NULL) {
        laci_free_aligned(m->block);
        laci_free(m);
    }
}

// Returns the largest |e|, after every value that is not finite became 0, and
// every one beyond the limit became the limit, so that it can be encoded.
static float make_valid(const lac_memory *m)
{
    const size_t n = lac_shape_values(m->shape);
    const laci_vector_kernels *const vector = m->c->kernels->vector;
    float *const e = m->block;
    const float limit = (float)m->limit;
    float max = laci_float_of(vector->max_magnitude(e, n));
    if (!(max <= limit)) {
        max = 0;
        for (size_t i = 0; i < n; i++) {
            e[i] = isfinite(e[i]) ? fmaxf(fminf(e[i], limit), -limit) : 0;
            max = fmaxf(max, fabsf(e[i]));
        }
    }
    return max;
}

// Replaces a form of the compressor's own by the plain values.
static void make_plain(const lac_memory *m)
{
    const lac_compressor *const c = m->c;
    const size_t n = lac_shape_values(m->shape);
    if (c->ops->residual != NULL) {
        const lac_call call = laci_call_make(c, &(lac_key){0}, m->shape);
        c->ops->residual(c->state, &call, m->block, m->block);
        memset(m->block + n, 0, c->ops->memory_tail);
    }
}

// Sets the bound to max|e|. The values are then plain.
static void memory_measure(lac_memory *m)
{
    make_plain(m);
    m->bound = (double)make_valid(m);
}

// The first value of which e + x is above the limit or NaN, n if there is none.
// The block holds plain values.
static size_t find_overflow(const lac_memory *m, const float *x)
{
    const size_t n = lac_shape_values(m->shape);
    for (size_t start = 0; start < n; start += TILE) {
        const size_t count = n - start < TILE ? n - start : TILE;
        float sum[TILE];
        memcpy(sum, m->block + start, count * sizeof(*sum));
        m->c->kernels->vector->add(x + start, sum, count);
        for (size_t i = 0; i < count; i++) {
            if (!(fabs((double)sum[i]) <= m->limit)) {
                return start + i;
            }
        }
    }
    return n;
}

static bool is_safe(const lac_memory *m, float max_magnitude)
{
    return m->bound + (double)max_magnitude <= m->limit;
}

bool lac_memory_accepts(lac_memory *m, const float *x, float max_magnitude)
{
    if (is_safe(m, max_magnitude) || lac_shape_values(m->shape) == 0) {
        return true;
    }
    memory_measure(m);
    return is_safe(m, max_magnitude) ||
           find_overflow(m, x) == lac_shape_values(m->shape);
}

// Reports why lac_memory_accepts returned false.
static lac_status memory_refuse(const lac_memory *m, const float *x)
{
    const size_t i = find_overflow(m, x);
    if (!isfinite(x[i])) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: value %zu is %g, expected a finite one",
            m->c->name, i, (double)x[i]);
    }
    return lac_fail(
        LAC_ERR_INVALID,
        "%s: the error memory overflows: value %zu is %g, %g is added, "
        "expected at most %g",
        m->c->name, i, (double)m->block[i], (double)x[i], m->limit);
}

// e += x, encoded in parts where the compressor can, while each is in the
// cache.
typedef struct memory_addition {
    const lac_memory *m;
    const lac_call *call;
    const float *x;
    uint8_t *out; // or NULL: only adds
} memory_addition;

static void add_share(void *context, size_t first, size_t n)
{
    const memory_addition *const a = context;
    const lac_compressor *const c = a->m->c;
    for (size_t i = first, some; i < first + n; i += some) {
        some = first + n - i < LAC_PART ? first + n - i : LAC_PART;
        c->kernels->vector->add(a->x + i, a->m->block + i, some);
        if (a->out != NULL) {
            laci_payload_encode_part(
                c, a->call, a->m->block + i, (lac_part){i, some}, a->out);
        }
    }
}

static size_t memory_add_parts(
    const lac_memory *m, const lac_call *call, const float *x, uint8_t *out)
{
    const lac_compressor *const c = m->c;
    const bool parts = laci_payload_encodes_parts(c);
    memory_addition addition = {m, call, x, parts ? out : NULL};
    laci_pool_run(
        c->pool, lac_shape_values(m->shape), LAC_PART, add_share, &addition);
    return parts ? laci_payload_encode_key(c, call, out)
                 : laci_payload_encode(c, call, m->block, out);
}

// Encodes after the arguments were checked. There is at least one value.
static lac_status add_and_encode(
    lac_memory *m, const lac_key *key, const float *x, float max_magnitude,
    uint8_t *out, size_t *len_out)
{
    const lac_compressor *const c = m->c;
    if (!lac_memory_accepts(m, x, max_magnitude)) {
        return memory_refuse(m, x);
    }
    const lac_call call = laci_call_make(c, key, m->shape);
    if (c->ops->encode_add != NULL) {
        *len_out = c->ops->encode_add(c->state, &call, x, m->block, out);
    } else {
        *len_out = memory_add_parts(m, &call, x, out);
    }
    m->bound = (m->bound + (double)max_magnitude) * ROUNDING;
    m->bound = fmin(m->bound, (double)FLT_MAX);
    m->encoded = true;
    return LAC_OK;
}

lac_status lac_memory_encode_bounded(
    lac_memory *m, const lac_key *key, const float *x, float max_magnitude,
    uint8_t *out, size_t cap, size_t *len_out)
{
    LAC_TRY(laci_encode_check(m->c, key, m->shape, x, out, cap));
    if (lac_shape_values(m->shape) == 0) {
        *len_out = 0;
        return LAC_OK;
    }
    return add_and_encode(m, key, x, max_magnitude, out, len_out);
}

lac_status lac_memory_encode(
    lac_memory *m, const lac_key *key, const float *x, uint8_t *out, size_t cap,
    size_t *len_out)
{
    const size_t n = lac_shape_values(m->shape);
    LAC_TRY(laci_encode_check(m->c, key, m->shape, x, out, cap));
    if (n == 0) {
        *len_out = 0;
        return LAC_OK;
    }
    const float max = laci_float_of(m->c->kernels->vector->max_magnitude(x, n));
    return add_and_encode(m, key, x, max, out, len_out);
}

void laci_error_memory_settle(
    lac_memory *m, const lac_key *key, const uint8_t *in, size_t len)
{
    if (lac_shape_values(m->shape) == 0) {
        return;
    }
    const lac_compressor *const c = m->c;
    const lac_call call = laci_call_make(c, key, m->shape);
    if (c->ops->settle != NULL) {
        c->ops->settle(c->state, &call, in, len, m->block);
    } else {
        laci_payload_decode_add(c, &call, in, len, -1.0f, m->block);
    }
    // The rounding of a subnormal value may add as much as the least normal.
    m->bound = fmax(m->bound, (double)FLT_MIN) * m->growth * ROUNDING;
    if (!m->encoded || m->bound > m->limit) {
        memory_measure(m);
    }
    m->encoded = false;
}

void laci_error_memory_decay(lac_memory *m, float decay)
{
    if (decay != 1 && lac_shape_values(m->shape) > 0) {
        make_plain(m);
        m->c->kernels->gossip->scale(
            decay, m->block, m->block, lac_shape_values(m->shape));
        m->bound *= (double)decay * ROUNDING;
    }
}

lac_status lac_memory_settle(
    lac_memory *m, const lac_key *key, const uint8_t *in, size_t len)
{
    LAC_TRY(lac_compressor_check(m->c, key, m->shape, in, len));
    laci_error_memory_settle(m, key, in, len);
    return LAC_OK;
}

void lac_memory_read(const lac_memory *m, float *e)
{
    const size_t n = lac_shape_values(m->shape);
    if (n > 0 && m->c->ops->residual != NULL) {
        const lac_call call = laci_call_make(m->c, &(lac_key){0}, m->shape);
        m->c->ops->residual(m->c->state, &call, m->block, e);
    } else if (n > 0) {
        memcpy(e, m->block, n * sizeof(*e));
    }
}

void lac_memory_write(lac_memory *m, const float *e)
{
    const size_t n = lac_shape_values(m->shape);
    if (n > 0) {
        memcpy(m->block, e, n * sizeof(*e));
        memset(m->block + n, 0, m->size - n * sizeof(*e));
        m->bound = (double)make_valid(m);
        m->encoded = false;
    }
}

size_t laci_error_memory_size(const lac_compressor *c, lac_shape shape)
{
    return sizeof(lac_memory) + lac_shape_values(shape) * sizeof(float) +
           c->ops->memory_tail;
}

size_t lac_memory_size(const lac_memory *m)
{
    return laci_error_memory_size(m->c, m->shape);
}
