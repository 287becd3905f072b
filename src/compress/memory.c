// SPDX-License-Identifier: MIT
// Error memory: e += x, payload of e, and, once the payload is delivered,
// e -= what it holds. A compressor may bring its own, to save passes over the
// values; then the floats and their tail are in a form that it alone knows.
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "compress/compressor.h"
#include "kernels/vector.h"

struct lac_memory {
    lac_compressor *c;
    lac_shape shape;
    size_t size; // of block
    float *block;
};

lac_status lac_memory_open(lac_memory **out, lac_compressor *c, lac_shape shape)
{
    *out = NULL;
    LAC_TRY(lac_compressor_reserve(c, shape));
    lac_memory *const m = laci_zalloc(sizeof(*m));
    const size_t size =
        lac_shape_values(shape) * sizeof(float) + c->ops->memory_tail;
    float *const block = m == NULL ? NULL : laci_zalloc_aligned(size);
    if (block == NULL) {
        laci_free(m);
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for the errors of %zu x %zu values",
            c->name, shape.rows, shape.cols);
    }
    *m = (lac_memory){c, shape, size, block};
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

lac_status lac_memory_encode(
    lac_memory *m, const lac_key *key, const float *x, uint8_t *out, size_t cap,
    size_t *len_out)
{
    lac_compressor *const c = m->c;
    const size_t n = lac_shape_values(m->shape);
    LAC_TRY(laci_encode_check(c, key, m->shape, x, out, cap));
    if (n == 0) {
        *len_out = 0;
        return LAC_OK;
    }
    const lac_call call = laci_call_make(c, key, m->shape);
    if (c->ops->encode_add != NULL) {
        *len_out = c->ops->encode_add(c->state, &call, x, m->block, out);
    } else {
        c->kernels->vector->add(x, m->block, n);
        *len_out = laci_payload_encode(c, &call, m->block, out);
    }
    return LAC_OK;
}

lac_status lac_memory_settle(
    lac_memory *m, const lac_key *key, const uint8_t *in, size_t len)
{
    lac_compressor *const c = m->c;
    if (c->ops->settle == NULL) {
        return lac_compressor_decode_add(
            c, key, m->shape, in, len, -1.0f, m->block);
    }
    LAC_TRY(lac_compressor_check(c, key, m->shape, in, len));
    if (lac_shape_values(m->shape) > 0) {
        const lac_call call = laci_call_make(c, key, m->shape);
        c->ops->settle(c->state, &call, in, len, m->block);
    }
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
