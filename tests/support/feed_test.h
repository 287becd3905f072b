// SPDX-License-Identifier: MIT
// Data sets that a test makes in its own folder, and feeds of them.
#ifndef LACONIC_TESTS_FEED_TEST_H
#define LACONIC_TESTS_FEED_TEST_H

#include <string.h>

#include "data/set.h"
#include "folder.h"
#include "lac_test.h"
#include "train/feed.h"

static inline data_set *open_set(const char *name, size_t limit)
{
    const data_options o = {.name = name, .folder = ".", .limit = limit};
    data_set *set = NULL;
    assert_ok(data_set_open(&set, &o));
    return set;
}

static const train_feed_part whole_test = {0};

static inline train_feed *open_feed(train_feed_options o)
{
    train_feed *feed = NULL;
    assert_ok(train_feed_open(&feed, &o));
    return feed;
}

// Images and a table as files; all examples differ.
enum { HEIGHT = 3, WIDTH = 5, PIXELS = HEIGHT * WIDTH, TRAIN = 24, TEST = 7 };

static inline void write_images(const char *path, uint8_t count, uint8_t first)
{
    uint8_t file[16 + TRAIN * PIXELS] = {0, 0, 8, 3,      0, 0, 0, count,
                                         0, 0, 0, HEIGHT, 0, 0, 0, WIDTH};
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < PIXELS; k++) {
            file[16 + i * PIXELS + k] = (uint8_t)(first + 9 * i + k);
        }
    }
    put_file(path, file, 16 + (size_t)count * PIXELS);
}

static inline void write_labels(const char *path, uint8_t count)
{
    uint8_t file[8 + TRAIN] = {0, 0, 8, 1, 0, 0, 0, count};
    for (size_t i = 0; i < count; i++) {
        file[8 + i] = (uint8_t)(i * 7 % 10);
    }
    put_file(path, file, 8 + (size_t)count);
}

static inline data_set *open_images(void)
{
    write_images("train-images-idx3-ubyte", TRAIN, 1);
    write_labels("train-labels-idx1-ubyte", TRAIN);
    write_images("t10k-images-idx3-ubyte", TEST, 3);
    write_labels("t10k-labels-idx1-ubyte", TEST);
    return open_set("mnist", 0);
}

static inline data_set *open_table(void)
{
    static const char train[] = "-1 2:1\n+1 1:3 3:4\n-1 2:5\n+1 1:6\n";
    static const char test[] = "+1 4:2\n";
    put_text("a9a", train);
    put_text("a9a.t", test);
    return open_set("a9a", 0);
}

// Returns the index of a training example that is not augmented.
static inline uint32_t find(const data_set *set, const float *x)
{
    const data_info *const info = data_set_info(set);
    const size_t n = (size_t)info->channels * info->height * info->width;
    float own[PIXELS];
    for (uint32_t i = 0; i < info->count[DATA_TRAIN]; i++) {
        data_set_copy(set, DATA_TRAIN, i, own);
        if (memcmp(own, x, n * sizeof(*x)) == 0) {
            return i;
        }
    }
    fail_msg("no example looks like this");
    return 0;
}

static inline void refuse(train_feed_options o, const char *message)
{
    train_feed *feed = (void *)&o;
    assert_fails(train_feed_open(&feed, &o), LAC_ERR_INVALID, message);
    assert_null(feed);
}

static inline uint32_t set_of(const uint32_t *list, size_t count)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < count; i++) {
        bits |= 1U << list[i];
    }
    return bits;
}

// Reading batches allocates nothing, and an open in which any allocation fails
// leaks nothing.
static inline void check_allocations(train_feed_options o)
{
    nn_batch batch;
    train_feed *feed = NULL;
    size_t before = test_allocations;
    assert_ok(train_feed_open(&feed, &o));
    const long needed = (long)(test_allocations - before);
    before = test_allocations;
    train_feed_batch(feed, 0, 0, &batch);
    train_feed_batch(feed, 3, 0, &batch);
    train_feed_test(feed, whole_test, 0, &batch);
    assert_int_equal(test_allocations, before);
    train_feed_close(feed);
    for (long left = 0; left < needed; left++) {
        test_allocations_left = left;
        const lac_status status = train_feed_open(&feed, &o);
        test_allocations_left = -1;
        assert_status(status, LAC_ERR_NOMEM);
        assert_null(feed);
    }
    train_feed_close(NULL);
}

#endif
