// SPDX-License-Identifier: MIT
#include "compress/sparse.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"

enum { AHEAD = 256 }; // indices

// The scratch of one call: how many bytes of the payload tell the indices, the
// indices, the values if there is an inner compressor, and what is left for the
// choice or for that compressor, which never work at the same time.
typedef struct workspace {
    size_t *head;
    uint32_t *indices;
    float *values;
    size_t kept;
    lac_call inner;
} workspace;

lac_shape laci_sparse_kept(const lac_compressor *c, lac_shape shape)
{
    return (lac_shape){c->ops->sparsifier->keep(c->state, shape), 1};
}

static size_t head_size(void)
{
    return laci_aligned(sizeof(size_t));
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

static workspace lay_out(const lac_compressor *c, const lac_call *call)
{
    const lac_shape shape = laci_sparse_kept(c, call->shape);
    unsigned char *const scratch = call->scratch;
    unsigned char *const indices = scratch + head_size();
    unsigned char *const values = indices + indices_size(shape.rows);
    workspace w = {
        .head = (void *)scratch,
        .indices = (void *)indices,
        .values = (void *)values,
        .kept = shape.rows,
        .inner = *call,
    };
    w.inner.shape = shape;
    w.inner.scratch = values + values_size(c, shape.rows);
    if (c->inner != NULL) {
        w.inner.key = inner_key(&call->key);
    }
    return w;
}

size_t laci_sparse_scratch(const lac_compressor *c, lac_shape shape)
{
    const lac_shape kept = laci_sparse_kept(c, shape);
    const size_t choice =
        c->ops->scratch == NULL ? 0 : c->ops->scratch(c->state, shape);
    const size_t inner =
        c->inner == NULL ? 0 : laci_payload_scratch(c->inner, kept);
    return head_size() + indices_size(kept.rows) + values_size(c, kept.rows) +
           (choice > inner ? choice : inner);
}

unsigned laci_sparse_traits(const lac_compressor *c, lac_scope_kind scope)
{
    const unsigned inner = c->inner == NULL
                               ? LAC_TRAIT_LINEAR | LAC_TRAIT_DETERMINISTIC
                               : lac_compressor_traits(c->inner, scope);
    if (!c->ops->sparsifier->random) {
        return inner & LAC_TRAIT_DETERMINISTIC;
    }
    return scope == LAC_SCOPE_WORKER ? 0 : inner & LAC_TRAIT_LINEAR;
}

static double scale_of(const lac_compressor *c, lac_shape shape)
{
    const size_t kept = laci_sparse_kept(c, shape).rows;
    return c->ops->sparsifier->random && c->form == LAC_FORM_UNBIASED
               ? (double)lac_shape_values(shape) / (double)kept
               : 1;
}

// With w1 the error of the choice and w2 that of the inner compressor: two
// unbiased operators have w1 w2 + w1 + w2 (natural compression, theorem 5).
// Without scaling the errors lie on different values: of the energy, a part
// p >= 1 - w1 is kept and p w2 + 1 - p is lost.
lac_guarantee laci_sparse_guarantee(const lac_compressor *c, lac_shape shape)
{
    const lac_guarantee outer = c->ops->guarantee(c->state, shape, c->form);
    if (c->inner == NULL) {
        return outer;
    }
    const lac_guarantee inner =
        lac_compressor_guarantee(c->inner, laci_sparse_kept(c, shape));
    const double w1 = outer.error, w2 = inner.error;
    if (scale_of(c, shape) != 1) {
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

size_t laci_sparse_encode(
    const lac_compressor *c, const lac_call *call, const float *x, uint8_t *out)
{
    const workspace w = lay_out(c, call);
    const float scale = (float)scale_of(c, call->shape);
    lac_call choice = *call; // and its scratch, for both steps
    choice.scratch = w.inner.scratch;
    c->ops->sparsifier->choose(c->state, &choice, x, w.indices);
    const size_t head =
        c->ops->sparsifier->put_indices(c->state, &choice, w.indices, out);
    if (c->inner == NULL) {
        for (size_t i = 0; i < w.kept; i++) {
            laci_put_f32(out + head + 4 * i, x[w.indices[i]] * scale);
        }
        return head + w.kept * sizeof(float);
    }
    for (size_t i = 0; i < w.kept; i++) {
        w.values[i] = x[w.indices[i]] * scale;
    }
    return head + laci_payload_encode(c->inner, &w.inner, w.values, out + head);
}

lac_status laci_sparse_check(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len)
{
    const workspace w = lay_out(c, call);
    size_t head = 0;
    LAC_TRY(c->ops->sparsifier->get_indices(
        c->state, call, in, len, w.indices, &head));
    *w.head = head;
    if (c->inner == NULL) {
        return laci_check_length(c->name, len, head + w.kept * sizeof(float));
    }
    return laci_payload_check(c->inner, &w.inner, in + head, len - head);
}

// Value i of a payload that was checked, from its bytes or, where these are
// NULL, from what the inner compressor made of them.
static inline float value_of(const workspace *w, const uint8_t *plain, size_t i)
{
    return plain == NULL ? w->values[i] : laci_get_f32(plain + 4 * i);
}

// Returns the bytes of the values, or decodes them and returns NULL.
static const uint8_t *unpack(
    const lac_compressor *c, const workspace *w, const uint8_t *in, size_t len)
{
    const uint8_t *const values = in + *w->head;
    if (c->inner == NULL) {
        return values;
    }
    laci_payload_decode(c->inner, &w->inner, values, len - *w->head, w->values);
    return NULL;
}

void laci_sparse_decode(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len, float *x)
{
    const workspace w = lay_out(c, call);
    const uint8_t *const plain = unpack(c, &w, in, len);
    memset(x, 0, lac_shape_values(call->shape) * sizeof(*x));
    for (size_t i = 0; i < w.kept; i++) {
        x[w.indices[i]] = value_of(&w, plain, i);
    }
}

// Asks for a value that is changed soon. The processor does so by itself, but
// not beyond a page, and not when indices come in no order.
static inline void ask_ahead(const workspace *w, size_t i, const float *y)
{
    const size_t next = i + AHEAD < w->kept ? i + AHEAD : i;
    __builtin_prefetch(y + w->indices[next], 1);
}

void laci_sparse_decode_add(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len, float a, float *y)
{
    const workspace w = lay_out(c, call);
    const uint8_t *const plain = unpack(c, &w, in, len);
    for (size_t i = 0; i < w.kept; i++) {
        ask_ahead(&w, i, y);
        y[w.indices[i]] += a * value_of(&w, plain, i);
    }
}
