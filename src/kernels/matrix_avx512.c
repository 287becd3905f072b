// SPDX-License-Identifier: MIT
// matrix.c for AVX-512: the transposed product, which reads four rows at a
// time. Every sum has the order of matrix.c. The rest is left to matrix_avx2.c.
//
// No processor prefetches the next four rows by itself, so the instructions
// that do are in both versions of this file. They prefetch into the second
// cache: into the first one they gain nothing on an EPYC of the Zen 4
// generation.
#include "kernels/matrix.h"

#include <immintrin.h>
#include <string.h>

#include "kernels/prefetch_avx2.h"

#if LACI_PREFETCH
#define OTHERS laci_matrix_avx2
#else
#define OTHERS laci_matrix_avx2_plain
#endif

enum {
    WIDTH = 16, // values of a row that are multiplied together
    ROWS = 4,   // that are multiplied together
    GROUP = 4,  // the most vectors
    TILE_ROWS = LACI_MATRIX_ROWS,
    TILE_COLS = 1024,       // sums of a group that stay in the first cache
    PREFETCH_VALUES = 2048, // in advance, at least
};

// Inlined with constant sizes, so that arrays become registers.
#define SPECIALISED static inline __attribute__((always_inline))

// A tile of X: its first value, its shape, the values from one row to the next,
// and how far to prefetch.
typedef struct tile {
    const float *x;
    lac_shape shape;
    size_t stride;
    size_t distance;
} tile;

typedef struct tile_sums {
    _Alignas(64) float column[GROUP][TILE_COLS];
} tile_sums;

// Adds the products of 16 columns, from j on, with four rows to the sums.
SPECIALISED void add_sixteen(
    const tile *t, const float *x, size_t j, __mmask16 mask, size_t count,
    __m512 factors[GROUP][ROWS], tile_sums *sums)
{
    __m512 row[ROWS];
    for (size_t r = 0; r < ROWS; r++) {
        const float *const at = x + r * t->stride + j;
        row[r] = _mm512_maskz_loadu_ps(mask, at);
        laci_prefetch_far(at, t->distance);
    }
    for (size_t c = 0; c < count; c++) {
        const __m512 first = _mm512_add_ps(
            _mm512_mul_ps(row[0], factors[c][0]),
            _mm512_mul_ps(row[1], factors[c][1]));
        const __m512 second = _mm512_add_ps(
            _mm512_mul_ps(row[2], factors[c][2]),
            _mm512_mul_ps(row[3], factors[c][3]));
        float *const sum = sums->column[c] + j;
        _mm512_store_ps(
            sum,
            _mm512_add_ps(_mm512_load_ps(sum), _mm512_add_ps(first, second)));
    }
}

// The same for all columns of the tile, and rows [i, i + 4) of it. `columns`
// begin at the first row of the tile.
SPECIALISED void add_four_rows(
    const tile *t, size_t i, const laci_column *columns, size_t count,
    tile_sums *sums)
{
    const float *const x = t->x + i * t->stride;
    const size_t n = t->shape.cols;
    __m512 factors[GROUP][ROWS];
    for (size_t k = 0; k < count * ROWS; k++) {
        factors[k / ROWS][k % ROWS] =
            _mm512_set1_ps(columns[k / ROWS].in[i + k % ROWS]);
    }
    size_t j = 0;
    for (; j + WIDTH <= n; j += WIDTH) {
        add_sixteen(t, x, j, 0xffff, count, factors, sums);
    }
    if (j < n) {
        const __mmask16 mask = (__mmask16)((1u << (n - j)) - 1);
        add_sixteen(t, x, j, mask, count, factors, sums);
    }
}

// out += X^T in for a tile of X.
SPECIALISED void multiply_tile(
    const tile *t, const laci_column *columns, size_t count)
{
    tile_sums sums;
    size_t i = 0;
    for (size_t c = 0; c < count; c++) {
        memset(
            sums.column[c], 0,
            (t->shape.cols + WIDTH - 1) / WIDTH * WIDTH * sizeof(float));
    }
    for (; i + ROWS <= t->shape.rows; i += ROWS) {
        add_four_rows(t, i, columns, count, &sums);
    }
    for (size_t c = 0; c < count; c++) {
        float *const sum = sums.column[c], *const out = columns[c].out;
        for (size_t r = i; r < t->shape.rows; r++) {
            for (size_t j = 0; j < t->shape.cols; j++) {
                sum[j] += t->x[r * t->stride + j] * columns[c].in[r];
            }
        }
        for (size_t j = 0; j < t->shape.cols; j++) {
            out[j] += sum[j];
        }
    }
}

// The same for columns that begin at the first row and column of the matrix,
// where the tile begins at row i and column j.
static void multiply_columns(
    const tile *t, size_t i, size_t j, const laci_column *columns, size_t count)
{
    laci_column some[GROUP];
    for (size_t c = 0; c < count; c++) {
        some[c] = (laci_column){columns[c].in + i, columns[c].out + j};
    }
    switch (count) {
    case 1:
        multiply_tile(t, some, 1);
        break;
    case 2:
        multiply_tile(t, some, 2);
        break;
    case 3:
        multiply_tile(t, some, 3);
        break;
    default:
        multiply_tile(t, some, GROUP);
        break;
    }
}

// Goes down all rows before it takes the next columns, so that what is
// prefetched is read soon.
static void avx512_matrix_multiply_transposed(
    const float *x, lac_shape shape, const laci_column *columns, size_t count)
{
    const size_t rows = shape.rows, cols = shape.cols;
    for (size_t j = 0; j < cols; j += TILE_COLS) {
        const size_t width = cols - j < TILE_COLS ? cols - j : TILE_COLS;
        const size_t groups = (PREFETCH_VALUES - 1) / (ROWS * width) + 1;
        for (size_t i = 0; i < rows; i += TILE_ROWS) {
            const size_t height = rows - i < TILE_ROWS ? rows - i : TILE_ROWS;
            const tile t = {
                x + i * cols + j, {height, width}, cols, groups * ROWS * cols};
            for (size_t c = 0; c < count; c += GROUP) {
                multiply_columns(
                    &t, i, j, columns + c,
                    count - c < GROUP ? count - c : GROUP);
            }
        }
    }
}

static void avx512_matrix_multiply(
    const float *x, lac_shape shape, const laci_column *columns, size_t count)
{
    OTHERS.multiply(x, shape, columns, count);
}

static void avx512_add_outer(
    const float *x, lac_shape shape, const laci_outer *terms, size_t count,
    const float *update, float *y)
{
    OTHERS.add_outer(x, shape, terms, count, update, y);
}

const laci_matrix_kernels laci_matrix_avx512 = {
    .multiply = avx512_matrix_multiply,
    .multiply_transposed = avx512_matrix_multiply_transposed,
    .add_outer = avx512_add_outer,
};
