// SPDX-License-Identifier: MIT
// The singular value decomposition M = sum_i s_i left_i right_i^T of a matrix.
#ifndef LACONIC_COMPRESS_SVD_H
#define LACONIC_COMPRESS_SVD_H

#include <laconic/layout.h>

// The most values of a matrix of at least two rows and columns: larger ones
// take too long.
enum { LACI_SVD_VALUES_MAX = 1 << 26 };

// The parts of a decomposition, in the room of the caller. There are as many
// singular values as rows or columns, whichever are fewer.
typedef struct laci_svd {
    lac_shape shape;
    size_t count;   // the length of the short side
    size_t length;  // the length of the long side
    double *values; // in descending order
    double *gram;
    double *turn;   // vector i of the short side is turn[i * count ...]
    double *turned; // vector i of the long side, times its singular value
} laci_svd;

// laci_svd_room returns the doubles that a decomposition needs.
size_t laci_svd_room(lac_shape shape);

// laci_svd_of decomposes the matrix `m`, whose values are finite, in `room`.
laci_svd laci_svd_of(const float *m, lac_shape shape, double *room);

// laci_svd_left returns value j of left singular vector i.
double laci_svd_left(const laci_svd *s, size_t i, size_t j);

// laci_svd_right returns value j of right singular vector i.
double laci_svd_right(const laci_svd *s, size_t i, size_t j);

#endif
