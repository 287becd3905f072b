// SPDX-License-Identifier: MIT
// The members of a feed, for its two kinds: examples (images and rows of
// tables) and texts.
#ifndef LACONIC_TRAIN_FEED_KINDS_H
#define LACONIC_TRAIN_FEED_KINDS_H

#include "train/feed.h"

struct train_feed {
    train_feed_options options;
    const data_info *info;
    data_part test_part;
    uint64_t steps;
    uint32_t *labels; // of a batch
    // Examples.
    data_split *split;
    size_t share;    // examples of this worker in an epoch
    uint32_t *index; // the examples of `epoch`
    uint64_t epoch;  // of the last batch
    bool has_epoch;  // index and epoch are valid
    size_t pixels;   // values of an example
    float *x;        // of a batch
    float *image;    // before augmentation; or NULL
    uint32_t *test_order;
    // Texts.
    uint32_t *sorted;   // the training words sorted by document; or NULL
    uint32_t *tokens;   // of a batch
    size_t part, row;   // words of a worker and of each of its rows
    uint32_t test_rows; // in parallel
    size_t test_row;    // words of each test row
    uint64_t tests;     // batches of all words
};

// train_share_start returns where the share of a worker begins among n examples
// or rows; it ends where the next begins. The first shares are the largest.
size_t train_share_start(
    const train_feed *feed, train_feed_part part, size_t n, uint32_t rank);

// train_feed_advice writes the most workers, and the largest batch, with which
// every worker would have one: ": 4 workers or fewer, or --batch 16 or less". 0
// is not written.
enum { TRAIN_ADVICE_SIZE = 96 };
const char *train_feed_advice(
    uint64_t workers, uint64_t batch, char out[TRAIN_ADVICE_SIZE]);

lac_status train_examples_open(train_feed *feed);
void train_examples_batch(
    train_feed *feed, uint64_t epoch, uint64_t step, nn_batch *out);
size_t train_examples_count(const train_feed *feed, train_feed_part part);
uint64_t train_examples_tests(const train_feed *feed, train_feed_part part);
void train_examples_test(
    train_feed *feed, train_feed_part part, uint64_t index, nn_batch *out);

lac_status train_text_open(train_feed *feed);
void train_text_batch(
    train_feed *feed, uint64_t epoch, uint64_t step, nn_batch *out);
uint64_t train_text_tests(const train_feed *feed, train_feed_part part);
void train_text_test(
    train_feed *feed, train_feed_part part, uint64_t index, nn_batch *out);

#endif
