// SPDX-License-Identifier: MIT
// The elementwise loops of the language model.
#ifndef LACONIC_NN_LSTM_KERNELS_H
#define LACONIC_NN_LSTM_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

// One step of a layer. A row of gates has 4 width values, the others width.
typedef struct nn_cell {
    size_t rows, width;
    const float *biases; // 4 width
    float *gates;        // in: products; out: after sigmoid and tanh
    const float *before; // cells of the previous step
    float *cells, *tanh_cells, *hidden;
} nn_cell;

typedef struct nn_cell_backward {
    size_t rows, width;
    float *gates; // in: those of nn_cell; out: gradient of the products
    const float *before, *tanh_cells;
    const float *gradient; // of hidden
    float *gradient_cells; // in: of cells; out: of the cells before
} nn_cell_backward;

typedef struct nn_kernels {
    void (*cell)(const nn_cell *c);
    void (*cell_backward)(const nn_cell_backward *c);
    // Adds `bias` to x and returns the highest sum, ignoring NaN.
    float (*add_bias)(float *x, const float *bias, size_t n);
    // Writes exp(x - highest) to x and returns their sum.
    double (*exponentials)(float *x, float highest, size_t n);
    // Multiplies x by `factor` and adds it to `sums`.
    void (*scale)(float *x, float factor, float *sums, size_t n);
} nn_kernels;

// nn_lstm_kernels returns the fastest loops for this machine. All give the same
// bits.
const nn_kernels *nn_lstm_kernels(void);

// nn_lstm_kernels_portable returns the loops that run on every machine.
const nn_kernels *nn_lstm_kernels_portable(void);

#endif
