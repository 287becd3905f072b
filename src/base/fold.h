// SPDX-License-Identifier: MIT
// A long vector as a matrix, for methods that compress matrices only.
#ifndef LACONIC_BASE_FOLD_H
#define LACONIC_BASE_FOLD_H

#include <math.h>

#include <laconic/layout.h>

// laci_fold returns the matrix that a vector of n values fills row by row:
// ceil(sqrt n) rows, and as few columns as hold all values. Zeros fill the
// rest. A shape that is a matrix already is returned unchanged.
static inline lac_shape laci_fold(lac_shape shape)
{
    const size_t n = lac_shape_values(shape);
    if ((shape.rows > 1 && shape.cols > 1) || n == 0) {
        return shape;
    }
    size_t rows = (size_t)sqrt((double)n); // at most 1 too few
    rows += rows * rows < n;
    return (lac_shape){rows, n / rows + (n % rows != 0)};
}

#endif
