// SPDX-License-Identifier: MIT
// powersgd.c for AVX2. With up to four columns, a value of S stays in a
// register until it is multiplied, and is stored past the caches where rows are
// aligned: it is needed next after all other matrices. With more columns, a
// block of S is computed at a time. Every sum has the order of powersgd.c.
// Lanes past the end of a row are zeros, which change no sum: a lane that began
// with +0 never becomes -0.
#include "kernels/powersgd.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/powersgd_order.h"
#include "kernels/prefetch_avx2.h"

enum {
    LANES = LACI_POWERSGD_LANES,
    BLOCK = LACI_POWERSGD_BLOCK,
    RANK_MAX = LACI_POWERSGD_RANK_MAX,
    GROUP = 4, // columns, or vectors of a row, that are used together
    PAIR = 2,  // the most rows that are multiplied together
    PREFETCH_VALUES = 256,
};

// Inlined with constant sizes, so that arrays become registers.
#define SPECIALISED static inline __attribute__((always_inline))

// The position of eight values: the row, the column, and how many are within
// the row; and the vectors that they are multiplied with.
typedef struct place {
    size_t i, j, n;
    const float *in;
} place;

// Columns of some rows, spread over lanes.
typedef struct factors {
    __m256 row[PAIR][GROUP];
} factors;

static inline __m256i powersgd_mask_of(size_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

SPECIALISED __m256 powersgd_load(const float *x, size_t n)
{
    return n == LANES ? _mm256_loadu_ps(x)
                      : _mm256_maskload_ps(x, powersgd_mask_of(n));
}

SPECIALISED void powersgd_store(float *x, size_t n, bool past_caches, __m256 v)
{
    if (past_caches) {
        _mm256_stream_ps(x, v);
    } else if (n == LANES) {
        _mm256_storeu_ps(x, v);
    } else {
        _mm256_maskstore_ps(x, powersgd_mask_of(n), v);
    }
}

SPECIALISED __m256 powersgd_add_product(__m256 sum, __m256 a, __m256 b)
{
    return _mm256_add_ps(sum, _mm256_mul_ps(a, b));
}

static inline float powersgd_sum_lanes(__m256 eight)
{
    __m128 four = _mm_add_ps(
        _mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

static inline void prefetch_values(const float *x)
{
    laci_prefetch_line(x, PREFETCH_VALUES * sizeof(*x));
}

// Makes eight values of S in each of `count` rows, and adds their part of the
// products to `sums`.
SPECIALISED void step(
    const laci_powersgd_sum *x, size_t rank, size_t count, bool past_caches,
    place at, const factors *left, factors *sums)
{
    const size_t cols = x->shape.cols;
    __m256 right[GROUP], vector[GROUP];
    for (size_t c = 0; c < rank; c++) {
        right[c] = powersgd_load(x->right + c * cols + at.j, at.n);
        vector[c] = powersgd_load(at.in + c * cols + at.j, at.n);
    }
    for (size_t r = 0; r < count; r++) {
        const size_t index = (at.i + r) * cols + at.j;
        __m256 v = powersgd_load(x->m + index, at.n);
        for (size_t c = 0; c < rank; c++) {
            v = _mm256_sub_ps(v, _mm256_mul_ps(left->row[r][c], right[c]));
        }
        v = _mm256_add_ps(v, powersgd_load(x->g + index, at.n));
        powersgd_store(x->s + index, at.n, past_caches, v);
        for (size_t c = 0; c < rank; c++) {
            sums->row[r][c] =
                powersgd_add_product(sums->row[r][c], v, vector[c]);
        }
        prefetch_values(x->m + index);
        prefetch_values(x->g + index);
    }
}

SPECIALISED void multiply_rows(
    const laci_powersgd_sum *x, size_t rank, size_t count, bool past_caches,
    size_t i, const float *in, float *out)
{
    const size_t rows = x->shape.rows, cols = x->shape.cols;
    double totals[PAIR][GROUP] = {0};
    factors left;
    for (size_t r = 0; r < count; r++) {
        for (size_t c = 0; c < rank; c++) {
            left.row[r][c] = _mm256_set1_ps(x->left[c * rows + i + r]);
        }
    }
    for (size_t first = 0; first < cols; first += BLOCK) {
        const size_t end = cols - first < BLOCK ? cols : first + BLOCK;
        factors sums = {0};
        place at = {i, first, LANES, in};
        for (; at.j + LANES <= end; at.j += LANES) {
            step(x, rank, count, past_caches, at, &left, &sums);
        }
        if (at.j < end) {
            at.n = end - at.j;
            step(x, rank, count, false, at, &left, &sums);
        }
        for (size_t r = 0; r < count; r++) {
            for (size_t c = 0; c < rank; c++) {
                totals[r][c] += (double)powersgd_sum_lanes(sums.row[r][c]);
            }
        }
    }
    for (size_t r = 0; r < count; r++) {
        for (size_t c = 0; c < rank; c++) {
            out[c * rows + i + r] = (float)totals[r][c];
        }
    }
}

static bool powersgd_aligned(const laci_powersgd_sum *x)
{
    return x->shape.cols % LANES == 0 && (uintptr_t)x->s % sizeof(__m256) == 0;
}

SPECIALISED void multiply_narrow(
    const laci_powersgd_sum *x, size_t rank, const float *in, float *out)
{
    const bool past_caches = powersgd_aligned(x);
    const bool pairs = !laci_powersgd_in_order(x);
    size_t i = 0;
    for (; pairs && i + PAIR <= x->shape.rows; i += PAIR) {
        if (past_caches) {
            multiply_rows(x, rank, PAIR, true, i, in, out);
        } else {
            multiply_rows(x, rank, PAIR, false, i, in, out);
        }
    }
    for (; i < x->shape.rows; i++) {
        if (past_caches) {
            multiply_rows(x, rank, 1, true, i, in, out);
        } else {
            multiply_rows(x, rank, 1, false, i, in, out);
        }
    }
    _mm_sfence();
}

// Values [first, first + n) of row i of S.
static void avx2_sum_row(
    const laci_powersgd_sum *x, size_t i, size_t first, size_t n)
{
    const size_t rows = x->shape.rows, cols = x->shape.cols;
    const size_t at = i * cols + first;
    size_t j = 0;
    for (; j + GROUP * LANES <= n; j += GROUP * LANES) {
        __m256 v[GROUP];
        for (size_t k = 0; k < GROUP; k++) {
            v[k] = _mm256_loadu_ps(x->m + at + j + k * LANES);
        }
        for (size_t c = 0; c < x->rank; c++) {
            const float *const right = x->right + c * cols + first + j;
            const __m256 left = _mm256_set1_ps(x->left[c * rows + i]);
            for (size_t k = 0; k < GROUP; k++) {
                const __m256 other = _mm256_loadu_ps(right + k * LANES);
                v[k] = _mm256_sub_ps(v[k], _mm256_mul_ps(left, other));
            }
        }
        for (size_t k = 0; k < GROUP; k++) {
            const __m256 g = _mm256_loadu_ps(x->g + at + j + k * LANES);
            _mm256_storeu_ps(x->s + at + j + k * LANES, _mm256_add_ps(v[k], g));
        }
    }
    for (; j < n; j++) {
        float v = x->m[at + j];
        for (size_t c = 0; c < x->rank; c++) {
            v -= x->left[c * rows + i] * x->right[c * cols + first + j];
        }
        x->s[at + j] = v + x->g[at + j];
    }
}

static void avx2_powersgd_sum(const laci_powersgd_sum *x)
{
    for (size_t i = 0; i < x->shape.rows; i++) {
        avx2_sum_row(x, i, 0, x->shape.cols);
    }
}

// Adds the products of n values with `count` vectors to sums.
SPECIALISED void powersgd_dots(
    const float *row, size_t n, const float *in, size_t stride, size_t count,
    double *sums)
{
    __m256 lanes[GROUP] = {0};
    size_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        const __m256 v = _mm256_loadu_ps(row + j);
        for (size_t c = 0; c < count; c++) {
            const __m256 other = _mm256_loadu_ps(in + c * stride + j);
            lanes[c] = powersgd_add_product(lanes[c], v, other);
        }
    }
    for (size_t c = 0; c < count; c++) {
        if (j < n) {
            lanes[c] = powersgd_add_product(
                lanes[c], powersgd_load(row + j, n - j),
                powersgd_load(in + c * stride + j, n - j));
        }
        sums[c] += (double)powersgd_sum_lanes(lanes[c]);
    }
}

static void multiply_wide(
    const laci_powersgd_sum *x, const float *in, float *out)
{
    const size_t cols = x->shape.cols;
    for (size_t i = 0; i < x->shape.rows; i++) {
        double sums[RANK_MAX] = {0};
        for (size_t first = 0; first < cols; first += BLOCK) {
            const size_t n = cols - first < BLOCK ? cols - first : BLOCK;
            const float *const row = x->s + i * cols + first;
            const float *const from = in + first;
            size_t c = 0;
            avx2_sum_row(x, i, first, n);
            for (; c + GROUP <= x->rank; c += GROUP) {
                powersgd_dots(row, n, from + c * cols, cols, GROUP, sums + c);
            }
            for (; c < x->rank; c++) {
                powersgd_dots(row, n, from + c * cols, cols, 1, sums + c);
            }
        }
        for (size_t c = 0; c < x->rank; c++) {
            out[c * x->shape.rows + i] = (float)sums[c];
        }
    }
}

static void avx2_powersgd_multiply(
    const laci_powersgd_sum *x, const float *in, float *out)
{
    switch (x->rank) {
    case 1:
        multiply_narrow(x, 1, in, out);
        break;
    case 2:
        multiply_narrow(x, 2, in, out);
        break;
    case 3:
        multiply_narrow(x, 3, in, out);
        break;
    case 4:
        multiply_narrow(x, 4, in, out);
        break;
    default:
        multiply_wide(x, in, out);
        break;
    }
}

static float element(
    const float *left, size_t rows, size_t rank, const float *right,
    size_t cols)
{
    float v = left[0] * right[0];
    for (size_t c = 1; c < rank; c++) {
        v += left[c * rows] * right[c * cols];
    }
    return v;
}

// One row of left right^T, past the caches.
SPECIALISED void reconstruct_row(
    lac_shape shape, size_t rank, const float *left, const float *right,
    float *y)
{
    const size_t rows = shape.rows, cols = shape.cols;
    __m256 factor[RANK_MAX];
    for (size_t c = 0; c < rank; c++) {
        factor[c] = _mm256_set1_ps(left[c * rows]);
    }
    size_t j = 0;
    for (; j < cols && (uintptr_t)(y + j) % sizeof(__m256) != 0; j++) {
        y[j] = element(left, rows, rank, right + j, cols);
    }
    for (; j + LANES <= cols; j += LANES) {
        __m256 v = _mm256_mul_ps(factor[0], _mm256_loadu_ps(right + j));
        for (size_t c = 1; c < rank; c++) {
            const __m256 other = _mm256_loadu_ps(right + c * cols + j);
            v = powersgd_add_product(v, factor[c], other);
        }
        _mm256_stream_ps(y + j, v);
    }
    for (; j < cols; j++) {
        y[j] = element(left, rows, rank, right + j, cols);
    }
}

static void avx2_reconstruct(
    lac_shape shape, size_t rank, const float *left, const float *right,
    float *y)
{
    for (size_t i = 0; i < shape.rows; i++, y += shape.cols) {
        switch (rank) {
        case 1:
            reconstruct_row(shape, 1, left + i, right, y);
            break;
        case 2:
            reconstruct_row(shape, 2, left + i, right, y);
            break;
        case 3:
            reconstruct_row(shape, 3, left + i, right, y);
            break;
        case 4:
            reconstruct_row(shape, 4, left + i, right, y);
            break;
        default:
            reconstruct_row(shape, rank, left + i, right, y);
            break;
        }
    }
    _mm_sfence();
}

const laci_powersgd_kernels laci_powersgd_avx2 = {
    .sum = avx2_powersgd_sum,
    .multiply = avx2_powersgd_multiply,
    .reconstruct = avx2_reconstruct,
};
