// SPDX-License-Identifier: MIT
// Opens and closes feeds, and forwards calls to the kind of feed.
#include "train/feed.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/file.h"
#include "train/feed_kinds.h"

lac_status train_feed_can_augment(const data_info *info)
{
    return info->kind == DATA_IMAGES ? LAC_OK
                                     : lac_fail(
                                           LAC_ERR_INVALID,
                                           "%s: has no images to crop and "
                                           "mirror, expected no --augment",
                                           info->name);
}

static lac_status feed_check(const train_feed_options *o)
{
    const data_info *const info = data_set_info(o->set);
    if (o->rank >= o->world || o->batch == 0 || o->test_batch == 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "feed: worker %u of %u, batches of %u and test batches of %u, "
            "expected a rank below the number of workers and at least 1",
            o->rank, o->world, o->batch, o->test_batch);
    }
    if (info->kind == DATA_TEXT && o->steps == 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: batches of 0 words per row, expected at least 1", info->name);
    }
    return o->augment ? train_feed_can_augment(info) : LAC_OK;
}

lac_status train_feed_open(train_feed **out, const train_feed_options *options)
{
    *out = NULL;
    LAC_TRY(feed_check(options));
    train_feed *const feed = calloc(1, sizeof(*feed));
    if (feed == NULL) {
        return data_no_memory("feed", sizeof(*feed));
    }
    feed->options = *options;
    feed->info = data_set_info(options->set);
    feed->test_part = feed->info->count[DATA_TEST] > 0 ? DATA_TEST : DATA_VALID;
    const lac_status status = feed->info->kind == DATA_TEXT
                                  ? train_text_open(feed)
                                  : train_examples_open(feed);
    if (status != LAC_OK) {
        train_feed_close(feed);
        return status;
    }
    *out = feed;
    return LAC_OK;
}

void train_feed_close(train_feed *feed)
{
    if (feed != NULL) {
        free(feed->tokens);
        free(feed->sorted);
        free(feed->image);
        free(feed->x);
        free(feed->index);
        free(feed->test_order);
        data_split_close(feed->split);
        free(feed->labels);
        free(feed);
    }
}

nn_sample train_feed_sample(const data_info *info)
{
    return (nn_sample){
        info->channels, info->height, info->width, info->classes};
}

uint64_t train_feed_steps(const train_feed *feed)
{
    return feed->steps;
}

void train_feed_batch(
    train_feed *feed, uint64_t epoch, uint64_t step, nn_batch *out)
{
    assert(step < feed->steps);
    if (feed->info->kind == DATA_TEXT) {
        train_text_batch(feed, epoch, step, out);
    } else {
        train_examples_batch(feed, epoch, step, out);
    }
}

uint64_t train_feed_tests(const train_feed *feed, train_feed_part part)
{
    return feed->info->kind == DATA_TEXT ? train_text_tests(feed, part)
                                         : train_examples_tests(feed, part);
}

void train_feed_test(
    train_feed *feed, train_feed_part part, uint64_t index, nn_batch *out)
{
    assert(index < train_feed_tests(feed, part));
    if (feed->info->kind == DATA_TEXT) {
        train_text_test(feed, part, index, out);
    } else {
        train_examples_test(feed, part, index, out);
    }
}

bool train_feed_equal(
    const train_feed *feed, train_feed_part a, train_feed_part b)
{
    return feed->info->kind == DATA_TEXT
               ? train_text_tests(feed, a) == train_text_tests(feed, b)
               : train_examples_count(feed, a) == train_examples_count(feed, b);
}

size_t train_share_start(
    const train_feed *feed, train_feed_part part, size_t n, uint32_t rank)
{
    const uint32_t world = part.shared ? feed->options.world : 1;
    const size_t each = n / world, more = n % world;
    return rank * each + (rank < more ? rank : more);
}

const char *train_feed_advice(
    uint64_t workers, uint64_t batch, char out[TRAIN_ADVICE_SIZE])
{
    int len = 0;
    out[0] = '\0';
    if (workers > 0) {
        len = snprintf(
            out, TRAIN_ADVICE_SIZE, ": %" PRIu64 " worker%s", workers,
            workers == 1 ? "" : "s or fewer");
    }
    if (batch > 0 && len >= 0) {
        (void)snprintf(
            out + len, (size_t)(TRAIN_ADVICE_SIZE - len),
            "%s--batch %" PRIu64 " or less", len > 0 ? ", or " : ": ", batch);
    }
    return out;
}
