// SPDX-License-Identifier: MIT
// Products by oneDNN, on the calling thread.
#include "nn/multiply.h"

#include <oneapi/dnnl/dnnl.h>

lac_status nn_multiply(const nn_product *p)
{
    const dnnl_dim_t m = (dnnl_dim_t)p->m;
    const dnnl_dim_t n = (dnnl_dim_t)p->n;
    const dnnl_dim_t k = (dnnl_dim_t)p->k;
    const dnnl_status_t status = dnnl_sgemm(
        p->a_turned ? 'T' : 'N', p->b_turned ? 'T' : 'N', m, n, k, 1.0F, p->a,
        p->a_turned ? m : k, p->b, p->b_turned ? k : n, p->add ? 1.0F : 0.0F,
        p->c, n);
    if (status != dnnl_success) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "oneDNN: status %d from a product of %zu x %zu and %zu x %zu, "
            "expected 0",
            (int)status, p->m, p->k, p->k, p->n);
    }
    return LAC_OK;
}
