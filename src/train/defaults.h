// SPDX-License-Identifier: MIT
// The rate, the momentum and the warm-up of runs for which the user gives none.
//
// One table, found by experiment (experiments/defaults.py repeats them): the
// first row that fits a run has its values. What fits depends on the algorithm,
// the compressor, the optimiser and the kind of model.
#ifndef LACONIC_TRAIN_DEFAULTS_H
#define LACONIC_TRAIN_DEFAULTS_H

#include <stddef.h>

#include <laconic/laconic.h>

#include "data/dataset.h"
#include "train/optimiser.h"

// Kinds of models that need different rates.
typedef enum train_kind {
    TRAIN_IMAGES, // networks of layers, on images or tables
    TRAIN_RESNET, // the same with batch norms, which allow larger steps
    TRAIN_TEXT,   // language models
    TRAIN_LINEAR, // convex: one layer
} train_kind;

// A row: the runs that it fits, and their values. Names are separated by '|';
// NULL fits everything.
typedef struct train_default {
    const char *algorithms;
    const char *compressors; // of "A+B", A
    train_rule rule;
    train_kind kind;
    double rate;
    double momentum;
    double warmup; // epochs
} train_default;

// What decides about the defaults of a run. Specs are as the user writes them.
typedef struct train_subject {
    const char *algorithm;
    const char *compressor; // or NULL
    train_rule rule;
    train_kind kind;
} train_subject;

// train_kind_of returns the kind of a model that learns from such data.
train_kind train_kind_of(const char *model, data_kind data);

// train_kind_name returns the word for a kind, "images".
const char *train_kind_name(train_kind kind);

// train_default_of returns the row of a run. Every run has one.
const train_default *train_default_of(const train_subject *subject);

// train_defaults returns all rows, `*count_out` of them.
const train_default *train_defaults(size_t *count_out);

#endif
