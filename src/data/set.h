// SPDX-License-Identifier: MIT
// The members of a data set, for the sources that fill it.
#ifndef LACONIC_DATA_SET_H
#define LACONIC_DATA_SET_H

#include "data/dataset.h"
#include "data/libsvm.h"
#include "data/vocabulary.h"

enum { DATA_PIXEL_VALUES = 256 };

// One part. The set owns its arrays.
typedef struct data_part_store {
    uint8_t *pixels;
    uint32_t *labels;
    uint32_t *tokens;
    data_table table;
} data_part_store;

struct data_set {
    data_info info;
    data_part_store parts[DATA_PARTS];
    float level[DATA_CHANNELS_MAX][DATA_PIXEL_VALUES];
    data_vocabulary vocabulary;
    data_document *documents;
    size_t document_count;
};

// data_set_normalise fills `level` and `blank` for the channels of the set.
void data_set_normalise(
    data_set *set, const double *mean, const double *deviation);

#endif
