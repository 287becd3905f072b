// SPDX-License-Identifier: MIT
// Softmax and cross entropy, in double and in the order of the examples. For
// logits z with the label y the loss is log(sum of exp z_k) - z_y, and its
// derivative by z_k is softmax(z)_k, minus 1 where k = y.
#include "nn/loss.h"

#include <math.h>

static size_t largest_logit(const float *z, size_t classes)
{
    size_t best = 0;
    for (size_t k = 1; k < classes; k++) {
        best = z[k] > z[best] ? k : best;
    }
    return best;
}

static double exponential(float z, float top)
{
    return exp((double)z - (double)top);
}

void nn_loss(
    const float *logits, const uint32_t *labels, size_t count, size_t classes,
    float *diff_out, nn_score *score)
{
    for (size_t i = 0; i < count; i++) {
        const float *const z = logits + i * classes;
        const size_t best = largest_logit(z, classes);
        const float top = z[best];
        double sum = 0;
        for (size_t k = 0; k < classes; k++) {
            sum += exponential(z[k], top);
        }
        score->loss += log(sum) + (double)top - (double)z[labels[i]];
        score->correct += best == labels[i];
        for (size_t k = 0; diff_out != NULL && k < classes; k++) {
            const double p = exponential(z[k], top) / sum;
            diff_out[i * classes + k] =
                (float)((p - (k == labels[i])) / (double)count);
        }
    }
    score->count += count;
}

nn_guess nn_loss_guess(const float *logits, size_t n)
{
    const size_t best = largest_logit(logits, n);
    double sum = 0;
    for (size_t k = 0; k < n; k++) {
        sum += exponential(logits[k], logits[best]);
    }
    return (nn_guess){(uint32_t)best, 1 / sum};
}
