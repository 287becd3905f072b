// SPDX-License-Identifier: MIT
// Encoding and decoding. The public functions check every argument, the
// laci_payload functions forward to the ops of a compressor or, for a
// sparsifier, to sparse.c. Tensors without values have empty payloads and never
// reach the ops.
//
// A compressor whose decoder needs the key finds it in the call. Where the
// receiver cannot derive it, `low` and `high` precede the payload. One that
// needs a seed gets a key that is made from the seed, and the seed precedes the
// payload.
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdalign.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "compress/compressor.h"
#include "compress/sparse.h"
#include "kernels/vector.h"

lac_call laci_call_make(
    const lac_compressor *c, const lac_key *key, lac_shape shape)
{
    return (lac_call){
        .size = sizeof(lac_call),
        .key = *key,
        .shape = shape,
        .form = c->form,
        .scratch = c->scratch,
        .kernels = c->kernels,
    };
}

lac_status laci_check_length(const char *name, size_t len, size_t expected)
{
    if (len != expected) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: payload has %zu bytes, expected %zu", name,
            len, expected);
    }
    return LAC_OK;
}

enum { KEY_SIZE = 16, SEED_SIZE = 8 };

static bool payload_seeded(const lac_compressor *c, lac_shape shape)
{
    return c->ops->needs_seed != NULL && c->ops->needs_seed(c->state, shape);
}

// The bytes of the key or the seed before the payload of a compressor.
static size_t key_size(
    const lac_compressor *c, lac_shape shape, lac_scope_kind scope)
{
    if (scope != LAC_SCOPE_WORKER) {
        return 0;
    }
    const size_t seed = payload_seeded(c, shape) ? SEED_SIZE : 0;
    return c->ops->needs_key ? KEY_SIZE : seed;
}

// A seed depends on all bits of the key.
static uint64_t seed_of(const lac_key *key)
{
    return lac_key_make(
               key->low, LAC_PURPOSE_CHOICE, key->high, lac_scope_shared(), 0)
        .low;
}

static lac_key seeded_key(uint64_t seed, lac_scope_kind scope)
{
    lac_key key =
        lac_key_make(seed, LAC_PURPOSE_CHOICE, 0, lac_scope_shared(), 0);
    key.scope = scope;
    return key;
}

// A payload without the key, and the call with it.
typedef struct content {
    lac_call call;
    const uint8_t *in;
    size_t len;
} content;

static content content_of(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len)
{
    const size_t head = key_size(c, call->shape, call->key.scope);
    content k = {*call, in + head, len - head};
    if (payload_seeded(c, call->shape)) {
        const uint64_t seed = head > 0 ? laci_get_u64(in) : seed_of(&call->key);
        k.call.key = seeded_key(seed, call->key.scope);
    } else if (head > 0) {
        k.call.key.low = laci_get_u64(in);
        k.call.key.high = laci_get_u64(in + sizeof(uint64_t));
    }
    return k;
}

size_t laci_payload_bound(
    const lac_compressor *c, lac_shape shape, lac_scope_kind scope)
{
    return c->ops->sparsifier == NULL
               ? key_size(c, shape, scope) + c->ops->bound(c->state, shape)
               : laci_sparse_bound(c, shape, scope);
}

// Room for a decoded tensor, for compressors without a decode_add or finite.
static size_t decoded_size(const lac_compressor *c, lac_shape shape)
{
    const bool adds =
        c->ops->decode_add != NULL || c->ops->decode_add_part != NULL;
    const bool needed = !adds || c->ops->finite == NULL;
    return needed ? laci_aligned(lac_shape_values(shape) * sizeof(float)) : 0;
}

size_t laci_payload_scratch(const lac_compressor *c, lac_shape shape)
{
    if (c->ops->sparsifier != NULL) {
        return laci_sparse_scratch(c, shape);
    }
    const size_t own =
        c->ops->scratch == NULL ? 0 : c->ops->scratch(c->state, shape);
    return decoded_size(c, shape) + own;
}

double laci_payload_growth(const lac_compressor *c, lac_shape shape)
{
    if (c->ops->sparsifier != NULL) {
        return laci_sparse_growth(c, shape);
    }
    return c->ops->growth == NULL ? (double)INFINITY
                                  : c->ops->growth(c->state, shape, c->form);
}

float laci_payload_largest(const lac_compressor *c, lac_shape shape)
{
    if (c->ops->sparsifier != NULL) {
        return laci_sparse_largest(c, shape);
    }
    return c->ops->largest == NULL ? FLT_MAX : c->ops->largest(c->state, shape);
}

double laci_growth_one(const void *state, lac_shape shape, lac_form form)
{
    (void)state;
    (void)shape;
    (void)form;
    return 1;
}

// A loop over the values of a payload.
typedef struct payload_loop {
    const lac_compressor *c;
    const lac_call *call;
    const uint8_t *in;
    size_t len;
    uint8_t *out;
    const float *x;
    float *y;
    float a;
} payload_loop;

static void encode_share(void *context, size_t first, size_t n)
{
    const payload_loop *const l = context;
    l->c->ops->encode_part(
        l->c->state, l->call, l->x + first, (lac_part){first, n}, l->out);
}

// Encodes after the key. Threads share a large tensor.
static size_t encode_content(
    const lac_compressor *c, const lac_call *call, const float *x, uint8_t *out)
{
    const size_t n = lac_shape_values(call->shape);
    if (laci_pool_shares(c->pool, n, LAC_PART) == 1 ||
        !laci_payload_encodes_parts(c)) {
        return c->ops->encode(c->state, call, x, out);
    }
    payload_loop l = {.c = c, .call = call, .x = x, .out = out};
    laci_pool_run(c->pool, n, LAC_PART, encode_share, &l);
    return c->ops->bound(c->state, call->shape);
}

// Returns the call with the key that the ops get, and writes what precedes
// their payload to `out`, unless it is NULL.
static lac_call own_call(
    const lac_compressor *c, const lac_call *call, uint8_t *out)
{
    const size_t head = key_size(c, call->shape, call->key.scope);
    lac_call own = *call;
    if (payload_seeded(c, call->shape)) {
        const uint64_t seed = seed_of(&call->key);
        own.key = seeded_key(seed, call->key.scope);
        if (head > 0 && out != NULL) {
            laci_put_u64(out, seed);
        }
    } else if (head > 0 && out != NULL) {
        laci_put_u64(out, call->key.low);
        laci_put_u64(out + sizeof(uint64_t), call->key.high);
    }
    return own;
}

size_t laci_payload_encode(
    const lac_compressor *c, const lac_call *call, const float *x, uint8_t *out)
{
    if (c->ops->sparsifier != NULL) {
        return laci_sparse_encode(c, call, x, out);
    }
    const size_t head = key_size(c, call->shape, call->key.scope);
    const lac_call own = own_call(c, call, out);
    return head + encode_content(c, &own, x, out + head);
}

bool laci_payload_encodes_parts(const lac_compressor *c)
{
    return c->ops->sparsifier == NULL && c->ops->encode_part != NULL &&
           (c->ops->encodes_parts == NULL || c->ops->encodes_parts(c->state));
}

void laci_payload_encode_part(
    const lac_compressor *c, const lac_call *call, const float *x,
    lac_part part, uint8_t *out)
{
    const size_t head = key_size(c, call->shape, call->key.scope);
    const lac_call own = own_call(c, call, NULL);
    c->ops->encode_part(c->state, &own, x, part, out + head);
}

size_t laci_payload_encode_key(
    const lac_compressor *c, const lac_call *call, uint8_t *out)
{
    (void)own_call(c, call, out);
    return laci_payload_bound(c, call->shape, call->key.scope);
}

lac_status laci_payload_check(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len)
{
    if (c->ops->sparsifier != NULL) {
        return laci_sparse_check(c, call, in, len);
    }
    const size_t head = key_size(c, call->shape, call->key.scope);
    if (len < head) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: payload has %zu bytes, expected at least the %zu of its %s",
            c->name, len, head, c->ops->needs_key ? "key" : "seed");
    }
    const content k = content_of(c, call, in, len);
    return c->ops->check(c->state, &k.call, k.in, k.len);
}

void laci_payload_decode(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len, float *x)
{
    if (c->ops->sparsifier != NULL) {
        laci_sparse_decode(c, call, in, len, x);
    } else {
        const content k = content_of(c, call, in, len);
        c->ops->decode(c->state, &k.call, k.in, k.len, x);
    }
}

// Decodes into the first part of the scratch and returns the values.
static const float *decode_to_scratch(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len)
{
    content k = content_of(c, call, in, len);
    k.call.scratch =
        (unsigned char *)call->scratch + decoded_size(c, call->shape);
    c->ops->decode(c->state, &k.call, k.in, k.len, call->scratch);
    return call->scratch;
}

bool laci_payload_has_parts(const lac_compressor *c)
{
    return c->ops->sparsifier == NULL && c->ops->decode_add_part != NULL;
}

void laci_payload_decode_add_part(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len, lac_part part, float a, float *y)
{
    const content k = content_of(c, call, in, len);
    c->ops->decode_add_part(c->state, &k.call, k.in, k.len, part, a, y);
}

static void decode_add_share(void *context, size_t first, size_t n)
{
    const payload_loop *const l = context;
    l->c->ops->decode_add_part(
        l->c->state, l->call, l->in, l->len, (lac_part){first, n}, l->a,
        l->y + first);
}

// Adds all values. Threads share a large tensor.
static void decode_add_parts(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len, float a, float *y)
{
    const content k = content_of(c, call, in, len);
    payload_loop l = {
        .c = c, .call = &k.call, .in = k.in, .len = k.len, .a = a, .y = y};
    laci_pool_run(
        c->pool, lac_shape_values(call->shape), LAC_PART, decode_add_share, &l);
}

void laci_payload_decode_add(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len, float a, float *y)
{
    if (c->ops->sparsifier != NULL) {
        laci_sparse_decode_add(c, call, in, len, a, y);
    } else if (c->ops->decode_add_part != NULL) {
        decode_add_parts(c, call, in, len, a, y);
    } else if (c->ops->decode_add != NULL) {
        const content k = content_of(c, call, in, len);
        c->ops->decode_add(c->state, &k.call, k.in, k.len, a, y);
    } else {
        c->kernels->vector->add_scaled(
            a, decode_to_scratch(c, call, in, len), y,
            lac_shape_values(call->shape));
    }
}

bool laci_payload_finite(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len)
{
    if (c->ops->sparsifier != NULL) {
        return laci_sparse_finite(c, call, in, len);
    }
    if (c->ops->finite != NULL) {
        const content k = content_of(c, call, in, len);
        return c->ops->finite(c->state, &k.call, k.in, k.len);
    }
    return laci_all_finite(
        c->kernels, decode_to_scratch(c, call, in, len),
        lac_shape_values(call->shape));
}

static bool payload_overlap(
    const void *a, size_t a_size, const void *b, size_t b_size)
{
    const uintptr_t at = (uintptr_t)a, bt = (uintptr_t)b;
    return at < bt ? bt - at < a_size : at - bt < b_size;
}

static lac_status check_key(const lac_compressor *c, const lac_key *key)
{
    if (key == NULL) {
        return lac_fail(LAC_ERR_INVALID, "%s: the key is NULL", c->name);
    }
    if (key->scope != LAC_SCOPE_WORKER && key->scope != LAC_SCOPE_EDGE &&
        key->scope != LAC_SCOPE_SHARED) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: the key's scope is %d, expected 0, 1 or 2",
            c->name, (int)key->scope);
    }
    return LAC_OK;
}

static lac_status check_scratch(const lac_compressor *c, lac_shape shape)
{
    const size_t scratch = laci_payload_scratch(c, shape);
    if (scratch > c->scratch_size) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: a tensor of %zu x %zu needs %zu bytes of scratch, %zu are "
            "reserved",
            c->name, shape.rows, shape.cols, scratch, c->scratch_size);
    }
    return LAC_OK;
}

// Checks the array of values and the payload of a tensor that has values.
static lac_status check_arrays(
    const lac_compressor *c, lac_shape shape, const float *values,
    const uint8_t *bytes, size_t len)
{
    if (values == NULL || bytes == NULL) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %s of a tensor of %zu x %zu is NULL", c->name,
            values == NULL ? "the array of values" : "the payload", shape.rows,
            shape.cols);
    }
    if ((uintptr_t)values % alignof(float) != 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: the values of a tensor of %zu x %zu are at an address that is "
            "no multiple of %zu, as floats need",
            c->name, shape.rows, shape.cols, alignof(float));
    }
    const size_t size = lac_shape_values(shape) * sizeof(float);
    if (payload_overlap(values, size, bytes, len)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: the values and the payload of a tensor of %zu x %zu overlap",
            c->name, shape.rows, shape.cols);
    }
    return LAC_OK;
}

size_t lac_compressor_bound(
    const lac_compressor *c, lac_shape shape, lac_scope_kind scope)
{
    if (!laci_shape_accepted(c, shape) || lac_shape_values(shape) == 0) {
        return 0;
    }
    return laci_payload_bound(c, shape, scope);
}

size_t lac_compressor_kept(const lac_compressor *c, lac_shape shape)
{
    if (!laci_shape_accepted(c, shape) || lac_shape_values(shape) == 0) {
        return 0;
    }
    if (c->ops->sparsifier == NULL) {
        return lac_shape_values(shape);
    }
    const lac_shape kept = laci_sparse_kept(c, shape);
    return c->inner == NULL ? kept.rows : lac_compressor_kept(c->inner, kept);
}

lac_status laci_encode_check(
    const lac_compressor *c, const lac_key *key, lac_shape shape,
    const float *x, const uint8_t *out, size_t cap)
{
    LAC_TRY(check_key(c, key));
    LAC_TRY(laci_shape_check(c, shape));
    if (lac_shape_values(shape) == 0) {
        return LAC_OK;
    }
    const size_t bound = laci_payload_bound(c, shape, key->scope);
    LAC_TRY(check_arrays(c, shape, x, out, cap < bound ? cap : bound));
    LAC_TRY(check_scratch(c, shape));
    if (cap < bound) {
        return lac_fail(
            LAC_ERR_SPACE, "%s: the payload may need %zu bytes, there are %zu",
            c->name, bound, cap);
    }
    return LAC_OK;
}

lac_status lac_compressor_encode(
    lac_compressor *c, const lac_key *key, lac_shape shape, const float *x,
    uint8_t *out, size_t cap, size_t *len_out)
{
    LAC_TRY(laci_encode_check(c, key, shape, x, out, cap));
    if (lac_shape_values(shape) == 0) {
        *len_out = 0;
        return LAC_OK;
    }
    const lac_call call = laci_call_make(c, key, shape);
    *len_out = laci_payload_encode(c, &call, x, out);
    assert(*len_out <= laci_payload_bound(c, shape, key->scope));
    return LAC_OK;
}

// Stands for the bytes of an empty payload, which may be NULL.
static const uint8_t no_bytes[1];

// Checks the arguments of a call on a payload, and the payload.
static lac_status check_received(
    const lac_compressor *c, const lac_key *key, lac_shape shape,
    const uint8_t *in, size_t len)
{
    LAC_TRY(check_key(c, key));
    LAC_TRY(laci_shape_check(c, shape));
    if (lac_shape_values(shape) == 0) {
        return len == 0 ? LAC_OK
                        : lac_fail(
                              LAC_ERR_CORRUPT,
                              "%s: payload of a tensor without values has %zu "
                              "bytes, expected 0",
                              c->name, len);
    }
    if (in == NULL && len > 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: the payload of a tensor of %zu x %zu is NULL",
            c->name, shape.rows, shape.cols);
    }
    LAC_TRY(check_scratch(c, shape));
    const lac_call call = laci_call_make(c, key, shape);
    return laci_payload_check(c, &call, in == NULL ? no_bytes : in, len);
}

// Checks the same and the array of values that decoding changes.
static lac_status check_decode(
    const lac_compressor *c, const lac_key *key, lac_shape shape,
    const uint8_t *in, size_t len, const float *values)
{
    LAC_TRY(laci_shape_check(c, shape));
    if (lac_shape_values(shape) > 0) {
        const uint8_t *const bytes = in == NULL && len == 0 ? no_bytes : in;
        LAC_TRY(check_arrays(c, shape, values, bytes, len));
    }
    return check_received(c, key, shape, in, len);
}

lac_status lac_compressor_check(
    lac_compressor *c, const lac_key *key, lac_shape shape, const uint8_t *in,
    size_t len)
{
    return check_received(c, key, shape, in, len);
}

lac_status lac_compressor_decode(
    lac_compressor *c, const lac_key *key, lac_shape shape, const uint8_t *in,
    size_t len, float *x)
{
    LAC_TRY(check_decode(c, key, shape, in, len, x));
    if (lac_shape_values(shape) > 0) {
        const lac_call call = laci_call_make(c, key, shape);
        laci_payload_decode(c, &call, in == NULL ? no_bytes : in, len, x);
    }
    return LAC_OK;
}

lac_status lac_compressor_decode_add(
    lac_compressor *c, const lac_key *key, lac_shape shape, const uint8_t *in,
    size_t len, float a, float *y)
{
    LAC_TRY(check_decode(c, key, shape, in, len, y));
    if (lac_shape_values(shape) > 0) {
        const lac_call call = laci_call_make(c, key, shape);
        laci_payload_decode_add(
            c, &call, in == NULL ? no_bytes : in, len, a, y);
    }
    return LAC_OK;
}
