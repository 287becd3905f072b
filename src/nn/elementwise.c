// SPDX-License-Identifier: MIT
// Sums and ReLUs. The loops work in place, on vectors that do not overlap, so
// that compilers vectorise them.
#include "nn/elementwise.h"

#include <assert.h>
#include <string.h>

enum { PIECE = 1024 };

static void add_values(float *restrict x, const float *restrict b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] += b[i];
    }
}

static void add_relu(float *restrict x, const float *restrict b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float sum = x[i] + b[i];
        x[i] = sum < 0 ? 0 : sum; // NaN stays
    }
}

static void mask(float *restrict x, const float *restrict y, size_t n)
{
    assert(y != NULL);
    for (size_t i = 0; i < n; i++) {
        const float value = x[i];
        x[i] = y[i] > 0 ? value : 0;
    }
}

// In one loop compilers make a branch for each value. Two loops over a piece
// that stays in the L1 cache cost almost nothing.
static void add_mask(float *x, const float *b, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t m = n - i < PIECE ? n - i : PIECE;
        add_values(x + i, b + i, m);
        mask(x + i, y + i, m);
    }
}

static void run_pass(void *context)
{
    const nn_pass *const p = context;
    float *const x = nn_plan_data(p->plan, p->out);
    const float *const b = p->b == 0 ? NULL : nn_plan_data(p->plan, p->b);
    const float *const y = p->y == 0 ? NULL : nn_plan_data(p->plan, p->y);
    if (p->out != p->a) {
        memcpy(x, nn_plan_data(p->plan, p->a), p->n * sizeof(*x));
    }
    if (b == NULL) {
        mask(x, y, p->n);
    } else if (y != NULL) {
        add_mask(x, b, y, p->n);
    } else if (p->relu) {
        add_relu(x, b, p->n);
    } else {
        add_values(x, b, p->n);
    }
}

static void plan_pass(nn_plan *plan, nn_pass *p)
{
    const nn_desc desc = nn_plan_desc(plan, p->a);
    const size_t size = desc == NULL ? 0 : dnnl_memory_desc_get_size(desc);
    const nn_mem used[] = {p->a, p->b, p->y, p->out};
    p->plan = plan;
    p->n = size / sizeof(float);
    nn_plan_call(plan, run_pass, p, 4, used);
}

void nn_plan_add(nn_plan *plan, nn_pass *pass)
{
    plan_pass(plan, pass);
}

void nn_plan_mask(nn_plan *plan, nn_pass *pass)
{
    if (pass->b != 0 || pass->y != 0) {
        plan_pass(plan, pass);
    }
}
