// SPDX-License-Identifier: MIT
#include "compress/sparse.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "kernels/vector.h"

enum { PREFETCH_INDICES = 256 };

// The payload whose indices are in the scratch. `in` is NULL when there is
// none.
typedef struct cached {
    const uint8_t *in;
    size_t len;
    size_t head; // bytes of the payload that code the indices
    lac_key key;
    lac_shape shape;
} cached;

// The scratch of one call: the header, the indices, the values if there is an
// inner compressor, and the rest, which the sparsifier's own ops and the inner
// compressor use one after the other.
typedef struct workspace {
    cached *cached;
    uint32_t *indices;
    float *values;
    size_t kept;
    lac_call outer; // of the sparsifier's own ops
    lac_call inner;
} workspace;

lac_shape laci_sparse_kept(const lac_compressor *c, lac_shape shape)
{
    return (lac_shape){c->ops->sparsifier->keep(c->state, shape), 1};
}

static size_t header_size(void)
{
    return laci_aligned(sizeof(cached));
}

static size_t indices_size(size_t kept)
{
    return laci_aligned(kept * sizeof(uint32_t));
}

static size_t values_size(const lac_compressor *c, size_t kept)
{
    return c->inner == NULL ? 0 : laci_aligned(kept * sizeof(float));
}

// The inner compressor has draws of its own.
static lac_key inner_key(const lac_key *key)
{
    lac_key inner = lac_key_make(
        key->low, LAC_PURPOSE_INNER, key->high, lac_scope_shared(), 0);
    inner.scope = key->scope;
    return inner;
}

static workspace sparse_lay_out(const lac_compressor *c, const lac_call *call)
{
    const lac_shape shape = laci_sparse_kept(c, call->shape);
    unsigned char *const scratch = call->scratch;
    unsigned char *const indices = scratch + header_size();
    unsigned char *const values = indices + indices_size(shape.rows);
    workspace w = {
        .cached = (void *)scratch,
        .indices = (void *)indices,
        .values = (void *)values,
        .kept = shape.rows,
        .outer = *call,
    };
    w.outer.scratch = values + values_size(c, shape.rows);
    w.inner = w.outer;
    w.inner.shape = shape;
    if (c->inner != NULL) {
        w.inner.key = inner_key(&call->key);
    }
    return w;
}

static bool same_key(const lac_key *a, const lac_key *b)
{
    return a->low == b->low && a->high == b->high && a->scope == b->scope;
}

static bool is_cached(const workspace *w, const uint8_t *in, size_t len)
{
    const cached *const have = w->cached;
    const lac_shape shape = w->outer.shape;
    return have->in == in && have->len == len &&
           have->shape.rows == shape.rows && have->shape.cols == shape.cols &&
           same_key(&have->key, &w->outer.key);
}

static void set_cached(
    const workspace *w, const uint8_t *in, size_t len, size_t head)
{
    *w->cached = (cached){in, len, head, w->outer.key, w->outer.shape};
}

size_t laci_sparse_scratch(const lac_compressor *c, lac_shape shape)
{
    const lac_shape kept = laci_sparse_kept(c, shape);
    const size_t outer =
        c->ops->scratch == NULL ? 0 : c->ops->scratch(c->state, shape);
    const size_t inner =
        c->inner == NULL ? 0 : laci_payload_scratch(c->inner, kept);
    return header_size() + indices_size(kept.rows) + values_size(c, kept.rows) +
           (outer > inner ? outer : inner);
}

unsigned laci_sparse_traits(const lac_compressor *c, lac_scope_kind scope)
{
    const unsigned plain =
        LAC_TRAIT_LINEAR | LAC_TRAIT_DETERMINISTIC | LAC_TRAIT_FIXED_SIZE;
    const unsigned inner =
        c->inner == NULL ? plain : lac_compressor_traits(c->inner, scope);
    if (!c->ops->sparsifier->random) {
        return inner & LAC_TRAIT_DETERMINISTIC;
    }
    // No indices are sent where the receiver can derive them.
    return scope == LAC_SCOPE_WORKER
               ? 0
               : inner & (LAC_TRAIT_LINEAR | LAC_TRAIT_FIXED_SIZE);
}

static double sparse_scale(const lac_compressor *c, lac_shape shape)
{
    const size_t kept = laci_sparse_kept(c, shape).rows;
    return c->ops->sparsifier->random && c->form == LAC_FORM_UNBIASED
               ? (double)lac_shape_values(shape) / (double)kept
               : 1;
}

// Let w1 be the error of the choice and w2 that of the inner compressor. Two
// unbiased operators together have w1 w2 + w1 + w2 (natural compression,
// theorem 5). Without scaling, the two errors are on different values: a part
// p >= 1 - w1 of |x|^2 is kept, and the error is p w2 + 1 - p.
lac_guarantee laci_sparse_guarantee(const lac_compressor *c, lac_shape shape)
{
    const lac_guarantee outer = c->ops->guarantee(c->state, shape, c->form);
    if (c->inner == NULL) {
        return outer;
    }
    const lac_guarantee inner =
        lac_compressor_guarantee(c->inner, laci_sparse_kept(c, shape));
    const double w1 = outer.error, w2 = inner.error;
    if (sparse_scale(c, shape) != 1) {
        return (lac_guarantee){
            .unbiased = outer.unbiased && inner.unbiased,
            .error = inner.unbiased ? w1 * w2 + w1 + w2
                                    : pow(sqrt(w1) + sqrt(w2 * (1 + w1)), 2),
        };
    }
    return (lac_guarantee){
        .unbiased = outer.unbiased && inner.unbiased,
        .error = fmax(w1 + (1 - w1) * w2, w2),
    };
}

size_t laci_sparse_bound(
    const lac_compressor *c, lac_shape shape, lac_scope_kind scope)
{
    const lac_shape kept = laci_sparse_kept(c, shape);
    return c->ops->sparsifier->indices_bound(c->state, shape, scope) +
           (c->inner == NULL ? kept.rows * sizeof(float)
                             : laci_payload_bound(c->inner, kept, scope));
}

// With a scale s, the error is that of scaling, s - 1, and that of the inner
// compressor on s x.
double laci_sparse_growth(const lac_compressor *c, lac_shape shape)
{
    const double scale = sparse_scale(c, shape);
    const double inner =
        c->inner == NULL
            ? 0
            : laci_payload_growth(c->inner, laci_sparse_kept(c, shape));
    return fmax(1, scale - 1 + scale * inner);
}

// The scaled values must be within the range of the inner compressor.
float laci_sparse_largest(const lac_compressor *c, lac_shape shape)
{
    const float inner =
        c->inner == NULL
            ? FLT_MAX
            : laci_payload_largest(c->inner, laci_sparse_kept(c, shape));
    return inner / (float)sparse_scale(c, shape);
}

size_t laci_sparse_encode(
    const lac_compressor *c, const lac_call *call, const float *x, uint8_t *out)
{
    const workspace w = sparse_lay_out(c, call);
    const lac_sparsifier_ops *const ops = c->ops->sparsifier;
    const float scale = (float)sparse_scale(c, call->shape);
    ops->choose(c->state, &w.outer, x, w.indices);
    const size_t head = ops->put_indices(c->state, &w.outer, w.indices, out);
    size_t len = head + w.kept * sizeof(float);
    if (c->inner == NULL) {
        for (size_t i = 0; i < w.kept; i++) {
            laci_put_f32(out + head + 4 * i, x[w.indices[i]] * scale);
        }
    } else {
        for (size_t i = 0; i < w.kept; i++) {
            w.values[i] = x[w.indices[i]] * scale;
        }
        len = head +
              laci_payload_encode(c->inner, &w.inner, w.values, out + head);
    }
    set_cached(&w, out, len, head);
    return len;
}

lac_status laci_sparse_check(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len)
{
    const workspace w = sparse_lay_out(c, call);
    size_t head = 0;
    w.cached->in = NULL;
    LAC_TRY(c->ops->sparsifier->get_indices(
        c->state, &w.outer, in, len, w.indices, &head));
    if (c->inner == NULL) {
        LAC_TRY(laci_check_length(c->name, len, head + w.kept * sizeof(float)));
    } else {
        LAC_TRY(laci_payload_check(c->inner, &w.inner, in + head, len - head));
    }
    set_cached(&w, in, len, head);
    return LAC_OK;
}

// Makes sure that the scratch holds the indices of the payload, and returns
// how many bytes code them. Indices read here are not used again: only check
// and encode know that the bytes are those they saw.
static size_t read_indices(
    const lac_compressor *c, const workspace *w, const uint8_t *in, size_t len)
{
    if (is_cached(w, in, len)) {
        return w->cached->head;
    }
    size_t head = 0;
    w->cached->in = NULL;
    // The place of the inner scratch depends on the shape: the header there may
    // belong to another payload, whose indices were overwritten.
    if (c->inner != NULL && c->inner->ops->sparsifier != NULL) {
        ((cached *)w->inner.scratch)->in = NULL;
    }
    const lac_status status = c->ops->sparsifier->get_indices(
        c->state, &w->outer, in, len, w->indices, &head);
    assert(status == LAC_OK);
    (void)status;
    return head;
}

// Value i, from the bytes of the payload or, where these are NULL, from those
// that the inner compressor decoded.
static inline float sparse_value(
    const workspace *w, const uint8_t *plain, size_t i)
{
    return plain == NULL ? w->values[i] : laci_get_f32(plain + 4 * i);
}

// Reads indices and values. Returns the bytes of the values, or decodes them
// and returns NULL. The caller may reuse the buffer afterwards, so the indices
// are not used again.
static const uint8_t *sparse_read(
    const lac_compressor *c, const workspace *w, const uint8_t *in, size_t len)
{
    const size_t head = read_indices(c, w, in, len);
    w->cached->in = NULL;
    if (c->inner == NULL) {
        return in + head;
    }
    laci_payload_decode(c->inner, &w->inner, in + head, len - head, w->values);
    return NULL;
}

void laci_sparse_decode(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len, float *x)
{
    const workspace w = sparse_lay_out(c, call);
    const uint8_t *const plain = sparse_read(c, &w, in, len);
    memset(x, 0, lac_shape_values(call->shape) * sizeof(*x));
    for (size_t i = 0; i < w.kept; i++) {
        x[w.indices[i]] = sparse_value(&w, plain, i);
    }
}

// The processor prefetches by itself, but not beyond a page, and not when the
// indices are in no order.
static inline void prefetch_value(const workspace *w, size_t i, const float *y)
{
    const size_t next =
        i + PREFETCH_INDICES < w->kept ? i + PREFETCH_INDICES : i;
    __builtin_prefetch(y + w->indices[next], 1);
}

void laci_sparse_decode_add(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len, float a, float *y)
{
    const workspace w = sparse_lay_out(c, call);
    const uint8_t *const plain = sparse_read(c, &w, in, len);
    for (size_t i = 0; i < w.kept; i++) {
        prefetch_value(&w, i, y);
        y[w.indices[i]] += a * sparse_value(&w, plain, i);
    }
}

bool laci_sparse_finite(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len)
{
    const workspace w = sparse_lay_out(c, call);
    const size_t head = read_indices(c, &w, in, len);
    if (c->inner == NULL) {
        return c->kernels->vector->max_payload(in + head, w.kept) <
               LACI_INFINITY_BITS;
    }
    return laci_payload_finite(c->inner, &w.inner, in + head, len - head);
}
