// SPDX-License-Identifier: MIT
// Sums and ReLUs. out may be a or b.
#include "nn/elementwise.h"

static void add(void *context)
{
    const nn_pass *const p = context;
    const float *const a = nn_plan_data(p->plan, p->a);
    const float *const b = nn_plan_data(p->plan, p->b);
    float *const out = nn_plan_data(p->plan, p->out);
    if (!p->relu) {
        for (size_t i = 0; i < p->n; i++) {
            out[i] = a[i] + b[i];
        }
        return;
    }
    for (size_t i = 0; i < p->n; i++) {
        const float sum = a[i] + b[i];
        out[i] = sum < 0 ? 0 : sum; // NaN stays
    }
}

static void mask(void *context)
{
    const nn_pass *const p = context;
    const float *const a = nn_plan_data(p->plan, p->a);
    const float *const y = nn_plan_data(p->plan, p->y);
    float *const out = nn_plan_data(p->plan, p->out);
    for (size_t i = 0; i < p->n; i++) {
        out[i] = y[i] > 0 ? a[i] : 0;
    }
}

static void mask_sum(void *context)
{
    const nn_pass *const p = context;
    const float *const a = nn_plan_data(p->plan, p->a);
    const float *const b = nn_plan_data(p->plan, p->b);
    const float *const y = nn_plan_data(p->plan, p->y);
    float *const out = nn_plan_data(p->plan, p->out);
    for (size_t i = 0; i < p->n; i++) {
        const float sum = a[i] + b[i];
        out[i] = y[i] > 0 ? sum : 0;
    }
}

static void plan_pass(nn_plan *plan, nn_pass *p, void (*call)(void *context))
{
    const nn_desc desc = nn_plan_desc(plan, p->a);
    const nn_mem used[] = {p->a, p->b, p->y, p->out};
    p->plan = plan;
    p->n = dnnl_memory_desc_get_size(&desc) / sizeof(float);
    nn_plan_call(plan, call, p, 4, used);
}

void nn_plan_add(nn_plan *plan, nn_pass *pass)
{
    plan_pass(plan, pass, add);
}

void nn_plan_mask(nn_plan *plan, nn_pass *pass)
{
    if (pass->y == 0 && pass->b == 0) {
        return;
    }
    pass->relu = false;
    plan_pass(plan, pass, pass->y == 0 ? add : pass->b == 0 ? mask : mask_sum);
}
