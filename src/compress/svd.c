// SPDX-License-Identifier: MIT
// Jacobi's method on the Gram matrix G = A A^T of the short side, where A is M
// or its transpose: rotations of two rows and columns make G diagonal, and
// their product T is orthogonal. The rows of T A are then the vectors of the
// long side, times the singular values.
//
// A = T^T (T A) for every orthogonal T, so the sum of all atoms is M to the
// rounding of doubles, however well T separates small singular values, which in
// G drown in rounding errors.
//
// LAPACK is faster, but programs that compress would have to load it, and other
// versions of LAPACK round differently.
#include "compress/svd.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

// Elements of G below this part of the largest one are zero.
static const double negligible = 0x1p-52;

enum { SWEEPS_MAX = 60 };

// The sides of a matrix, without room.
static laci_svd svd_sides(lac_shape shape)
{
    const bool wide = shape.rows <= shape.cols;
    return (laci_svd){
        .shape = shape,
        .count = wide ? shape.rows : shape.cols,
        .length = wide ? shape.cols : shape.rows,
    };
}

static laci_svd svd_lay_out(lac_shape shape, double *room)
{
    laci_svd s = svd_sides(shape);
    s.values = room;
    s.gram = s.values + s.count;
    s.turn = s.gram + s.count * s.count;
    s.turned = s.turn + s.count * s.count;
    return s;
}

size_t laci_svd_room(lac_shape shape)
{
    const laci_svd s = svd_sides(shape);
    return s.count + 2 * s.count * s.count + s.count * s.length;
}

// The distances in M between the vectors of the short side, and between the
// values of one.
static size_t across(const laci_svd *s)
{
    return s->shape.rows <= s->shape.cols ? s->shape.cols : 1;
}

static size_t along(const laci_svd *s)
{
    return s->shape.rows <= s->shape.cols ? 1 : s->shape.cols;
}

static void svd_gram(const laci_svd *s, const float *m)
{
    const size_t k = s->count;
    for (size_t i = 0; i < k; i++) {
        for (size_t j = 0; j <= i; j++) {
            const float *const a = m + i * across(s), *const b =
                                                          m + j * across(s);
            double sum = 0;
            for (size_t l = 0; l < s->length; l++) {
                sum += (double)a[l * along(s)] * (double)b[l * along(s)];
            }
            s->gram[i * k + j] = s->gram[j * k + i] = sum;
        }
    }
}

// Replaces x by c x - s y, and y by s x + c y; the values are `step` apart.
static void turn_values(
    double *x, double *y, size_t n, size_t step, double c, double s)
{
    for (size_t i = 0; i < n * step; i += step) {
        const double old = x[i];
        x[i] = c * old - s * y[i];
        y[i] = s * old + c * y[i];
    }
}

// Makes the element (p, q) of G zero, unless it is negligible beside `largest`;
// returns whether it was not.
static bool svd_rotate(const laci_svd *s, size_t p, size_t q, double largest)
{
    const size_t k = s->count;
    double *const g = s->gram;
    const double pq = g[p * k + q];
    if (fabs(pq) <= negligible * largest) {
        return false;
    }
    const double ratio = (g[q * k + q] - g[p * k + p]) / (2 * pq);
    const double tangent =
        copysign(1, ratio) / (fabs(ratio) + sqrt(1 + ratio * ratio));
    const double cosine = 1 / sqrt(1 + tangent * tangent);
    const double sine = cosine * tangent;
    turn_values(g + p * k, g + q * k, k, 1, cosine, sine);
    turn_values(g + p, g + q, k, k, cosine, sine);
    turn_values(s->turn + p * k, s->turn + q * k, k, 1, cosine, sine);
    return true;
}

static void svd_diagonalise(const laci_svd *s)
{
    const size_t k = s->count;
    double largest = 0;
    memset(s->turn, 0, k * k * sizeof(*s->turn));
    for (size_t i = 0; i < k; i++) {
        s->turn[i * k + i] = 1;
        largest = fmax(largest, s->gram[i * k + i]);
    }
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < SWEEPS_MAX; sweep++) {
        rotated = false;
        for (size_t p = 0; p + 1 < k; p++) {
            for (size_t q = p + 1; q < k; q++) {
                rotated |= svd_rotate(s, p, q, largest);
            }
        }
    }
}

// Computes T A and the norms of its rows, the singular values.
static void svd_turn(const laci_svd *s, const float *m)
{
    for (size_t i = 0; i < s->count; i++) {
        double *const row = s->turned + i * s->length;
        double square = 0;
        memset(row, 0, s->length * sizeof(*row));
        for (size_t j = 0; j < s->count; j++) {
            const double factor = s->turn[i * s->count + j];
            for (size_t l = 0; l < s->length; l++) {
                row[l] += factor * (double)m[j * across(s) + l * along(s)];
            }
        }
        for (size_t l = 0; l < s->length; l++) {
            square += row[l] * row[l];
        }
        s->values[i] = sqrt(square);
    }
}

static void swap(double *x, double *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double old = x[i];
        x[i] = y[i];
        y[i] = old;
    }
}

static void svd_sort(const laci_svd *s)
{
    for (size_t i = 0; i + 1 < s->count; i++) {
        size_t top = i;
        for (size_t j = i + 1; j < s->count; j++) {
            top = s->values[j] > s->values[top] ? j : top;
        }
        if (top != i) {
            swap(s->values + i, s->values + top, 1);
            swap(s->turn + i * s->count, s->turn + top * s->count, s->count);
            swap(
                s->turned + i * s->length, s->turned + top * s->length,
                s->length);
        }
    }
}

laci_svd laci_svd_of(const float *m, lac_shape shape, double *room)
{
    const laci_svd s = svd_lay_out(shape, room);
    svd_gram(&s, m);
    svd_diagonalise(&s);
    svd_turn(&s, m);
    svd_sort(&s);
    return s;
}

static double svd_short(const laci_svd *s, size_t i, size_t j)
{
    return s->turn[i * s->count + j];
}

static double svd_long(const laci_svd *s, size_t i, size_t j)
{
    return s->values[i] > 0 ? s->turned[i * s->length + j] / s->values[i] : 0;
}

double laci_svd_left(const laci_svd *s, size_t i, size_t j)
{
    return s->shape.rows <= s->shape.cols ? svd_short(s, i, j)
                                          : svd_long(s, i, j);
}

double laci_svd_right(const laci_svd *s, size_t i, size_t j)
{
    return s->shape.rows <= s->shape.cols ? svd_long(s, i, j)
                                          : svd_short(s, i, j);
}
