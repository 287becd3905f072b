// SPDX-License-Identifier: MIT
// powersgd.c for arm64: the product. Eight values of S are computed and stored
// at a time, and multiplied with all columns from registers. The lanes of a sum
// are two registers.
#include "kernels/powersgd.h"

#include "kernels/lanes_neon.h"

enum {
    LANES = LACI_POWERSGD_LANES,
    BLOCK = LACI_POWERSGD_BLOCK,
    RANK_MAX = LACI_POWERSGD_RANK_MAX,
};

// The lanes of one sum.
typedef struct eight {
    float32x4_t low, high;
} eight;

static inline eight eight_of(const float *x)
{
    return (eight){vld1q_f32(x), vld1q_f32(x + 4)};
}

// Eight values of S, from column j of row i on.
static inline eight make_eight(const laci_powersgd_sum *x, size_t i, size_t j)
{
    const size_t at = i * x->shape.cols + j;
    eight v = eight_of(x->m + at);
    for (size_t c = 0; c < x->rank; c++) {
        const float32x4_t left = vdupq_n_f32(x->left[c * x->shape.rows + i]);
        const eight right = eight_of(x->right + c * x->shape.cols + j);
        v.low = vsubq_f32(v.low, vmulq_f32(left, right.low));
        v.high = vsubq_f32(v.high, vmulq_f32(left, right.high));
    }
    const eight g = eight_of(x->g + at);
    v.low = vaddq_f32(v.low, g.low);
    v.high = vaddq_f32(v.high, g.high);
    vst1q_f32(x->s + at, v.low);
    vst1q_f32(x->s + at + 4, v.high);
    return v;
}

// Columns [j, end) of row i, fewer than eight, as zeros where there are none.
static eight make_rest(
    const laci_powersgd_sum *x, size_t i, size_t j, size_t end)
{
    float values[LANES] = {0};
    for (size_t k = j; k < end; k++) {
        const size_t at = i * x->shape.cols + k;
        float v = x->m[at];
        for (size_t c = 0; c < x->rank; c++) {
            v -= x->left[c * x->shape.rows + i] *
                 x->right[c * x->shape.cols + k];
        }
        v += x->g[at];
        x->s[at] = v;
        values[k - j] = v;
    }
    return eight_of(values);
}

static inline void add_products(eight *sum, eight v, eight in)
{
    sum->low = vaddq_f32(sum->low, vmulq_f32(v.low, in.low));
    sum->high = vaddq_f32(sum->high, vmulq_f32(v.high, in.high));
}

// Zeros past the end change no sum: a lane that began with +0 never becomes -0.
static void add_rest(eight *sum, eight v, const float *in, size_t n)
{
    float values[LANES] = {0};
    for (size_t k = 0; k < n; k++) {
        values[k] = in[k];
    }
    add_products(sum, v, eight_of(values));
}

static void multiply_block(
    const laci_powersgd_sum *x, size_t i, size_t first, const float *in,
    double *totals)
{
    const size_t cols = x->shape.cols;
    const size_t end = cols - first < BLOCK ? cols : first + BLOCK;
    eight sums[RANK_MAX] = {0};
    size_t j = first;
    for (; j + LANES <= end; j += LANES) {
        const eight v = make_eight(x, i, j);
        for (size_t c = 0; c < x->rank; c++) {
            add_products(&sums[c], v, eight_of(in + c * cols + j));
        }
    }
    if (j < end) {
        const eight v = make_rest(x, i, j, end);
        for (size_t c = 0; c < x->rank; c++) {
            add_rest(&sums[c], v, in + c * cols + j, end - j);
        }
    }
    for (size_t c = 0; c < x->rank; c++) {
        totals[c] +=
            (double)laci_four_lanes(vaddq_f32(sums[c].low, sums[c].high));
    }
}

static void neon_powersgd_multiply(
    const laci_powersgd_sum *x, const float *in, float *out)
{
    for (size_t i = 0; i < x->shape.rows; i++) {
        double totals[RANK_MAX] = {0};
        for (size_t first = 0; first < x->shape.cols; first += BLOCK) {
            multiply_block(x, i, first, in, totals);
        }
        for (size_t c = 0; c < x->rank; c++) {
            out[c * x->shape.rows + i] = (float)totals[c];
        }
    }
}

static void neon_powersgd_sum(const laci_powersgd_sum *x)
{
    laci_powersgd_portable.sum(x);
}

static void neon_reconstruct(
    lac_shape shape, size_t rank, const float *left, const float *right,
    float *y)
{
    laci_powersgd_portable.reconstruct(shape, rank, left, right, y);
}

const laci_powersgd_kernels laci_powersgd_neon = {
    .sum = neon_powersgd_sum,
    .multiply = neon_powersgd_multiply,
    .reconstruct = neon_reconstruct,
};
