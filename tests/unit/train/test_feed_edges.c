// SPDX-License-Identifier: MIT
// Edge cases of feeds: small test sets, tables, memory, and invalid options.
#include "feed_test.h"

static void a_test_set_may_be_small_or_missing(void **state)
{
    (void)state;
    data_set *const set = open_images();
    const train_feed_options o = {
        .set = set, .world = 1, .batch = 2, .test_batch = 1000};
    nn_batch batch;
    train_feed *feed = open_feed(o);
    assert_int_equal(train_feed_tests(feed, whole_test), 1);
    train_feed_test(feed, whole_test, 0, &batch);
    assert_int_equal(batch.count, TEST);
    train_feed_close(feed);
    set->info.count[DATA_TEST] = 0;
    feed = open_feed(o);
    assert_int_equal(train_feed_tests(feed, whole_test), 0);
    train_feed_close(feed);
    data_set_close(set);
}

static void rows_of_a_table_are_examples_too(void **state)
{
    (void)state;
    data_set *const set = open_table();
    train_feed *const feed = open_feed((train_feed_options){
        .set = set, .world = 1, .batch = 4, .test_batch = 2});
    const nn_sample sample = train_feed_sample(data_set_info(set));
    assert_int_equal(sample.channels, 1);
    assert_int_equal(sample.height, 1);
    assert_int_equal(sample.width, 4);
    assert_int_equal(sample.classes, 2);
    nn_batch batch;
    train_feed_batch(feed, 0, 0, &batch);
    uint32_t list[4];
    for (size_t i = 0; i < 4; i++) {
        list[i] = find(set, batch.x + 4 * i);
        assert_int_equal(batch.labels[i], list[i] % 2);
    }
    assert_int_equal(set_of(list, 4), 15);
    train_feed_close(feed);
    data_set_close(set);
}

static void memory_is_taken_at_open_only(void **state)
{
    (void)state;
    data_set *const set = open_images();
    check_allocations((train_feed_options){
        .set = set,
        .rule = {.kind = DATA_SPLIT_SORTED},
        .world = 2,
        .batch = 4,
        .test_batch = 4,
        .augment = true});
    data_set_close(set);
}

static void what_cannot_be_fed_is_refused(void **state)
{
    (void)state;
    data_set *const set = open_images(), *const table = open_table();
    train_feed_options o = {
        .set = set, .world = 5, .batch = 5, .test_batch = 1};
    refuse(
        o, "mnist: 24 examples for 5 workers with batches of 5, expected at "
           "least one batch per worker: 4 workers or fewer, or --batch 4 or "
           "less");
    o.batch = 25;
    refuse(
        o, "mnist: 24 examples for 5 workers with batches of 25, expected at "
           "least one batch per worker: --batch 4 or less");
    o.world = 30;
    o.batch = 20;
    refuse(
        o, "mnist: 24 examples for 30 workers with batches of 20, expected at "
           "least one batch per worker: 1 worker");
    o.world = o.batch = UINT32_MAX;
    refuse(
        o, "mnist: 24 examples for 4294967295 workers with batches of "
           "4294967295, expected at least one batch per worker");
    o = (train_feed_options){
        .set = table, .world = 1, .batch = 1, .test_batch = 1, .augment = true};
    refuse(
        o, "a9a: has no images to crop and mirror, expected no "
           "--augment");
    o = (train_feed_options){
        .set = set, .rank = 2, .world = 2, .batch = 1, .test_batch = 1};
    refuse(
        o, "feed: worker 2 of 2, batches of 1 and test batches of 1, "
           "expected a rank below the number of workers and at least 1");
    o.rank = o.batch = 0;
    refuse(
        o, "feed: worker 0 of 2, batches of 0 and test batches of 1, "
           "expected a rank below the number of workers and at least 1");
    data_set_close(set);
    data_set_close(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_test_set_may_be_small_or_missing),
        IN_FOLDER(rows_of_a_table_are_examples_too),
        IN_FOLDER(memory_is_taken_at_open_only),
        IN_FOLDER(what_cannot_be_fed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
