// SPDX-License-Identifier: MIT
#include "kernels/powersgd.h"

enum { LANES = LACI_POWERSGD_LANES, BLOCK = LACI_POWERSGD_BLOCK };

// Values [first, first + n) of row i of S.
static void sum_row(
    const laci_powersgd_sum *x, size_t i, size_t first, size_t n)
{
    const size_t at = i * x->shape.cols + first;
    for (size_t j = 0; j < n; j++) {
        float v = x->m[at + j];
        for (size_t c = 0; c < x->rank; c++) {
            v -= x->left[c * x->shape.rows + i] *
                 x->right[c * x->shape.cols + first + j];
        }
        x->s[at + j] = v + x->g[at + j];
    }
}

static void powersgd_sum(const laci_powersgd_sum *x)
{
    for (size_t i = 0; i < x->shape.rows; i++) {
        sum_row(x, i, 0, x->shape.cols);
    }
}

static float powersgd_dot(const float *a, const float *b, size_t n)
{
    float lanes[LANES] = {0};
    for (size_t j = 0; j < n; j++) {
        lanes[j % LANES] += a[j] * b[j];
    }
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t j = 0; j < half; j++) {
            lanes[j] += lanes[j + half];
        }
    }
    return lanes[0];
}

static void powersgd_multiply(
    const laci_powersgd_sum *x, const float *in, float *out)
{
    const size_t cols = x->shape.cols;
    for (size_t i = 0; i < x->shape.rows; i++) {
        double sums[LACI_POWERSGD_RANK_MAX] = {0};
        for (size_t first = 0; first < cols; first += BLOCK) {
            const size_t n = cols - first < BLOCK ? cols - first : BLOCK;
            sum_row(x, i, first, n);
            for (size_t c = 0; c < x->rank; c++) {
                sums[c] += (double)powersgd_dot(
                    x->s + i * cols + first, in + c * cols + first, n);
            }
        }
        for (size_t c = 0; c < x->rank; c++) {
            out[c * x->shape.rows + i] = (float)sums[c];
        }
    }
}

static void reconstruct(
    lac_shape shape, size_t rank, const float *left, const float *right,
    float *y)
{
    for (size_t i = 0; i < shape.rows; i++) {
        for (size_t j = 0; j < shape.cols; j++) {
            float v = left[i] * right[j];
            for (size_t c = 1; c < rank; c++) {
                v += left[c * shape.rows + i] * right[c * shape.cols + j];
            }
            y[i * shape.cols + j] = v;
        }
    }
}

const laci_powersgd_kernels laci_powersgd_portable = {
    .sum = powersgd_sum,
    .multiply = powersgd_multiply,
    .reconstruct = reconstruct,
};
