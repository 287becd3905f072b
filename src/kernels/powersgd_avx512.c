// SPDX-License-Identifier: MIT
// powersgd.c for AVX-512: the product of up to four columns, which is most of a
// step. 16 values of S are computed and stored at a time, then multiplied eight
// at a time, the lanes of a sum. The rest is left to powersgd_avx2.c.
//
// Four rows at a time share the loads of vectors. The next four rows are
// prefetched into the second cache, since no processor does so by itself: on an
// EPYC of the Zen 4 generation this halves the time of rank 4. A processor that
// prefetches well is faster still with one row after the other, the order of
// memory, as long as the vectors stay in the first cache and there is little to
// compute.
#include "kernels/powersgd.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/prefetch_avx2.h"

enum {
    LANES = LACI_POWERSGD_LANES,
    BLOCK = LACI_POWERSGD_BLOCK,
    WIDTH = 2 * LANES,      // values of a row that are computed together
    GROUP = 4,              // the most columns
    ROWS = 4,               // the most rows that are multiplied together
    PREFETCH_VALUES = 1024, // in advance, at least
    IN_ORDER_VALUES = 2048,
};

// Inlined with constant sizes, so that arrays become registers.
#define SPECIALISED static inline __attribute__((always_inline))

// The position of 16 values: the row, the column, and which are within the row;
// and how far to prefetch.
typedef struct place {
    size_t i, j;
    __mmask16 mask;
    size_t distance;
} place;

// For some rows: columns of the left factor, spread over lanes, and sums.
typedef struct factors {
    __m512 left[ROWS][GROUP];
    __m256 sums[ROWS][GROUP];
} factors;

// Computes and stores 16 values of S. Those that are masked are zeros.
SPECIALISED __m512 make_values(
    const laci_powersgd_sum *x, size_t rank, bool past_caches,
    const __m512 *left, const __m512 *right, place p)
{
    const size_t at = p.i * x->shape.cols + p.j;
    __m512 v = _mm512_maskz_loadu_ps(p.mask, x->m + at);
    for (size_t c = 0; c < rank; c++) {
        v = _mm512_sub_ps(v, _mm512_mul_ps(left[c], right[c]));
    }
    const __m512 g = _mm512_maskz_loadu_ps(p.mask, x->g + at);
    v = _mm512_maskz_add_ps(p.mask, v, g);
    if (past_caches) {
        _mm512_stream_ps(x->s + at, v);
    } else {
        _mm512_mask_storeu_ps(x->s + at, p.mask, v);
    }
    return v;
}

// Makes 16 values in each of `count` rows, and adds their products to the sums.
// Zeros past the end of a row change no sum: a lane that began with +0 never
// becomes -0.
SPECIALISED void wide_step(
    const laci_powersgd_sum *x, size_t rank, size_t count, bool past_caches,
    place p, const float *in, factors *f)
{
    __m512 right[GROUP];
    __m256 low[GROUP], high[GROUP];
    for (size_t c = 0; c < rank; c++) {
        const size_t at = c * x->shape.cols + p.j;
        right[c] = _mm512_maskz_loadu_ps(p.mask, x->right + at);
        low[c] = _mm256_maskz_loadu_ps((__mmask8)p.mask, in + at);
        high[c] =
            _mm256_maskz_loadu_ps((__mmask8)(p.mask >> LANES), in + at + LANES);
    }
    for (size_t r = 0; r < count; r++, p.i++) {
        if (count > 1) {
            laci_prefetch_far(x->m + p.i * x->shape.cols + p.j, p.distance);
            laci_prefetch_far(x->g + p.i * x->shape.cols + p.j, p.distance);
        }
        const __m512 v =
            make_values(x, rank, past_caches, f->left[r], right, p);
        const __m256 first = _mm512_castps512_ps256(v);
        const __m256 second = _mm512_extractf32x8_ps(v, 1);
        for (size_t c = 0; c < rank; c++) {
            const __m256 sum =
                _mm256_add_ps(f->sums[r][c], _mm256_mul_ps(first, low[c]));
            f->sums[r][c] = _mm256_add_ps(sum, _mm256_mul_ps(second, high[c]));
        }
    }
}

static inline double lanes_total(__m256 eight)
{
    __m128 four = _mm_add_ps(
        _mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return (double)_mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

SPECIALISED void clear_sums(factors *f, size_t rank, size_t count)
{
    for (size_t r = 0; r < count; r++) {
        for (size_t c = 0; c < rank; c++) {
            f->sums[r][c] = _mm256_setzero_ps();
        }
    }
}

// Adds the products of columns [first, end) of `count` rows to the totals.
SPECIALISED void wide_block(
    const laci_powersgd_sum *x, size_t rank, size_t count, bool past_caches,
    place p, const float *in, factors *f)
{
    const size_t cols = x->shape.cols;
    const size_t end = cols - p.j < BLOCK ? cols : p.j + BLOCK;
    for (; p.j + WIDTH <= end; p.j += WIDTH) {
        wide_step(x, rank, count, past_caches, p, in, f);
    }
    if (p.j < end) {
        p.mask = (__mmask16)((1u << (end - p.j)) - 1);
        wide_step(x, rank, count, false, p, in, f);
    }
}

// Whole groups of rows.
static size_t prefetch_distance(const laci_powersgd_sum *x)
{
    const size_t group = ROWS * x->shape.cols;
    return ((PREFETCH_VALUES - 1) / group + 1) * group;
}

SPECIALISED void wide_rows(
    const laci_powersgd_sum *x, size_t rank, size_t count, bool past_caches,
    size_t i, const float *in, float *out)
{
    const size_t rows = x->shape.rows;
    double totals[ROWS][GROUP] = {0};
    factors f;
    for (size_t r = 0; r < count; r++) {
        for (size_t c = 0; c < rank; c++) {
            f.left[r][c] = _mm512_set1_ps(x->left[c * rows + i + r]);
        }
    }
    for (size_t first = 0; first < x->shape.cols; first += BLOCK) {
        const place p = {i, first, 0xffff, prefetch_distance(x)};
        clear_sums(&f, rank, count);
        wide_block(x, rank, count, past_caches, p, in, &f);
        for (size_t r = 0; r < count; r++) {
            for (size_t c = 0; c < rank; c++) {
                totals[r][c] += lanes_total(f.sums[r][c]);
            }
        }
    }
    for (size_t r = 0; r < count; r++) {
        for (size_t c = 0; c < rank; c++) {
            out[c * rows + i + r] = (float)totals[r][c];
        }
    }
}

// Whether to multiply one row at a time.
static bool row_by_row(const laci_powersgd_sum *x)
{
    return !LACI_PREFETCH &&
           x->rank * x->rank * x->shape.cols <= IN_ORDER_VALUES;
}

SPECIALISED void wide_multiply(
    const laci_powersgd_sum *x, size_t rank, const float *in, float *out)
{
    const bool aligned =
        x->shape.cols % WIDTH == 0 && (uintptr_t)x->s % sizeof(__m512) == 0;
    const bool groups = !row_by_row(x);
    size_t i = 0;
    for (; groups && i + ROWS <= x->shape.rows; i += ROWS) {
        if (aligned) {
            wide_rows(x, rank, ROWS, true, i, in, out);
        } else {
            wide_rows(x, rank, ROWS, false, i, in, out);
        }
    }
    for (; i < x->shape.rows; i++) {
        if (aligned) {
            wide_rows(x, rank, 1, true, i, in, out);
        } else {
            wide_rows(x, rank, 1, false, i, in, out);
        }
    }
    _mm_sfence();
}

static void avx512_powersgd_multiply(
    const laci_powersgd_sum *x, const float *in, float *out)
{
    switch (x->rank) {
    case 1:
        wide_multiply(x, 1, in, out);
        break;
    case 2:
        wide_multiply(x, 2, in, out);
        break;
    case 3:
        wide_multiply(x, 3, in, out);
        break;
    case 4:
        wide_multiply(x, 4, in, out);
        break;
    default:
        laci_powersgd_avx2.multiply(x, in, out);
        break;
    }
}

static void avx512_powersgd_sum(const laci_powersgd_sum *x)
{
    laci_powersgd_avx2.sum(x);
}

static void avx512_reconstruct(
    lac_shape shape, size_t rank, const float *left, const float *right,
    float *y)
{
    laci_powersgd_avx2.reconstruct(shape, rank, left, right, y);
}

const laci_powersgd_kernels laci_powersgd_avx512 = {
    .sum = avx512_powersgd_sum,
    .multiply = avx512_powersgd_multiply,
    .reconstruct = avx512_reconstruct,
};
