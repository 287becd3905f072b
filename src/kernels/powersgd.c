// SPDX-License-Identifier: MIT
#include "kernels/powersgd.h"

#include <stdbool.h>

enum {
    LANES = LACI_POWERSGD_LANES,
    BLOCK = LACI_POWERSGD_BLOCK,
    ROWS = LACI_POWERSGD_ROWS,
};

// Values [first, first + n) of row i of G + E.
static void sum_row(
    const laci_residual *e, const float *g, size_t i, size_t first, size_t n,
    float *out)
{
    const size_t at = i * e->shape.cols + first;
    for (size_t j = 0; j < n; j++) {
        float v = e->m[at + j];
        for (size_t c = 0; c < e->rank; c++) {
            v -= e->left[c * e->shape.rows + i] *
                 e->right[c * e->shape.cols + first + j];
        }
        out[j] = v + g[at + j];
    }
}

static float dot(const float *a, const float *b, size_t n)
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

static void multiply(
    const laci_residual *e, const float *g, const float *in, float *out)
{
    const size_t cols = e->shape.cols;
    for (size_t i = 0; i < e->shape.rows; i++) {
        double sums[LACI_POWERSGD_RANK_MAX] = {0};
        for (size_t first = 0; first < cols; first += BLOCK) {
            const size_t n = cols - first < BLOCK ? cols - first : BLOCK;
            float row[BLOCK];
            sum_row(e, g, i, first, n, row);
            for (size_t c = 0; c < e->rank; c++) {
                sums[c] += (double)dot(row, in + c * cols + first, n);
            }
        }
        for (size_t c = 0; c < e->rank; c++) {
            out[c * e->shape.rows + i] = (float)sums[c];
        }
    }
}

// What a block of up to ROWS rows from row i on adds to one value of a product.
static float block_term(
    float block[ROWS][BLOCK], size_t rows, size_t j, const float *in)
{
    if (rows < ROWS) {
        float sum = block[0][j] * in[0];
        for (size_t r = 1; r < rows; r++) {
            sum += block[r][j] * in[r];
        }
        return sum;
    }
    return (block[0][j] * in[0] + block[1][j] * in[1]) +
           (block[2][j] * in[2] + block[3][j] * in[3]);
}

static void multiply_rows(
    const laci_residual *e, const float *g, const float *in, bool keep,
    float *out)
{
    const size_t rows = e->shape.rows, cols = e->shape.cols;
    for (size_t i = 0; i < rows; i += ROWS) {
        const size_t count = rows - i < ROWS ? rows - i : ROWS;
        for (size_t first = 0; first < cols; first += BLOCK) {
            const size_t n = cols - first < BLOCK ? cols - first : BLOCK;
            float block[ROWS][BLOCK];
            for (size_t r = 0; r < count; r++) {
                sum_row(e, g, i + r, first, n, block[r]);
                for (size_t j = 0; keep && j < n; j++) {
                    e->m[(i + r) * cols + first + j] = block[r][j];
                }
            }
            for (size_t c = 0; c < e->rank; c++) {
                for (size_t j = 0; j < n; j++) {
                    out[c * cols + first + j] +=
                        block_term(block, count, j, in + c * rows + i);
                }
            }
        }
    }
}

static void multiply_transposed(
    const laci_residual *e, const float *g, const float *in, float *out)
{
    multiply_rows(e, g, in, false, out);
}

static void absorb(
    const laci_residual *e, const float *g, const float *in, float *out)
{
    multiply_rows(e, g, in, true, out);
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
    .multiply = multiply,
    .multiply_transposed = multiply_transposed,
    .absorb = absorb,
    .reconstruct = reconstruct,
};
