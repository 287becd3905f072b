// SPDX-License-Identifier: MIT
// Singular values of a matrix.
#ifndef LACONIC_TRAIN_SINGULAR_H
#define LACONIC_TRAIN_SINGULAR_H

#include <laconic/laconic.h>

// train_singular_values writes the singular values of a[0..rows x cols), row by
// row, in descending order to out[0..min(rows, cols)). Those below 1e-8 of the
// largest are rounding errors.
// Fails with LAC_ERR_NOMEM.
lac_status train_singular_values(const float *a, lac_shape shape, double *out);

#endif
