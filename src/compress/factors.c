// SPDX-License-Identifier: MIT
// Thin factors by subspace iteration. An iteration reads the matrix twice, once
// for each product. Loops over columns are written in lanes that a compiler may
// vectorise without changing the order of any sum.
#include "compress/factors.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "kernels/columns.h"
#include "kernels/matrix.h"
#include "kernels/vector.h"

enum {
    TILE_COLS = 256, // values of P Q^T made at a time
};

// The range of M in which products stay within floats, and the factor that
// scales Q when values are beyond it. Its square root scales the second
// product.
#define HUGE_VALUE 0x1p60f
#define TINY_VALUE 0x1p-60f
#define MOVE       0x1p64f
#define MOVE_ROOT  0x1p32f

laci_factors laci_factors_of(lac_shape shape, lac_shape viewed, size_t rank)
{
    const size_t n = lac_shape_values(shape);
    rank = rank < viewed.rows ? rank : viewed.rows;
    rank = rank < viewed.cols ? rank : viewed.cols;
    const bool smaller = rank * (viewed.rows + viewed.cols) < n;
    return (laci_factors){.shape = viewed, .n = n, .rank = smaller ? rank : 0};
}

size_t laci_factors_floats(const laci_factors *f)
{
    return f->rank == 0 ? f->n : f->rank * (f->shape.rows + f->shape.cols);
}

void laci_factors_place(laci_factors *f, float *scratch)
{
    if (f->rank > 0) {
        f->p = scratch;
        f->q = scratch + f->rank * f->shape.rows;
    }
}

void laci_factors_draw(const laci_factors *f, const lac_key *key)
{
    for (size_t i = 0; i < f->rank * f->shape.cols; i++) {
        f->q[i] = lac_key_normal(key, (uint32_t)i);
    }
}

void laci_factors_multiply(
    const laci_factors *f, const float *m, const laci_kernels *kernels)
{
    laci_column columns[LACI_RANK_MAX];
    for (size_t j = 0; j < f->rank; j++) {
        columns[j] =
            (laci_column){f->q + j * f->shape.cols, f->p + j * f->shape.rows};
    }
    kernels->matrix->multiply(m, f->shape, columns, f->rank);
}

// Q = M^T P
static void factors_multiply_transposed(
    const laci_factors *f, const float *m, const laci_kernels *kernels)
{
    laci_column columns[LACI_RANK_MAX];
    for (size_t j = 0; j < f->rank; j++) {
        columns[j] =
            (laci_column){f->p + j * f->shape.rows, f->q + j * f->shape.cols};
    }
    memset(f->q, 0, f->rank * f->shape.cols * sizeof(*f->q));
    kernels->matrix->multiply_transposed(m, f->shape, columns, f->rank);
}

static void factors_scale(float *x, size_t n, double a)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)((double)x[i] * a);
    }
}

static void orthonormalise(float *p, size_t rows, size_t rank)
{
    for (size_t j = 0; j < rank; j++) {
        if (!laci_column_orthonormalise(p, rows, j, LACI_SCALE_MULTIPLY)) {
            memset(p + j * rows, 0, rows * sizeof(*p));
        }
    }
}

// The factor for Q that keeps M Q in the range of a float.
static float move_of(const float *m, size_t n, const laci_kernels *kernels)
{
    const float max = laci_float_of(kernels->vector->max_magnitude(m, n));
    if (max > HUGE_VALUE) {
        return 1 / MOVE;
    }
    return max < TINY_VALUE ? MOVE : 1;
}

// Computes the first P, from a normal Q. A random sum is about as large as its
// terms, so the result shows whether the matrix is huge or tiny. Only then the
// matrix is read once more to find the factor for Q. Returns that factor.
static float factors_start(
    const laci_factors *f, const float *m, const lac_key *key,
    const laci_kernels *kernels)
{
    const size_t rows = f->shape.rows, cols = f->shape.cols;
    laci_factors_draw(f, key);
    laci_factors_multiply(f, m, kernels);
    if (move_of(f->p, f->rank * rows, kernels) == 1) {
        return 1;
    }
    const float move = move_of(m, lac_shape_values(f->shape), kernels);
    factors_scale(f->q, f->rank * cols, (double)move);
    laci_factors_multiply(f, m, kernels);
    return move;
}

void laci_factors_find(
    const laci_factors *f, const float *m, size_t iterations,
    const lac_key *key, const laci_kernels *kernels)
{
    const size_t rows = f->shape.rows, cols = f->shape.cols;
    const float move = factors_start(f, m, key, kernels);
    const float root = move == 1 ? 1 : move < 1 ? 1 / MOVE_ROOT : MOVE_ROOT;
    for (size_t t = 0; t < iterations; t++) {
        if (t > 0) {
            for (size_t j = 0; j < f->rank; j++) {
                laci_column_normalise(
                    f->q + j * cols, cols, (double)move, LACI_SCALE_MULTIPLY);
            }
            laci_factors_multiply(f, m, kernels);
        }
        orthonormalise(f->p, rows, f->rank);
        factors_scale(f->p, f->rank * rows, (double)root);
        factors_multiply_transposed(f, m, kernels);
    }
    factors_scale(f->p, f->rank * rows, 1 / ((double)root * (double)root));
}

// Values of row i of P Q^T from column c on.
static void product(
    const laci_factors *f, size_t i, size_t c, size_t n, float *out)
{
    const float first = f->p[i];
    for (size_t j = 0; j < n; j++) {
        out[j] = first * f->q[c + j];
    }
    for (size_t k = 1; k < f->rank; k++) {
        const float p = f->p[k * f->shape.rows + i];
        const float *const q = f->q + k * f->shape.cols + c;
        for (size_t j = 0; j < n; j++) {
            out[j] += p * q[j];
        }
    }
}

// The values of row i that are used. All but the last rows have all columns.
static size_t row_values(const laci_factors *f, size_t i)
{
    const size_t before = i * f->shape.cols;
    const size_t left = before < f->n ? f->n - before : 0;
    return left < f->shape.cols ? left : f->shape.cols;
}

void laci_factors_put(float *x, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = isnan(x[i]) ? laci_float_of(0x7fc00000) : x[i];
    }
    laci_put_floats(out, x, n);
}

void laci_factors_read(const laci_factors *f, const uint8_t *in)
{
    if (f->rank > 0) {
        laci_get_floats(in, f->p, laci_factors_floats(f));
    }
}

void laci_factors_decode(const laci_factors *f, const uint8_t *in, float *x)
{
    if (f->rank == 0) {
        laci_get_floats(in, x, f->n);
        return;
    }
    for (size_t i = 0; i < f->shape.rows; i++) {
        product(f, i, 0, row_values(f, i), x + i * f->shape.cols);
    }
}

void laci_factors_decode_add(
    const laci_factors *f, const uint8_t *in, float a, float *y,
    const laci_kernels *kernels)
{
    if (f->rank == 0) {
        kernels->vector->add_payload(a, in, y, f->n);
        return;
    }
    for (size_t i = 0; i < f->shape.rows; i++) {
        const size_t end = row_values(f, i);
        for (size_t c = 0; c < end; c += TILE_COLS) {
            const size_t n = end - c < TILE_COLS ? end - c : TILE_COLS;
            float values[TILE_COLS];
            product(f, i, c, n, values);
            kernels->vector->add_scaled(
                a, values, y + i * f->shape.cols + c, n);
        }
    }
}

// Mostly the largest values of P and Q are enough to know: then a sum of `rank`
// products is far below the largest float.
bool laci_factors_finite(
    const laci_factors *f, const uint8_t *in, const laci_kernels *kernels)
{
    const size_t rows = f->shape.rows, cols = f->shape.cols;
    const laci_vector_kernels *const vector = kernels->vector;
    if (f->rank == 0) {
        return vector->max_payload(in, f->n) < LACI_INFINITY_BITS;
    }
    const float p = laci_float_of(vector->max_magnitude(f->p, f->rank * rows));
    const float q = laci_float_of(vector->max_magnitude(f->q, f->rank * cols));
    if ((double)p * (double)q * (double)f->rank < 0x1p127) {
        return true;
    }
    for (size_t i = 0; i < rows; i++) {
        const size_t end = row_values(f, i);
        for (size_t c = 0; c < end; c += TILE_COLS) {
            const size_t n = end - c < TILE_COLS ? end - c : TILE_COLS;
            float values[TILE_COLS];
            product(f, i, c, n, values);
            if (!laci_all_finite(kernels, values, n)) {
                return false;
            }
        }
    }
    return true;
}
