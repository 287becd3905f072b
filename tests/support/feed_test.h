// SPDX-License-Identifier: MIT
// A folder of its own for a test that makes a data set, and how to write one.
#ifndef LACONIC_TESTS_FEED_TEST_H
#define LACONIC_TESTS_FEED_TEST_H

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/set.h"
#include "lac_test.h"
#include "train/feed.h"

static char test_folder[64];

static inline int enter_folder(void **state)
{
    (void)state;
    (void)snprintf(test_folder, sizeof(test_folder), "/tmp/lac_test_XXXXXX");
    return mkdtemp(test_folder) == NULL || chdir(test_folder) != 0;
}

static inline int remove_one(
    const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info;
    (void)type;
    (void)place;
    return remove(path);
}

static inline int leave_folder(void **state)
{
    (void)state;
    return chdir("/") != 0 || nftw(test_folder, remove_one, 8, FTW_DEPTH) != 0;
}

static inline void write_bytes(const char *path, const void *data, size_t len)
{
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static inline data_set *open_set(const char *name, size_t limit)
{
    const data_options o = {.name = name, .folder = ".", .limit = limit};
    data_set *set = NULL;
    assert_ok(data_set_open(&set, &o));
    return set;
}

static inline train_feed *open_feed(train_feed_options o)
{
    train_feed *feed = NULL;
    assert_ok(train_feed_open(&feed, &o));
    return feed;
}

// Batches are taken without an allocation, and an open that lacks memory for
// any of what it needs leaves nothing behind.
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
    train_feed_test(feed, 0, &batch);
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
