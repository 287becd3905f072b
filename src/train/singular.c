// SPDX-License-Identifier: MIT
// Singular values by the method of Hestenes (one-sided Jacobi): the rows of a
// matrix are rotated in pairs until they are orthogonal; their norms are then
// its singular values. It works on the Gram matrix G of the shorter side of A,
// whose singular values are the squares of those of A. That is cheap for
// embeddings, whose long side has tens of thousands of rows, and its accuracy
// of 1e-8 is finer than the floats of A.
#include "train/singular.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "data/file.h"

// Rows are orthogonal if the cosine between them is below this.
static const double orthogonal = 1e-13;

enum { SWEEPS_MAX = 60 };

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

// Adds the lower half of x x^T.
static void add_square(const double *restrict x, size_t k, double *restrict g)
{
    for (size_t i = 0; i < k; i++) {
        for (size_t j = 0; j <= i; j++) {
            g[i * k + j] += x[i] * x[j];
        }
    }
}

// Writes G = A A^T, or A^T A if A has more rows than columns, k x k, as the sum
// over the long side. `line` has room for k values.
static void fill_gram(
    const float *a, lac_shape shape, double *line, double *gram)
{
    const bool wide = shape.rows <= shape.cols;
    const size_t k = wide ? shape.rows : shape.cols;
    const size_t n = wide ? shape.cols : shape.rows;
    const size_t across = wide ? shape.cols : 1, along = wide ? 1 : shape.cols;
    memset(gram, 0, k * k * sizeof(*gram));
    for (size_t l = 0; l < n; l++) {
        for (size_t i = 0; i < k; i++) {
            line[i] = (double)a[i * across + l * along];
        }
        add_square(line, k, gram);
    }
    for (size_t i = 0; i < k; i++) {
        for (size_t j = 0; j < i; j++) {
            gram[j * k + i] = gram[i * k + j];
        }
    }
}

// Rotates two rows so that they become orthogonal; returns whether they were
// not.
static bool orthogonalise(double *x, double *y, size_t n)
{
    const double xx = dot(x, x, n), yy = dot(y, y, n), xy = dot(x, y, n);
    if (fabs(xy) <= orthogonal * sqrt(xx) * sqrt(yy)) {
        return false;
    }
    const double zeta = (yy - xx) / (2 * xy);
    const double tangent =
        copysign(1, zeta) / (fabs(zeta) + sqrt(1 + zeta * zeta));
    const double cosine = 1 / sqrt(1 + tangent * tangent);
    const double sine = cosine * tangent;
    for (size_t i = 0; i < n; i++) {
        const double old = x[i];
        x[i] = cosine * old - sine * y[i];
        y[i] = sine * old + cosine * y[i];
    }
    return true;
}

static int descending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a < b) - (a > b);
}

lac_status train_singular_values(const float *a, lac_shape shape, double *out)
{
    const size_t k = shape.rows < shape.cols ? shape.rows : shape.cols;
    double *const gram = malloc((k * k + 1) * sizeof(*gram));
    if (gram == NULL) {
        return data_no_memory("singular values", k * k * sizeof(*gram));
    }
    fill_gram(a, shape, out, gram);
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < SWEEPS_MAX; sweep++) {
        rotated = false;
        for (size_t i = 1; i < k; i++) {
            for (size_t j = 0; j < i; j++) {
                rotated |= orthogonalise(gram + j * k, gram + i * k, k);
            }
        }
    }
    for (size_t i = 0; i < k; i++) {
        out[i] = sqrt(sqrt(dot(gram + i * k, gram + i * k, k)));
    }
    qsort(out, k, sizeof(*out), descending);
    free(gram);
    return LAC_OK;
}
