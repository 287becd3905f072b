// SPDX-License-Identifier: MIT
// Softmax and cross entropy, and the logistic loss of a single output.
#ifndef LACONIC_NN_LOSS_H
#define LACONIC_NN_LOSS_H

#include "nn/network.h"

// nn_loss adds the loss and the accuracy of count x outputs logits to `score`.
// The labels must be below `outputs`, or 0 and 1 for a single output. Unless
// `diff_out` is NULL it receives the derivative of the mean loss by each logit.
void nn_loss(
    const float *logits, const uint32_t *labels, size_t count, size_t outputs,
    float *diff_out, nn_score *score);

// nn_loss_guess returns the most probable class of an example with n logits.
nn_guess nn_loss_guess(const float *logits, size_t n);

#endif
