// SPDX-License-Identifier: MIT
// Whether a run has learned anything: a rate that is far too large or far too
// small often ends with finite numbers and a model that only guesses.
#ifndef LACONIC_TRAIN_LEARNED_H
#define LACONIC_TRAIN_LEARNED_H

#include <stdbool.h>
#include <stdint.h>

#include "data/dataset.h"
#include "train/metrics.h"

// What guessing achieves on a set.
typedef struct train_chance {
    double loss;     // of naming the frequencies of the classes in the training
                     // set; of a text, of equal probabilities
    double accuracy; // of always naming the most frequent class of the test
                     // set; NaN for a text and without a test set
} train_chance;

train_chance train_chance_of(const data_set *set);

// The losses of one worker: those of its first steps, and how much they differ
// from step to step. All zero: no step was made.
typedef struct train_trace {
    double first_loss; // sum over the labels of the first steps
    uint64_t first_labels;
    double last;    // mean loss of the last step
    double noise;   // sum of estimates of the variance of a label's loss
    uint64_t pairs; // of consecutive steps: how many estimates
} train_trace;

// train_trace_add adds a step whose labels have this sum of losses; `first` if
// it is one of the first steps.
void train_trace_add(train_trace *t, double loss, uint64_t labels, bool first);

// train_first_steps returns how many steps are the first, for steps of `labels`
// labels over all workers: enough for a mean, and at most half an epoch.
uint64_t train_first_steps(uint64_t labels, uint64_t epoch_steps);

// train_trace_merge adds the trace of another worker. Of the sum, `last` has no
// meaning.
void train_trace_merge(train_trace *sum, const train_trace *t);

// train_trace_judge sets first_loss and loss_luck of `m` from the traces of all
// workers, for a train_loss over `labels` labels. first_loss is NaN if the
// first steps are unknown, because a run of an older version was resumed.
void train_trace_judge(
    const train_trace *all, uint64_t labels, train_metrics *m);

// Whether a run has learned, and if not, which of the tests failed.
typedef struct train_verdict {
    bool learned;
    bool low_accuracy; // no better than chance; false if there is none
    bool high_loss;    // the loss of training or of the test is not below that
                       // of chance
    bool flat_loss;    // the training loss has not fallen by more than noise
} train_verdict;

// train_judge compares the metrics of a complete run with chance.
train_verdict train_judge(const train_metrics *m, const train_chance *chance);

#endif
