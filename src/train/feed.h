// SPDX-License-Identifier: MIT
// The batches of a worker. Which examples they hold is a function of the seed,
// the epoch and the step alone, so that a run can go on anywhere.
//
// Of images and tables a worker takes its share of the split batch by batch;
// all workers make the same number of steps, and who has fewer examples than
// that takes its first ones again. Of a text each worker has a part, cut into
// `batch` rows of equal length that are read side by side, `steps` words a
// batch: shuffle gives it another part every epoch, fixed always the same, and
// sorted puts the documents in the order of their labels first. What does not
// fill the last batch is left out.
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
    uint32_t batch;      // examples a step; of a text, rows
    uint32_t steps;      // of a text, words of a row in a batch
    uint32_t test_batch; // examples of a batch of the test set; rows
    bool augment;        // crop and mirror what is trained on
    uint64_t seed;
} train_feed_options;

typedef struct train_feed train_feed;

// train_feed_open shares out the training set.
// Fails with LAC_ERR_INVALID (too few examples for one batch a worker, a rule
// that does not go with the data) or LAC_ERR_NOMEM; `*out` is then NULL.
lac_status train_feed_open(train_feed **out, const train_feed_options *options);
void train_feed_close(train_feed *feed);

// train_feed_can_augment fails with LAC_ERR_INVALID where there are no images.
lac_status train_feed_can_augment(const data_info *info);

// train_feed_sample tells a network what the examples look like.
nn_sample train_feed_sample(const data_info *info);

// train_feed_steps returns the steps of an epoch, the same for every worker.
uint64_t train_feed_steps(const train_feed *feed);

// train_feed_batch points `out` at the batch of a step of an epoch, until the
// next call. At step 0 of an epoch a carry has to be cleared.
void train_feed_batch(
    train_feed *feed, uint64_t epoch, uint64_t step, nn_batch *out);

// train_feed_tests returns how many batches the test set has, 0 if there is
// none. train_feed_test points `out` at one of them; the last one of images
// may be smaller. Of a text they follow each other, and a carry is cleared
// before the first.
uint64_t train_feed_tests(const train_feed *feed);
void train_feed_test(train_feed *feed, uint64_t index, nn_batch *out);

#endif
