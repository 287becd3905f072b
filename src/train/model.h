// SPDX-License-Identifier: MIT
// A trained model in a file, model.safetensors. Its metadata describe it, so
// that it can be used without the folder of its run:
//
//     model       its name, as --model takes it
//     data        the name of the data set
//     kind        images, table or text
//     sample      channels, height and width of an example: "3 32 32"
//     classes     their number; of a text, words of the vocabulary
//     mean        of the pixels from 0 to 1, one for each channel
//     deviation   likewise; the network reads (pixel - mean) / deviation
//     vocabulary  the words of a text in the order of their numbers, with a
//                 line feed after each
#ifndef LACONIC_TRAIN_MODEL_H
#define LACONIC_TRAIN_MODEL_H

#include <stddef.h>

#include <laconic/laconic.h>

#include "data/dataset.h"
#include "nn/network.h"
#include "train/safetensors.h"

enum { TRAIN_MODEL_TEXTS = 8, TRAIN_MODEL_TEXT_SIZE = 96 };

// The metadata of a model. The caller frees `vocabulary`.
typedef struct train_model_texts {
    train_text list[TRAIN_MODEL_TEXTS];
    size_t count;
    char sample[TRAIN_MODEL_TEXT_SIZE];
    char classes[TRAIN_MODEL_TEXT_SIZE];
    char mean[TRAIN_MODEL_TEXT_SIZE];
    char deviation[TRAIN_MODEL_TEXT_SIZE];
    char *vocabulary; // or NULL
} train_model_texts;

// train_model_describe writes the metadata of a model of these data.
// Fails with LAC_ERR_NOMEM.
lac_status train_model_describe(
    const char *model, const data_set *set, train_model_texts *out);

// A model that was loaded, and its network, which evaluates.
typedef struct train_model {
    char *name, *data; // owned
    data_kind kind;
    nn_sample sample;
    double mean[DATA_CHANNELS_MAX], deviation[DATA_CHANNELS_MAX];
    char *vocabulary;   // of a text, owned: words with a zero byte after each
    const char **words; // of a text, owned: where each begins
    nn_network *net;
    float *parameters, *statistics, *carry;
} train_model;

// train_model_open loads a file, or model.safetensors in a folder, for batches
// of `batch` examples, or rows of `steps` words. If `batch` is 0 it is that of
// train_model_batch.
// Fails with LAC_ERR_INVALID or LAC_ERR_CORRUPT (the message names the file),
// or LAC_ERR_NOMEM. Close it in either case.
lac_status train_model_open(
    train_model *m, const char *path, uint32_t batch, uint32_t steps);
void train_model_close(train_model *m);

// train_model_batch returns a number of examples, or rows of a text, that are
// evaluated fast.
uint32_t train_model_batch(data_kind kind);

// train_model_state returns the vectors for nn_network_evaluate.
nn_state train_model_state(const train_model *m);

#endif
