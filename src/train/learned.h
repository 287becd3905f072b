// SPDX-License-Identifier: MIT
// Whether a run has learned anything: a rate that is far too large or far too
// small often ends with finite numbers and a model that only guesses.
#ifndef LACONIC_TRAIN_LEARNED_H
#define LACONIC_TRAIN_LEARNED_H

#include <stdbool.h>

#include "data/dataset.h"
#include "train/metrics.h"

// What guessing achieves on a set.
typedef struct train_chance {
    double loss;     // of equal probabilities
    double accuracy; // of always naming the most frequent class of the test
                     // set, and three standard deviations more; NaN for a text
                     // and where the test set is too small for that
} train_chance;

train_chance train_chance_of(const data_set *set);

// train_has_learned returns whether the training loss is below that of chance
// and the accuracy, where there is one, above.
bool train_has_learned(const train_metrics *m, const train_chance *chance);

#endif
