// SPDX-License-Identifier: MIT
// matrix.c for AVX2. Rows and vectors are processed two or four at a time, so
// that loaded values are used more than once. Every sum has the order of
// matrix.c. A masked load yields zeros, which change no sum: a lane that began
// with +0 never becomes -0.
#include "kernels/matrix.h"

#include <immintrin.h>

#include "kernels/prefetch_avx2.h"

enum {
    LANES = LACI_MATRIX_LANES,
    BLOCK = LACI_MATRIX_BLOCK,
    TILE_ROWS = LACI_MATRIX_ROWS,
    TILE_COLS = LACI_MATRIX_COLS,
    PREFETCH_FLOATS = 1024,
    TERMS = 4, // outer products that are added to a row at a time
};

// Inlined with constant sizes, so that arrays of sums become registers.
#define SPECIALISED static inline __attribute__((always_inline))

// Prefetches the line of memory so many floats after x.
static inline void prefetch_floats(const float *x, size_t floats)
{
    laci_prefetch_line(x, floats * sizeof(*x));
}

static inline __m256i matrix_mask_of(size_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

// x[i..n) as far as eight lanes go, then zeros.
static inline __m256 matrix_load(const float *x, size_t i, size_t n)
{
    if (i + 8 <= n) {
        return _mm256_loadu_ps(x + i);
    }
    if (i >= n) {
        return _mm256_setzero_ps();
    }
    return _mm256_maskload_ps(x + i, matrix_mask_of(n - i));
}

static inline __m256 matrix_add_product(__m256 sum, __m256 a, __m256 b)
{
    return _mm256_add_ps(sum, _mm256_mul_ps(a, b));
}

static inline float matrix_sum_lanes(__m256 low, __m256 high)
{
    const __m256 eight = _mm256_add_ps(low, high);
    __m128 four = _mm_add_ps(
        _mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

// Adds the products of up to BLOCK values of each row and vector to sums.
SPECIALISED void dot_block(
    const float *const *rows, size_t row_count, const float *const *vectors,
    size_t vector_count, size_t n, double sums[2][2])
{
    __m256 low[2][2] = {0}, high[2][2] = {0};
    const size_t whole = n / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES) {
        for (size_t r = 0; r < row_count; r++) {
            prefetch_floats(rows[r] + i, PREFETCH_FLOATS);
            const __m256 a = _mm256_loadu_ps(rows[r] + i);
            const __m256 b = _mm256_loadu_ps(rows[r] + i + 8);
            for (size_t c = 0; c < vector_count; c++) {
                low[r][c] = matrix_add_product(
                    low[r][c], a, _mm256_loadu_ps(vectors[c] + i));
                high[r][c] = matrix_add_product(
                    high[r][c], b, _mm256_loadu_ps(vectors[c] + i + 8));
            }
        }
    }
    for (size_t r = 0; r < row_count; r++) {
        for (size_t c = 0; c < vector_count; c++) {
            if (whole < n) {
                low[r][c] = matrix_add_product(
                    low[r][c], matrix_load(rows[r], whole, n),
                    matrix_load(vectors[c], whole, n));
                high[r][c] = matrix_add_product(
                    high[r][c], matrix_load(rows[r], whole + 8, n),
                    matrix_load(vectors[c], whole + 8, n));
            }
            sums[r][c] += (double)matrix_sum_lanes(low[r][c], high[r][c]);
        }
    }
}

SPECIALISED void matrix_dots(
    const float *x, size_t cols, size_t row_count, const laci_column *columns,
    size_t vector_count, size_t first_row)
{
    double sums[2][2] = {0};
    for (size_t start = 0; start < cols; start += BLOCK) {
        const size_t n = cols - start < BLOCK ? cols - start : BLOCK;
        const float *rows[2] = {0}, *vectors[2] = {0};
        for (size_t r = 0; r < row_count; r++) {
            rows[r] = x + (first_row + r) * cols + start;
        }
        for (size_t c = 0; c < vector_count; c++) {
            vectors[c] = columns[c].in + start;
        }
        dot_block(rows, row_count, vectors, vector_count, n, sums);
    }
    for (size_t c = 0; c < vector_count; c++) {
        for (size_t r = 0; r < row_count; r++) {
            columns[c].out[first_row + r] = (float)sums[r][c];
        }
    }
}

static void avx2_matrix_multiply(
    const float *x, lac_shape shape, const laci_column *columns, size_t count)
{
    size_t i = 0;
    for (; i + 2 <= shape.rows; i += 2) {
        size_t c = 0;
        for (; c + 2 <= count; c += 2) {
            matrix_dots(x, shape.cols, 2, columns + c, 2, i);
        }
        if (c < count) {
            matrix_dots(x, shape.cols, 2, columns + c, 1, i);
        }
    }
    for (size_t c = 0; i < shape.rows && c < count; c++) {
        matrix_dots(x, shape.cols, 1, columns + c, 1, i);
    }
}

// sum += X^T in for four rows of a tile.
SPECIALISED void four_rows(
    const float *x, size_t stride, size_t n, const float *const *in,
    size_t vector_count, float sum[2][TILE_COLS])
{
    __m256 factor[2][4];
    for (size_t c = 0; c < vector_count; c++) {
        for (size_t r = 0; r < 4; r++) {
            factor[c][r] = _mm256_set1_ps(in[c][r]);
        }
    }
    for (size_t j = 0; j < n; j += 8) {
        if (j % LANES == 0) {
            prefetch_floats(x + j, TILE_COLS);
            prefetch_floats(x + stride + j, TILE_COLS);
            prefetch_floats(x + 2 * stride + j, TILE_COLS);
            prefetch_floats(x + 3 * stride + j, TILE_COLS);
        }
        const __m256 row0 = matrix_load(x, j, n);
        const __m256 row1 = matrix_load(x + stride, j, n);
        const __m256 row2 = matrix_load(x + 2 * stride, j, n);
        const __m256 row3 = matrix_load(x + 3 * stride, j, n);
        for (size_t c = 0; c < vector_count; c++) {
            const __m256 first = matrix_add_product(
                _mm256_mul_ps(row0, factor[c][0]), row1, factor[c][1]);
            const __m256 second = matrix_add_product(
                _mm256_mul_ps(row2, factor[c][2]), row3, factor[c][3]);
            const __m256 both = _mm256_add_ps(first, second);
            _mm256_storeu_ps(
                sum[c] + j, _mm256_add_ps(_mm256_loadu_ps(sum[c] + j), both));
        }
    }
}

SPECIALISED void multiply_tile(
    const float *x, lac_shape tile, size_t stride, const laci_column *columns,
    size_t vector_count, size_t first_row, size_t first_col)
{
    float sum[2][TILE_COLS] = {0};
    size_t i = 0;
    for (; i + 4 <= tile.rows; i += 4) {
        const float *in[2] = {0};
        for (size_t c = 0; c < vector_count; c++) {
            in[c] = columns[c].in + first_row + i;
        }
        four_rows(x + i * stride, stride, tile.cols, in, vector_count, sum);
    }
    for (size_t c = 0; c < vector_count; c++) {
        float *const out = columns[c].out + first_col;
        for (size_t r = i; r < tile.rows; r++) {
            const float factor = columns[c].in[first_row + r];
            for (size_t j = 0; j < tile.cols; j++) {
                sum[c][j] += x[r * stride + j] * factor;
            }
        }
        for (size_t j = 0; j < tile.cols; j++) {
            out[j] += sum[c][j];
        }
    }
}

static void avx2_matrix_multiply_transposed(
    const float *x, lac_shape shape, const laci_column *columns, size_t count)
{
    const size_t rows = shape.rows, cols = shape.cols;
    for (size_t i = 0; i < rows; i += TILE_ROWS) {
        lac_shape tile = {rows - i < TILE_ROWS ? rows - i : TILE_ROWS, 0};
        for (size_t j = 0; j < cols; j += TILE_COLS) {
            const float *const from = x + i * cols + j;
            size_t c = 0;
            tile.cols = cols - j < TILE_COLS ? cols - j : TILE_COLS;
            for (; c + 2 <= count; c += 2) {
                multiply_tile(from, tile, cols, columns + c, 2, i, j);
            }
            if (c < count) {
                multiply_tile(from, tile, cols, columns + c, 1, i, j);
            }
        }
    }
}

// y = x + up to TERMS outer products + update, for row i.
SPECIALISED void add_terms(
    const float *x, size_t i, size_t cols, const laci_outer *terms,
    size_t count, const float *update, float *y)
{
    float factor[TERMS];
    for (size_t k = 0; k < count; k++) {
        factor[k] = terms[k].factor * terms[k].left[i];
    }
    size_t j = 0;
    for (; j + 8 <= cols; j += 8) {
        if (j % LANES == 0) {
            prefetch_floats(x + j, PREFETCH_FLOATS);
        }
        __m256 v = _mm256_loadu_ps(x + j);
        for (size_t k = 0; k < count; k++) {
            v = matrix_add_product(
                v, _mm256_set1_ps(factor[k]),
                _mm256_loadu_ps(terms[k].right + j));
        }
        if (update != NULL) {
            v = _mm256_add_ps(v, _mm256_loadu_ps(update + j));
        }
        _mm256_storeu_ps(y + j, v);
    }
    for (; j < cols; j++) {
        float v = x[j];
        for (size_t k = 0; k < count; k++) {
            v += factor[k] * terms[k].right[j];
        }
        y[j] = update == NULL ? v : v + update[j];
    }
}

static void add_some_terms(
    const float *x, size_t i, size_t cols, const laci_outer *terms,
    size_t count, const float *update, float *y)
{
    switch (count) {
    case 0:
        add_terms(x, i, cols, terms, 0, update, y);
        break;
    case 1:
        add_terms(x, i, cols, terms, 1, update, y);
        break;
    case 2:
        add_terms(x, i, cols, terms, 2, update, y);
        break;
    case 3:
        add_terms(x, i, cols, terms, 3, update, y);
        break;
    default:
        add_terms(x, i, cols, terms, TERMS, update, y);
        break;
    }
}

static void avx2_add_outer(
    const float *x, lac_shape shape, const laci_outer *terms, size_t count,
    const float *update, float *y)
{
    const size_t cols = shape.cols;
    for (size_t i = 0; i < shape.rows; i++) {
        const float *from = x + i * cols;
        float *const to = y + i * cols;
        size_t k = 0;
        for (; count - k > TERMS; k += TERMS) {
            add_some_terms(from, i, cols, terms + k, TERMS, NULL, to);
            from = to;
        }
        add_some_terms(
            from, i, cols, terms + k, count - k,
            update == NULL ? NULL : update + i * cols, to);
    }
}

const laci_matrix_kernels laci_matrix_avx2 = {
    .multiply = avx2_matrix_multiply,
    .multiply_transposed = avx2_matrix_multiply_transposed,
    .add_outer = avx2_add_outer,
};
