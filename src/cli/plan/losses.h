// SPDX-License-Identifier: MIT
// What methods have lost in the experiments of this repository, against the
// exact method of their kind after equally many epochs. Accuracy is not
// predicted: this is evidence from small networks.
#ifndef LACONIC_CLI_PLAN_LOSSES_H
#define LACONIC_CLI_PLAN_LOSSES_H

#include <stddef.h>

#include "cli/plan/candidates.h"

// The kinds of networks.
typedef enum plan_kind {
    PLAN_KIND_UNKNOWN,
    PLAN_KIND_FULLY_CONNECTED,
    PLAN_KIND_CONVOLUTIONAL,
    PLAN_KIND_RECURRENT,
} plan_kind;

// What is nearest to a model: a network that was measured, or NULL, then those
// of its kind.
typedef struct plan_near {
    const char *network;
    plan_kind kind;
} plan_near;

// plan_near_of returns what is nearest to a model, which may be NULL.
plan_near plan_near_of(const char *model);

// A measurement. The loss is in points of accuracy; with `perplexity`, the
// perplexity is so many per cent higher.
typedef struct plan_loss {
    const char *algorithm;
    const char *compressor; // or NULL
    const char *network;    // "ResNet-8"
    plan_kind kind;
    bool perplexity;
    double lost;
    unsigned epochs;
    const char *page; // experiments/PAGE.md
} plan_loss;

// plan_loss_next returns the next measurement of a choice after `last`, or the
// first after NULL; NULL if there is none.
const plan_loss *plan_loss_next(
    const plan_choice *choice, const plan_loss *last);

// plan_loss_nearest returns the measurement of a choice on the nearest network,
// else the largest loss on one of its kind, else on any; NULL if it was not
// measured. plan_loss_distance returns which of the three, from 0.
const plan_loss *plan_loss_nearest(
    const plan_choice *choice, const plan_near *near);
int plan_loss_distance(const plan_loss *l, const plan_near *near);

// plan_loss_text writes "-7.8 points on ResNet-8" or "+4.9 % perplexity on
// LSTM".
enum { PLAN_LOSS_SIZE = 64 };
const char *plan_loss_text(const plan_loss *l, char text[PLAN_LOSS_SIZE]);

#endif
