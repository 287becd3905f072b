// SPDX-License-Identifier: MIT
// What the language model computes number by number, beside its products.
#ifndef LACONIC_NN_LSTM_KERNELS_H
#define LACONIC_NN_LSTM_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

// A step of a layer. Lines of gates are four times as long as the others.
typedef struct nn_cell {
    size_t rows, width;
    const float *biases; // 4 width
    float *gates;        // in: products; out: after sigmoid and tanh
    const float *before; // cells of the step before
    float *cells, *bent, *hidden;
} nn_cell;

typedef struct nn_cell_backward {
    size_t rows, width;
    float *gates; // in: as nn_cell left them; out: gradient of the products
    const float *before, *bent;
    const float *gradient; // of hidden
    float *gradient_c;     // in: of cells; out: of the cells before
} nn_cell_backward;

typedef struct nn_kernels {
    void (*cell)(const nn_cell *c);
    void (*cell_backward)(const nn_cell_backward *c);
    // Adds `bias` to x and returns the highest of the sums; NaN is never it.
    float (*add_bias)(float *x, const float *bias, size_t n);
    // Writes exp(x - highest) to x and returns their sum.
    double (*exponentials)(float *x, float highest, size_t n);
    // Multiplies x by `factor` and adds it to `sums`.
    void (*scale)(float *x, float factor, float *sums, size_t n);
} nn_kernels;

// nn_lstm_kernels returns the fastest that this machine can run. All give the
// same bits.
const nn_kernels *nn_lstm_kernels(void);

// nn_lstm_kernels_portable returns those that run everywhere.
const nn_kernels *nn_lstm_kernels_portable(void);

#endif
