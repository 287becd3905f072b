// SPDX-License-Identifier: MIT
// Batches of images and of rows of tables. The order of an epoch is computed
// with its first batch and stored until a batch of another epoch is read. So an
// epoch costs one shuffle, whatever the order of its batches.
#include <stdlib.h>

#include "data/augment.h"
#include "data/file.h"
#include "train/feed_kinds.h"

static lac_status count_steps(train_feed *feed)
{
    const train_feed_options *const o = &feed->options;
    const size_t count = feed->info->count[DATA_TRAIN];
    feed->steps = count / ((uint64_t)o->world * o->batch);
    if (feed->steps == 0) {
        char advice[TRAIN_ADVICE_SIZE];
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: %zu examples for %u workers with batches of %u, expected at "
            "least one batch per worker%s",
            feed->info->name, count, o->world, o->batch,
            train_feed_advice(count / o->batch, count / o->world, advice));
    }
    return LAC_OK;
}

static lac_status examples_allocate(train_feed *feed)
{
    const train_feed_options *const o = &feed->options;
    const data_info *const info = feed->info;
    const size_t tests = info->count[feed->test_part];
    const size_t train = info->count[DATA_TRAIN];
    const size_t largest = tests > train ? tests : train;
    size_t max = o->test_batch < largest ? o->test_batch : largest;
    max = o->batch > max ? o->batch : max;
    feed->pixels = (size_t)info->channels * info->height * info->width;
    const size_t example = feed->pixels * sizeof(float);
    feed->labels = calloc(max, sizeof(*feed->labels));
    feed->x = calloc(max, example);
    feed->index = calloc(train, sizeof(*feed->index));
    feed->test_order = calloc(tests + 1, sizeof(*feed->test_order));
    feed->image = o->augment ? calloc(1, example) : NULL;
    if (feed->labels == NULL || feed->x == NULL || feed->index == NULL ||
        feed->test_order == NULL || (o->augment && feed->image == NULL)) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for batches of %zu examples",
            info->name, max);
    }
    data_shuffle_test(feed->test_order, tests);
    return LAC_OK;
}

lac_status train_examples_open(train_feed *feed)
{
    const train_feed_options *const o = &feed->options;
    const data_split_options split = {
        .rule = o->rule,
        .count = feed->info->count[DATA_TRAIN],
        .labels = data_set_labels(o->set, DATA_TRAIN),
        .workers = o->world,
        .seed = o->seed,
    };
    LAC_TRY(count_steps(feed));
    LAC_TRY(data_split_open(&feed->split, &split));
    feed->share = data_split_size(feed->split, o->rank);
    return examples_allocate(feed);
}

void train_examples_batch(
    train_feed *feed, uint64_t epoch, uint64_t step, nn_batch *out)
{
    const train_feed_options *const o = &feed->options;
    const uint32_t *const labels = data_set_labels(o->set, DATA_TRAIN);
    const lac_key key = data_augment_key(o->seed, epoch);
    if (!feed->has_epoch || feed->epoch != epoch) {
        data_split_epoch(feed->split, epoch, o->rank, feed->index);
        feed->epoch = epoch;
        feed->has_epoch = true;
    }
    for (uint32_t i = 0; i < o->batch; i++) {
        const uint64_t place = step * o->batch + i;
        const uint32_t example = feed->index[place % feed->share];
        float *const x = feed->x + i * feed->pixels;
        if (o->augment) {
            data_set_copy(o->set, DATA_TRAIN, example, feed->image);
            data_augment(feed->info, &key, example, feed->image, x);
        } else {
            data_set_copy(o->set, DATA_TRAIN, example, x);
        }
        feed->labels[i] = labels[example];
    }
    *out = (nn_batch){.count = o->batch, .x = feed->x, .labels = feed->labels};
}

static data_part source_of(const train_feed *feed, train_feed_part part)
{
    return part.training ? DATA_TRAIN : feed->test_part;
}

size_t train_examples_count(const train_feed *feed, train_feed_part part)
{
    const size_t tests = feed->info->count[source_of(feed, part)];
    return part.limit != 0 && part.limit < tests ? part.limit : tests;
}

uint64_t train_examples_tests(const train_feed *feed, train_feed_part part)
{
    const size_t batch = feed->options.test_batch;
    const size_t largest =
        train_share_start(feed, part, train_examples_count(feed, part), 1);
    return largest / batch + (largest % batch != 0);
}

void train_examples_test(
    train_feed *feed, train_feed_part part, uint64_t index, nn_batch *out)
{
    const train_feed_options *const o = &feed->options;
    const data_part source = source_of(feed, part);
    const uint32_t *const labels = data_set_labels(o->set, source);
    const uint32_t rank = part.shared ? o->rank : 0;
    const size_t n = train_examples_count(feed, part);
    const size_t end = train_share_start(feed, part, n, rank + 1);
    const size_t start =
        train_share_start(feed, part, n, rank) + (size_t)index * o->test_batch;
    const size_t left = start < end ? end - start : 0;
    const uint32_t count =
        left < o->test_batch ? (uint32_t)left : o->test_batch;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t example =
            part.training ? (uint32_t)(start + i) : feed->test_order[start + i];
        float *const x = feed->x + i * feed->pixels;
        data_set_copy(o->set, source, example, x);
        feed->labels[i] = labels[example];
    }
    *out = (nn_batch){.count = count, .x = feed->x, .labels = feed->labels};
}
