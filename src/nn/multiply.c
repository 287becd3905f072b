// SPDX-License-Identifier: MIT
// Matrix products by oneDNN, on the calling thread.
#include "nn/multiply.h"

#include <oneapi/dnnl/dnnl.h>

lac_status nn_multiply(const nn_product *p)
{
    const dnnl_dim_t m = (dnnl_dim_t)p->m;
    const dnnl_dim_t n = (dnnl_dim_t)p->n;
    const dnnl_dim_t k = (dnnl_dim_t)p->k;
    const dnnl_status_t status = dnnl_sgemm(
        p->a_transposed ? 'T' : 'N', p->b_transposed ? 'T' : 'N', m, n, k, 1.0F,
        p->a, p->a_transposed ? m : k, p->b, p->b_transposed ? k : n,
        p->add ? 1.0F : 0.0F, p->c, n);
    if (status == dnnl_success) {
        return LAC_OK;
    }
    return lac_fail(
        status == dnnl_out_of_memory ? LAC_ERR_NOMEM : LAC_ERR_UNSUPPORTED,
        "oneDNN: a product of %zu x %zu and %zu x %zu failed with status %d%s",
        p->m, p->k, p->k, p->n, (int)status,
        status == dnnl_out_of_memory ? " (no memory)" : "");
}
