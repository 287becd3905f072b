// SPDX-License-Identifier: MIT
// Softmax and cross entropy, in double and in the order of the examples. For
// logits z with the label y the loss is log(sum of exp z_k) - z_y, and its
// derivative by z_k is softmax(z)_k, minus 1 where k = y.
//
// A single output z is the logit of class 1, and that of class 0 is 0. So the
// loss is log(1 + exp(-z)) for the label 1 and log(1 + exp(z)) for 0.
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

// Adds one example. Unless `diff_out` is NULL it receives the derivatives of
// the mean of `count` losses.
static void add_example(
    const float *z, size_t classes, uint32_t label, size_t count,
    float *diff_out, nn_score *score)
{
    const size_t best = largest_logit(z, classes);
    const float top = z[best];
    double sum = 0;
    for (size_t k = 0; k < classes; k++) {
        sum += exponential(z[k], top);
    }
    score->loss += log(sum) + (double)top - (double)z[label];
    score->correct += best == label;
    for (size_t k = 0; diff_out != NULL && k < classes; k++) {
        const double p = exponential(z[k], top) / sum;
        diff_out[k] = (float)((p - (k == label)) / (double)count);
    }
}

void nn_loss(
    const float *logits, const uint32_t *labels, size_t count, size_t outputs,
    float *diff_out, nn_score *score)
{
    for (size_t i = 0; i < count; i++) {
        const float *const z = logits + i * outputs;
        float *const diff = diff_out == NULL ? NULL : diff_out + i * outputs;
        if (outputs > 1) {
            add_example(z, outputs, labels[i], count, diff, score);
            continue;
        }
        float pair_diff[2] = {0};
        add_example((float[]){0, *z}, 2, labels[i], count, pair_diff, score);
        if (diff != NULL) {
            *diff = pair_diff[1];
        }
    }
    score->count += count;
}

nn_guess nn_loss_guess(const float *logits, size_t n)
{
    if (n == 1) {
        return nn_loss_guess((float[]){0, *logits}, 2);
    }
    const size_t best = largest_logit(logits, n);
    double sum = 0;
    for (size_t k = 0; k < n; k++) {
        sum += exponential(logits[k], logits[best]);
    }
    return (nn_guess){(uint32_t)best, 1 / sum};
}
