// SPDX-License-Identifier: MIT
#include "kernels/matrix.h"

#include <string.h>

enum {
    LANES = LACI_MATRIX_LANES,
    BLOCK = LACI_MATRIX_BLOCK,
    TILE_ROWS = LACI_MATRIX_ROWS,
    TILE_COLS = LACI_MATRIX_COLS,
};

// Lanes are added in pairs, blocks in double.
static double matrix_dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t start = 0; start < n; start += BLOCK) {
        const size_t len = n - start < BLOCK ? n - start : BLOCK;
        const float *const u = a + start, *const v = b + start;
        float lanes[LANES] = {0};
        size_t i = 0;
        for (; i + LANES <= len; i += LANES) {
            for (size_t j = 0; j < LANES; j++) {
                lanes[j] += u[i + j] * v[i + j];
            }
        }
        for (size_t j = 0; i + j < len; j++) {
            lanes[j] += u[i + j] * v[i + j];
        }
        for (size_t half = LANES / 2; half > 0; half /= 2) {
            for (size_t j = 0; j < half; j++) {
                lanes[j] += lanes[j + half];
            }
        }
        sum += (double)lanes[0];
    }
    return sum;
}

static void matrix_multiply(
    const float *x, lac_shape shape, const laci_column *columns, size_t count)
{
    for (size_t i = 0; i < shape.rows; i++) {
        for (size_t c = 0; c < count; c++) {
            columns[c].out[i] = (float)matrix_dot(
                x + i * shape.cols, columns[c].in, shape.cols);
        }
    }
}

// out += X^T in for a tile of X with `stride` values a row. The sum of the tile
// is computed first, four rows at a time, and then added.
static void multiply_tile(
    const float *x, lac_shape tile, size_t stride, const float *in, float *out)
{
    float sum[TILE_COLS] = {0};
    size_t i = 0;
    for (; i + 4 <= tile.rows; i += 4) {
        const float *const row0 = x + i * stride, *const row1 = row0 + stride;
        const float *const row2 = row1 + stride, *const row3 = row2 + stride;
        for (size_t j = 0; j < tile.cols; j++) {
            sum[j] += (row0[j] * in[i] + row1[j] * in[i + 1]) +
                      (row2[j] * in[i + 2] + row3[j] * in[i + 3]);
        }
    }
    for (; i < tile.rows; i++) {
        for (size_t j = 0; j < tile.cols; j++) {
            sum[j] += x[i * stride + j] * in[i];
        }
    }
    for (size_t j = 0; j < tile.cols; j++) {
        out[j] += sum[j];
    }
}

static void matrix_multiply_transposed(
    const float *x, lac_shape shape, const laci_column *columns, size_t count)
{
    const size_t rows = shape.rows, cols = shape.cols;
    for (size_t i = 0; i < rows; i += TILE_ROWS) {
        lac_shape tile = {rows - i < TILE_ROWS ? rows - i : TILE_ROWS, 0};
        for (size_t j = 0; j < cols; j += TILE_COLS) {
            tile.cols = cols - j < TILE_COLS ? cols - j : TILE_COLS;
            for (size_t c = 0; c < count; c++) {
                multiply_tile(
                    x + i * cols + j, tile, cols, columns[c].in + i,
                    columns[c].out + j);
            }
        }
    }
}

static void add_outer(
    const float *x, lac_shape shape, const laci_outer *terms, size_t count,
    const float *update, float *y)
{
    const size_t cols = shape.cols;
    for (size_t i = 0; i < shape.rows; i++) {
        float *const row = y + i * cols;
        memmove(row, x + i * cols, cols * sizeof(*row));
        for (size_t k = 0; k < count; k++) {
            const float factor = terms[k].factor * terms[k].left[i];
            const float *const right = terms[k].right;
            for (size_t j = 0; j < cols; j++) {
                row[j] += factor * right[j];
            }
        }
        for (size_t j = 0; update != NULL && j < cols; j++) {
            row[j] += update[i * cols + j];
        }
    }
}

const laci_matrix_kernels laci_matrix_portable = {
    .multiply = matrix_multiply,
    .multiply_transposed = matrix_multiply_transposed,
    .add_outer = add_outer,
};
