// SPDX-License-Identifier: MIT
// A data set, opened once in a process and read-only from then on.
//
//     const data_options o = {.name = "fashion-mnist", .cache = cache};
//     if (data_set_open(&set, &o) == LAC_OK) {
//         data_set_copy(set, DATA_TRAIN, 17, pixels);
//         label = data_set_labels(set, DATA_TRAIN)[17];
//     }
//
// Threads: nothing is written after data_set_open, so threads may share a set.
#ifndef LACONIC_DATA_DATASET_H
#define LACONIC_DATA_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

typedef enum data_kind {
    DATA_IMAGES, // channels x height x width, with a class
    DATA_TABLE,  // rows of numbers with a class: 1 x 1 x width
    DATA_TEXT,   // a sequence of token numbers, and a vocabulary
} data_kind;

// data_kind_name returns "images", "table" or "text".
const char *data_kind_name(data_kind kind);

typedef enum data_part { DATA_TRAIN, DATA_VALID, DATA_TEST } data_part;

enum { DATA_PARTS = 3, DATA_CHANNELS_MAX = 3, DATA_PATH_SIZE = 4096 };

// The properties of a set.
typedef struct data_info {
    const char *name;
    data_kind kind;
    size_t count[DATA_PARTS];         // examples; of a text, words
    uint32_t channels, height, width; // of an example; 0 for a text
    uint32_t classes;                 // of a text, words of the vocabulary
    float blank[DATA_CHANNELS_MAX];   // a black pixel, normalised
    double mean[DATA_CHANNELS_MAX];   // of pixels from 0 to 1
    double deviation[DATA_CHANNELS_MAX];
} data_info;

// One of the files of a text. Files whose names differ only in leading digits
// ("1790_george_washington_n.txt") have the same label.
typedef struct data_document {
    data_part part;
    size_t start; // its first word in that part
    uint32_t label;
} data_document;

typedef struct data_options {
    const char *name;
    const char *folder; // with its files; NULL: the folder of the Debian
                        // package or of `laconic data fetch`
    const char *cache;  // the folder of `laconic data fetch`, or NULL
    size_t limit;       // use only the first training examples; 0: all
} data_options;

typedef struct data_set data_set;

// data_set_open reads a set into memory.
// Fails with LAC_ERR_NOTFOUND if no set has this name, LAC_ERR_INVALID if its
// files are missing, LAC_ERR_CORRUPT if one is damaged, or LAC_ERR_NOMEM;
// `*out` is then NULL, and the message names the file.
lac_status data_set_open(data_set **out, const data_options *options);

// data_set_close frees a set. NULL is allowed.
void data_set_close(data_set *set);

const data_info *data_set_info(const data_set *set);

// data_set_copy writes example `i` of a part of images or of a table to
// x[0..channels * height * width). Pixels p become (p / 255 - mean) / deviation
// with the constants of the set; numbers of a table are copied.
void data_set_copy(const data_set *set, data_part part, size_t i, float *x);

// data_set_labels returns the classes of the examples of a part, or NULL for a
// text and for an empty part.
const uint32_t *data_set_labels(const data_set *set, data_part part);

// data_set_tokens returns the token numbers of a part of a text, or NULL.
const uint32_t *data_set_tokens(const data_set *set, data_part part);

// data_set_word returns a word of the vocabulary of a text.
const char *data_set_word(const data_set *set, uint32_t token);

// data_set_documents returns the files of a text in their order, or NULL.
const data_document *data_set_documents(const data_set *set, size_t *count_out);

#endif
