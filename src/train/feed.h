// SPDX-License-Identifier: MIT
// The batches of a worker. They are a function of the seed, the epoch and the
// step alone, so that a run can be resumed at any step.
//
// Of images and tables a worker takes its share of the split batch by batch.
// All workers make the same number of steps; a worker with fewer examples takes
// its first ones again. Of a text each worker has a part, cut into `batch` rows
// of equal length that are read in parallel, `steps` words per batch: shuffle
// assigns another part every epoch, fixed always the same, and sorted first
// sorts the documents by label. Words that do not fill the last batch are left
// out.
#ifndef LACONIC_TRAIN_FEED_H
#define LACONIC_TRAIN_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include <laconic/laconic.h>

#include "data/dataset.h"
#include "data/split.h"
#include "nn/network.h"

typedef struct train_feed_options {
    const data_set *set; // must outlive the feed
    data_split_rule rule;
    uint32_t rank, world;
    uint32_t batch;      // examples per step; of a text, rows
    uint32_t steps;      // of a text, words per row in a batch
    uint32_t test_batch; // examples or rows of a test batch
    bool augment;        // crop and mirror training images
    uint64_t seed;
} train_feed_options;

typedef struct train_feed train_feed;

// train_feed_open splits the training set.
// Fails with LAC_ERR_INVALID (fewer examples than one batch per worker, or a
// rule that does not fit the data) or LAC_ERR_NOMEM; `*out` is then NULL.
lac_status train_feed_open(train_feed **out, const train_feed_options *options);
void train_feed_close(train_feed *feed);

// train_feed_can_augment fails with LAC_ERR_INVALID unless the data are images.
lac_status train_feed_can_augment(const data_info *info);

// train_feed_sample returns the shape of the examples for a network.
nn_sample train_feed_sample(const data_info *info);

// train_feed_steps returns the number of steps in an epoch, the same for every
// worker.
uint64_t train_feed_steps(const train_feed *feed);

// train_feed_batch points `out` at the batch of a step, valid until the next
// call. The caller clears the carry at step 0 of an epoch.
void train_feed_batch(
    train_feed *feed, uint64_t epoch, uint64_t step, nn_batch *out);

// A part of the test set; all zero: the whole set.
typedef struct train_feed_part {
    size_t limit;  // the first examples of a fixed shuffle; of a text, words in
                   // whole batches; 0: all
    bool shared;   // each worker has its share: examples, or rows of a text
    bool training; // of the training set instead, in its order; not of a text
} train_feed_part;

// train_feed_tests returns the number of test batches of a part, the same for
// every worker, 0 if there is no test set. train_feed_test points `out` at one
// of them. A share may be smaller than others: its last batches then have fewer
// examples or none. Those of a text are consecutive; the caller clears the
// carry before the first.
uint64_t train_feed_tests(const train_feed *feed, train_feed_part part);
void train_feed_test(
    train_feed *feed, train_feed_part part, uint64_t index, nn_batch *out);

// train_feed_equal returns whether two parts have the same examples, whatever
// their limits; apart from these they must be alike.
bool train_feed_equal(
    const train_feed *feed, train_feed_part a, train_feed_part b);

#endif
