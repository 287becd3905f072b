// SPDX-License-Identifier: MIT
// powersgd.c for AVX2: ranks up to four are one pass over the matrix, in which
// a sum stays in registers from the time it is made until it was used; higher
// ones go through a small block of sums, four columns at a time. All sums keep
// the order of powersgd.c. Values past the end of a row are zeros, which change
// no sum: a lane that began with +0 never becomes -0.
#include "kernels/powersgd.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    LANES = LACI_POWERSGD_LANES,
    BLOCK = LACI_POWERSGD_BLOCK,
    ROWS = LACI_POWERSGD_ROWS,
    RANK_MAX = LACI_POWERSGD_RANK_MAX,
    GROUP = 4, // columns that are used together
    PAIR = 2,  // rows that are multiplied together
};

// Inlined with constant sizes, so that arrays become registers.
#define SPECIALISED static inline __attribute__((always_inline))

static inline __m256i mask_of(size_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

// x[0..n) as far as eight lanes go, then zeros.
SPECIALISED __m256 load(const float *x, size_t n, bool whole)
{
    return whole ? _mm256_loadu_ps(x) : _mm256_maskload_ps(x, mask_of(n));
}

SPECIALISED void store(float *x, size_t n, bool whole, __m256 v)
{
    if (whole) {
        _mm256_storeu_ps(x, v);
    } else {
        _mm256_maskstore_ps(x, mask_of(n), v);
    }
}

SPECIALISED __m256 add_product(__m256 sum, __m256 a, __m256 b)
{
    return _mm256_add_ps(sum, _mm256_mul_ps(a, b));
}

SPECIALISED float sum_lanes(__m256 eight)
{
    __m128 four = _mm_add_ps(
        _mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

// Eight sums of G + E, or n if they are not whole, from place `at`.
SPECIALISED __m256 sum_eight(
    const laci_residual *e, const float *g, size_t rank, size_t at,
    const __m256 *left, const __m256 *right, size_t n, bool whole)
{
    __m256 v = load(e->m + at, n, whole);
    for (size_t c = 0; c < rank; c++) {
        v = _mm256_sub_ps(v, _mm256_mul_ps(left[c], right[c]));
    }
    return _mm256_add_ps(v, load(g + at, n, whole));
}

// Adds eight values' part of the products of `count` rows from row i on.
SPECIALISED void pair_step(
    const laci_residual *e, const float *g, size_t rank, const float *in,
    size_t i, size_t j, size_t count, size_t n, bool whole,
    __m256 (*left)[GROUP], __m256 (*sums)[GROUP])
{
    __m256 right[GROUP], vector[GROUP];
    for (size_t c = 0; c < rank; c++) {
        right[c] = load(e->right + c * e->shape.cols + j, n, whole);
        vector[c] = load(in + c * e->shape.cols + j, n, whole);
    }
    for (size_t r = 0; r < count; r++) {
        const __m256 v = sum_eight(
            e, g, rank, (i + r) * e->shape.cols + j, left[r], right, n, whole);
        for (size_t c = 0; c < rank; c++) {
            sums[r][c] = add_product(sums[r][c], v, vector[c]);
        }
    }
}

SPECIALISED void multiply_pair(
    const laci_residual *e, const float *g, size_t rank, const float *in,
    size_t i, size_t count, float *out)
{
    const size_t cols = e->shape.cols;
    __m256 left[PAIR][GROUP];
    double totals[PAIR][GROUP] = {0};
    for (size_t r = 0; r < count; r++) {
        for (size_t c = 0; c < rank; c++) {
            left[r][c] = _mm256_set1_ps(e->left[c * e->shape.rows + i + r]);
        }
    }
    for (size_t first = 0; first < cols; first += BLOCK) {
        const size_t end = cols - first < BLOCK ? cols : first + BLOCK;
        __m256 sums[PAIR][GROUP] = {0};
        size_t j = first;
        for (; j + LANES <= end; j += LANES) {
            pair_step(e, g, rank, in, i, j, count, LANES, true, left, sums);
        }
        if (j < end) {
            pair_step(e, g, rank, in, i, j, count, end - j, false, left, sums);
        }
        for (size_t r = 0; r < count; r++) {
            for (size_t c = 0; c < rank; c++) {
                totals[r][c] += (double)sum_lanes(sums[r][c]);
            }
        }
    }
    for (size_t r = 0; r < count; r++) {
        for (size_t c = 0; c < rank; c++) {
            out[c * e->shape.rows + i + r] = (float)totals[r][c];
        }
    }
}

SPECIALISED void multiply_in(
    const laci_residual *e, const float *g, size_t rank, const float *in,
    float *out)
{
    size_t i = 0;
    for (; i + PAIR <= e->shape.rows; i += PAIR) {
        multiply_pair(e, g, rank, in, i, PAIR, out);
    }
    if (i < e->shape.rows) {
        multiply_pair(e, g, rank, in, i, 1, out);
    }
}

SPECIALISED void rows_step(
    const laci_residual *e, const float *g, size_t rank, bool keep,
    size_t i, size_t j, size_t n, bool whole,
    __m256 (*left)[GROUP], __m256 (*vector)[GROUP], float *out)
{
    const size_t cols = e->shape.cols;
    __m256 right[GROUP], v[ROWS];
    for (size_t c = 0; c < rank; c++) {
        right[c] = load(e->right + c * cols + j, n, whole);
    }
    for (size_t r = 0; r < ROWS; r++) {
        v[r] = sum_eight(
            e, g, rank, (i + r) * cols + j, left[r], right, n, whole);
        if (keep) {
            store(e->m + (i + r) * cols + j, n, whole, v[r]);
        }
    }
    for (size_t c = 0; c < rank; c++) {
        float *const to = out + c * cols + j;
        const __m256 first = add_product(
            _mm256_mul_ps(v[0], vector[0][c]), v[1], vector[1][c]);
        const __m256 second = add_product(
            _mm256_mul_ps(v[2], vector[2][c]), v[3], vector[3][c]);
        store(
            to, n, whole,
            _mm256_add_ps(load(to, n, whole), _mm256_add_ps(first, second)));
    }
}

SPECIALISED void multiply_four(
    const laci_residual *e, const float *g, size_t rank, const float *in,
    bool keep, size_t i, float *out)
{
    const size_t rows = e->shape.rows, cols = e->shape.cols;
    __m256 left[ROWS][GROUP], vector[ROWS][GROUP];
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t c = 0; c < rank; c++) {
            left[r][c] = _mm256_set1_ps(e->left[c * rows + i + r]);
            vector[r][c] = _mm256_set1_ps(in[c * rows + i + r]);
        }
    }
    size_t j = 0;
    for (; j + LANES <= cols; j += LANES) {
        rows_step(
            e, g, rank, keep, i, j, LANES, true, left, vector, out);
    }
    if (j < cols) {
        rows_step(
            e, g, rank, keep, i, j, cols - j, false, left, vector, out);
    }
}
static void multiply_last(
    const laci_residual *e, const float *g, const float *in, bool keep,
    size_t i, float *out)
{
    const size_t rows = e->shape.rows, cols = e->shape.cols;
    for (size_t j = 0; j < cols; j++) {
        float v[ROWS];
        for (size_t r = 0; i + r < rows; r++) {
            const size_t at = (i + r) * cols + j;
            v[r] = e->m[at];
            for (size_t c = 0; c < e->rank; c++) {
                v[r] -= e->left[c * rows + i + r] * e->right[c * cols + j];
            }
            v[r] += g[at];
            if (keep) {
                e->m[at] = v[r];
            }
        }
        for (size_t c = 0; c < e->rank; c++) {
            float sum = v[0] * in[c * rows + i];
            for (size_t r = 1; i + r < rows; r++) {
                sum += v[r] * in[c * rows + i + r];
            }
            out[c * cols + j] += sum;
        }
    }
}

SPECIALISED void multiply_rows_in(
    const laci_residual *e, const float *g, size_t rank, const float *in,
    bool keep, float *out)
{
    size_t i = 0;
    for (; i + ROWS <= e->shape.rows; i += ROWS) {
        multiply_four(e, g, rank, in, keep, i, out);
    }
    if (i < e->shape.rows) {
        multiply_last(e, g, in, keep, i, out);
    }
}

SPECIALISED void reconstruct_row(
    const float *left, size_t stride, size_t rank, const float *right,
    size_t cols, float *y)
{
    __m256 factor[GROUP];
    for (size_t c = 0; c < rank; c++) {
        factor[c] = _mm256_set1_ps(left[c * stride]);
    }
    size_t j = 0;
    for (; j < cols && (uintptr_t)(y + j) % 32 != 0; j++) {
        float v = left[0] * right[j];
        for (size_t c = 1; c < rank; c++) {
            v += left[c * stride] * right[c * cols + j];
        }
        y[j] = v;
    }
    for (; j + LANES <= cols; j += LANES) {
        __m256 v = _mm256_mul_ps(factor[0], _mm256_loadu_ps(right + j));
        for (size_t c = 1; c < rank; c++) {
            v = add_product(
                v, factor[c], _mm256_loadu_ps(right + c * cols + j));
        }
        _mm256_stream_ps(y + j, v);
    }
    for (; j < cols; j++) {
        float v = left[0] * right[j];
        for (size_t c = 1; c < rank; c++) {
            v += left[c * stride] * right[c * cols + j];
        }
        y[j] = v;
    }
}

#define WITH_RANK(rank, call)                                                  \
    switch (rank) {                                                            \
    case 1: { enum { R = 1 }; call; break; }                                   \
    case 2: { enum { R = 2 }; call; break; }                                   \
    case 3: { enum { R = 3 }; call; break; }                                   \
    default: { enum { R = 4 }; call; break; }                                  \
    }

static void multiply(
    const laci_residual *e, const float *g, const float *in, float *out)
{
    WITH_RANK(e->rank, multiply_in(e, g, R, in, out))
}
static void multiply_transposed(
    const laci_residual *e, const float *g, const float *in, float *out)
{
    WITH_RANK(e->rank, multiply_rows_in(e, g, R, in, false, out))
}
static void absorb(
    const laci_residual *e, const float *g, const float *in, float *out)
{
    WITH_RANK(e->rank, multiply_rows_in(e, g, R, in, true, out))
}
static void reconstruct(
    lac_shape shape, size_t rank, const float *left, const float *right,
    float *y)
{
    for (size_t i = 0; i < shape.rows; i++) {
        WITH_RANK(rank, reconstruct_row(left + i, shape.rows, R, right, shape.cols, y + i * shape.cols))
    }
    _mm_sfence();
}

const laci_powersgd_kernels laci_powersgd_avx2 = {
    .multiply = multiply,
    .multiply_transposed = multiply_transposed,
    .absorb = absorb,
    .reconstruct = reconstruct,
};
