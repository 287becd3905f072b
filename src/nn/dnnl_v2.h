// SPDX-License-Identifier: MIT
// The functions of oneDNN 3 that src/nn calls, by those of oneDNN 2, which
// Debian 12 has. All sources are written for oneDNN 3. When oneDNN 2 is no
// longer supported, remove this file and every mention of DNNL_VERSION_MAJOR.
//
// oneDNN 2 first describes an operation and then creates its primitive. A
// description of a memory is a struct there, and a pointer in oneDNN 3. Nothing
// is dilated, and both memories of a batch norm have one description, so these
// arguments are ignored.
#ifndef LACONIC_NN_DNNL_V2_H
#define LACONIC_NN_DNNL_V2_H

#include <dnnl.h>

#include <stdlib.h>

typedef dnnl_memory_desc_t nn_v2_memory_desc;
typedef nn_v2_memory_desc *nn_v2_memory_desc_pointer;
typedef const nn_v2_memory_desc *const_dnnl_memory_desc_t;
#define dnnl_memory_desc_t nn_v2_memory_desc_pointer

// NOLINTBEGIN(readability-function-size): oneDNN chose the parameters.

static inline dnnl_status_t dnnl_memory_desc_create_with_tag(
    dnnl_memory_desc_t *out, int count, const dnnl_dims_t dims,
    dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t desc = calloc(1, sizeof(*desc));
    if (desc == NULL) {
        return dnnl_out_of_memory;
    }
    const dnnl_status_t status =
        dnnl_memory_desc_init_by_tag(desc, count, dims, type, tag);
    if (status != dnnl_success) {
        free(desc);
        return status;
    }
    *out = desc;
    return dnnl_success;
}

static inline dnnl_status_t dnnl_memory_desc_destroy(dnnl_memory_desc_t desc)
{
    free(desc);
    return dnnl_success;
}

// oneDNN 2 also has a scale.
static inline dnnl_status_t nn_v2_append_eltwise(
    dnnl_post_ops_t post, dnnl_alg_kind_t kind, float alpha, float beta)
{
    return dnnl_post_ops_append_eltwise(post, 1, kind, alpha, beta);
}
#define dnnl_post_ops_append_eltwise nn_v2_append_eltwise

// The description of an operation. Each begins with its kind.
typedef union nn_v2_operation {
    dnnl_convolution_desc_t convolution;
    dnnl_inner_product_desc_t inner_product;
    dnnl_batch_normalization_desc_t norm;
    dnnl_pooling_desc_t pooling;
} nn_v2_operation;

// Returns `described`, the status of the description, unless that is good.
static inline dnnl_status_t nn_v2_create(
    dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_status_t described,
    const nn_v2_operation *o, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr)
{
    return described != dnnl_success
               ? described
               : dnnl_primitive_desc_create(out, o, attr, engine, hint);
}

static inline dnnl_status_t dnnl_convolution_forward_primitive_desc_create(
    dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_prop_kind_t kind,
    dnnl_alg_kind_t algorithm, const_dnnl_memory_desc_t x,
    const_dnnl_memory_desc_t weight, const_dnnl_memory_desc_t bias,
    const_dnnl_memory_desc_t y, const dnnl_dims_t strides,
    const dnnl_dims_t dilates, const dnnl_dims_t before,
    const dnnl_dims_t after, const_dnnl_primitive_attr_t attr)
{
    nn_v2_operation o;
    (void)dilates;
    const dnnl_status_t described = dnnl_convolution_forward_desc_init(
        &o.convolution, kind, algorithm, x, weight, bias, y, strides, before,
        after);
    return nn_v2_create(out, engine, described, &o, NULL, attr);
}

static inline dnnl_status_t
dnnl_convolution_backward_data_primitive_desc_create(
    dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_alg_kind_t algorithm,
    const_dnnl_memory_desc_t dx, const_dnnl_memory_desc_t weight,
    const_dnnl_memory_desc_t dy, const dnnl_dims_t strides,
    const dnnl_dims_t dilates, const dnnl_dims_t before,
    const dnnl_dims_t after, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr)
{
    nn_v2_operation o;
    (void)dilates;
    const dnnl_status_t described = dnnl_convolution_backward_data_desc_init(
        &o.convolution, algorithm, dx, weight, dy, strides, before, after);
    return nn_v2_create(out, engine, described, &o, hint, attr);
}

static inline dnnl_status_t
dnnl_convolution_backward_weights_primitive_desc_create(
    dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_alg_kind_t algorithm,
    const_dnnl_memory_desc_t x, const_dnnl_memory_desc_t dweight,
    const_dnnl_memory_desc_t dbias, const_dnnl_memory_desc_t dy,
    const dnnl_dims_t strides, const dnnl_dims_t dilates,
    const dnnl_dims_t before, const dnnl_dims_t after,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr)
{
    nn_v2_operation o;
    (void)dilates;
    const dnnl_status_t described = dnnl_convolution_backward_weights_desc_init(
        &o.convolution, algorithm, x, dweight, dbias, dy, strides, before,
        after);
    return nn_v2_create(out, engine, described, &o, hint, attr);
}

static inline dnnl_status_t dnnl_inner_product_forward_primitive_desc_create(
    dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_prop_kind_t kind,
    const_dnnl_memory_desc_t x, const_dnnl_memory_desc_t weight,
    const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t y,
    const_dnnl_primitive_attr_t attr)
{
    nn_v2_operation o;
    const dnnl_status_t described = dnnl_inner_product_forward_desc_init(
        &o.inner_product, kind, x, weight, bias, y);
    return nn_v2_create(out, engine, described, &o, NULL, attr);
}

static inline dnnl_status_t
dnnl_inner_product_backward_data_primitive_desc_create(
    dnnl_primitive_desc_t *out, dnnl_engine_t engine,
    const_dnnl_memory_desc_t dx, const_dnnl_memory_desc_t weight,
    const_dnnl_memory_desc_t dy, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr)
{
    nn_v2_operation o;
    const dnnl_status_t described = dnnl_inner_product_backward_data_desc_init(
        &o.inner_product, dx, weight, dy);
    return nn_v2_create(out, engine, described, &o, hint, attr);
}

static inline dnnl_status_t
dnnl_inner_product_backward_weights_primitive_desc_create(
    dnnl_primitive_desc_t *out, dnnl_engine_t engine,
    const_dnnl_memory_desc_t x, const_dnnl_memory_desc_t dweight,
    const_dnnl_memory_desc_t dbias, const_dnnl_memory_desc_t dy,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr)
{
    nn_v2_operation o;
    const dnnl_status_t described =
        dnnl_inner_product_backward_weights_desc_init(
            &o.inner_product, x, dweight, dbias, dy);
    return nn_v2_create(out, engine, described, &o, hint, attr);
}

static inline dnnl_status_t
dnnl_batch_normalization_forward_primitive_desc_create(
    dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_prop_kind_t kind,
    const_dnnl_memory_desc_t x, const_dnnl_memory_desc_t y, float epsilon,
    unsigned flags, const_dnnl_primitive_attr_t attr)
{
    nn_v2_operation o;
    (void)y;
    const dnnl_status_t described = dnnl_batch_normalization_forward_desc_init(
        &o.norm, kind, x, epsilon, flags);
    return nn_v2_create(out, engine, described, &o, NULL, attr);
}

static inline dnnl_status_t
dnnl_batch_normalization_backward_primitive_desc_create(
    dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_prop_kind_t kind,
    const_dnnl_memory_desc_t dx, const_dnnl_memory_desc_t dy,
    const_dnnl_memory_desc_t x, float epsilon, unsigned flags,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr)
{
    nn_v2_operation o;
    (void)dx;
    const dnnl_status_t described = dnnl_batch_normalization_backward_desc_init(
        &o.norm, kind, dy, x, epsilon, flags);
    return nn_v2_create(out, engine, described, &o, hint, attr);
}

static inline dnnl_status_t dnnl_pooling_forward_primitive_desc_create(
    dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_prop_kind_t kind,
    dnnl_alg_kind_t algorithm, const_dnnl_memory_desc_t x,
    const_dnnl_memory_desc_t y, const dnnl_dims_t strides,
    const dnnl_dims_t kernel, const dnnl_dims_t dilates,
    const dnnl_dims_t before, const dnnl_dims_t after,
    const_dnnl_primitive_attr_t attr)
{
    nn_v2_operation o;
    (void)dilates;
    const dnnl_status_t described = dnnl_pooling_forward_desc_init(
        &o.pooling, kind, algorithm, x, y, strides, kernel, before, after);
    return nn_v2_create(out, engine, described, &o, NULL, attr);
}

static inline dnnl_status_t dnnl_pooling_backward_primitive_desc_create(
    dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_alg_kind_t algorithm,
    const_dnnl_memory_desc_t dx, const_dnnl_memory_desc_t dy,
    const dnnl_dims_t strides, const dnnl_dims_t kernel,
    const dnnl_dims_t dilates, const dnnl_dims_t before,
    const dnnl_dims_t after, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr)
{
    nn_v2_operation o;
    (void)dilates;
    const dnnl_status_t described = dnnl_pooling_backward_desc_init(
        &o.pooling, algorithm, dx, dy, strides, kernel, before, after);
    return nn_v2_create(out, engine, described, &o, hint, attr);
}

// NOLINTEND(readability-function-size)

#endif
