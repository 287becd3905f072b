// SPDX-License-Identifier: MIT
// Batches of images and tables: which worker takes which examples in which
// step.
#include "feed_test.h"

#include "data/augment.h"

// Writes the examples of an epoch in order and returns their number.
static size_t list_epoch(
    train_feed *feed, const train_feed_options *o, uint64_t epoch,
    uint32_t *out)
{
    size_t count = 0;
    for (uint64_t step = 0; step < train_feed_steps(feed); step++) {
        nn_batch batch;
        train_feed_batch(feed, epoch, step, &batch);
        assert_int_equal(batch.count, o->batch);
        assert_null(batch.tokens);
        for (uint32_t i = 0; i < batch.count; i++) {
            const uint32_t example = find(o->set, batch.x + i * PIXELS);
            assert_int_equal(
                batch.labels[i], data_set_labels(o->set, DATA_TRAIN)[example]);
            out[count++] = example;
        }
    }
    return count;
}

static void every_example_is_taken_once_an_epoch(void **state)
{
    (void)state;
    data_set *const set = open_images();
    for (int rule = DATA_SPLIT_SHUFFLE; rule <= DATA_SPLIT_SORTED; rule++) {
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            uint8_t seen[TRAIN] = {0};
            for (uint32_t rank = 0; rank < 3; rank++) {
                uint32_t list[TRAIN];
                const train_feed_options o = {
                    .set = set,
                    .rule = {.kind = (data_split_kind)rule},
                    .rank = rank,
                    .world = 3,
                    .batch = 4,
                    .test_batch = 5};
                train_feed *const feed = open_feed(o);
                assert_int_equal(train_feed_steps(feed), 2);
                assert_int_equal(list_epoch(feed, &o, epoch, list), 8);
                for (size_t i = 0; i < 8; i++) {
                    assert_int_equal(seen[list[i]]++, 0);
                }
                train_feed_close(feed);
            }
            assert_null(memchr(seen, 0, sizeof(seen)));
        }
    }
    data_set_close(set);
}

static void another_epoch_has_another_order(void **state)
{
    (void)state;
    data_set *const set = open_images();
    for (int rule = DATA_SPLIT_SHUFFLE; rule <= DATA_SPLIT_SORTED; rule++) {
        uint32_t one[TRAIN], two[TRAIN];
        const train_feed_options o = {
            .set = set,
            .rule = {.kind = (data_split_kind)rule},
            .rank = 1,
            .world = 2,
            .batch = 4,
            .test_batch = 5,
            .seed = 9};
        train_feed *const feed = open_feed(o);
        const size_t count = list_epoch(feed, &o, 0, one);
        list_epoch(feed, &o, 1, two);
        assert_memory_not_equal(one, two, count * sizeof(*one));
        assert_int_equal(
            set_of(one, count) == set_of(two, count),
            rule != DATA_SPLIT_SHUFFLE);
        train_feed_close(feed);
    }
    data_set_close(set);
}

// Examples that do not fill a batch of every worker are left out.
static void all_workers_make_the_same_steps(void **state)
{
    (void)state;
    data_set *const set = open_images();
    for (uint32_t rank = 0; rank < 5; rank++) {
        uint32_t list[TRAIN];
        const train_feed_options o = {
            .set = set, .rank = rank, .world = 5, .batch = 2, .test_batch = 5};
        train_feed *const feed = open_feed(o);
        assert_int_equal(train_feed_steps(feed), 2);
        assert_int_equal(list_epoch(feed, &o, 0, list), 4);
        train_feed_close(feed);
    }
    data_set_close(set);
}

static void a_batch_depends_on_epoch_and_step_alone(void **state)
{
    enum { EPOCHS = 3, STEPS = 3, BATCH = 4 };
    (void)state;
    data_set *const set = open_images();
    const train_feed_options o = {
        .set = set,
        .rank = 1,
        .world = 2,
        .batch = BATCH,
        .test_batch = 5,
        .augment = true,
        .seed = 4};
    float first[EPOCHS * STEPS][BATCH * PIXELS];
    nn_batch batch;
    train_feed *feed = open_feed(o);
    for (uint64_t i = 0; i < EPOCHS * STEPS; i++) {
        train_feed_batch(feed, i / STEPS, i % STEPS, &batch);
        memcpy(first[i], batch.x, sizeof(first[i]));
    }
    for (uint64_t i = 0; i < 50; i++) {
        if (i == 30) {
            train_feed_close(feed);
            feed = open_feed(o);
        }
        const uint64_t k = i * i * 5 % (EPOCHS * STEPS);
        train_feed_test(feed, whole_test, 0, &batch);
        train_feed_batch(feed, k / STEPS, k % STEPS, &batch);
        assert_memory_equal(batch.x, first[k], sizeof(first[k]));
    }
    train_feed_close(feed);
    data_set_close(set);
}

// Dirichlet shares are uneven; the smaller one starts again.
static void who_has_fewer_examples_takes_them_again(void **state)
{
    (void)state;
    data_set *const set = open_images();
    size_t wrapped = 0;
    for (uint32_t rank = 0; rank < 2; rank++) {
        uint32_t list[TRAIN] = {0}, index[TRAIN] = {0};
        const train_feed_options o = {
            .set = set,
            .rule = {.kind = DATA_SPLIT_DIRICHLET, .alpha = 0.1},
            .rank = rank,
            .world = 2,
            .batch = 3,
            .test_batch = 5,
            .seed = 2};
        const data_split_options s = {
            .rule = o.rule,
            .count = TRAIN,
            .labels = data_set_labels(set, DATA_TRAIN),
            .workers = 2,
            .seed = 2};
        data_split *split = NULL;
        assert_ok(data_split_open(&split, &s));
        const size_t share = data_split_size(split, rank);
        data_split_epoch(split, 6, rank, index);
        train_feed *const feed = open_feed(o);
        assert_int_equal(list_epoch(feed, &o, 6, list), 12);
        for (size_t i = 0; i < 12; i++) {
            assert_int_equal(list[i], index[i % share]);
        }
        wrapped += share < 12;
        train_feed_close(feed);
        data_split_close(split);
    }
    assert_int_equal(wrapped, 1);
    data_set_close(set);
}

static void only_what_is_trained_on_is_augmented(void **state)
{
    (void)state;
    data_set *const set = open_images();
    train_feed_options o = {
        .set = set, .world = 1, .batch = TRAIN, .test_batch = TEST, .seed = 8};
    nn_batch plain, changed;
    train_feed *const without = open_feed(o);
    o.augment = true;
    train_feed *const with = open_feed(o);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        const lac_key key = data_augment_key(8, epoch);
        size_t same = 0;
        train_feed_batch(without, epoch, 0, &plain);
        train_feed_batch(with, epoch, 0, &changed);
        assert_memory_equal(
            plain.labels, changed.labels, TRAIN * sizeof(uint32_t));
        for (size_t i = 0; i < TRAIN; i++) {
            float expected[PIXELS];
            const float *const x = plain.x + i * PIXELS;
            data_augment(data_set_info(set), &key, find(set, x), x, expected);
            assert_memory_equal(
                changed.x + i * PIXELS, expected, sizeof(expected));
            same += memcmp(x, expected, sizeof(expected)) == 0;
        }
        assert_between(same, 0, TRAIN / 2);
    }
    train_feed_test(without, whole_test, 0, &plain);
    train_feed_test(with, whole_test, 0, &changed);
    assert_memory_equal(plain.x, changed.x, TEST * PIXELS * sizeof(float));
    train_feed_close(without);
    train_feed_close(with);
    data_set_close(set);
}

// Lists the examples of a part by their numbers in the test set.
static size_t list_tests(
    const data_set *set, train_feed *feed, train_feed_part part, uint32_t *out)
{
    size_t count = 0;
    for (uint64_t i = 0; i < train_feed_tests(feed, part); i++) {
        nn_batch batch;
        train_feed_test(feed, part, i, &batch);
        for (size_t k = 0; k < batch.count; k++) {
            uint32_t e = 0;
            float x[PIXELS];
            for (; e < TEST; e++) {
                data_set_copy(set, DATA_TEST, e, x);
                if (memcmp(batch.x + k * PIXELS, x, sizeof(x)) == 0) {
                    break;
                }
            }
            assert_true(e < TEST);
            assert_int_equal(
                batch.labels[k], data_set_labels(set, DATA_TEST)[e]);
            out[count++] = e;
        }
    }
    return count;
}

static void tests_are_the_first_of_one_shuffle(void **state)
{
    (void)state;
    data_set *const set = open_images();
    uint32_t all[TEST], again[TEST];
    train_feed_options o = {
        .set = set, .world = 2, .batch = 2, .test_batch = 3, .seed = 5};
    train_feed *feed = open_feed(o);
    assert_int_equal(train_feed_tests(feed, whole_test), 3);
    assert_int_equal(list_tests(set, feed, whole_test, all), TEST);
    assert_int_equal(set_of(all, TEST), (1U << TEST) - 1);
    train_feed_close(feed);
    bool moved = false;
    for (uint32_t i = 0; i < TEST; i++) {
        moved = moved || all[i] != i;
    }
    assert_true(moved);
    o.rank = 1;
    o.seed = 6;
    feed = open_feed(o);
    for (size_t limit = 1; limit < TEST + 2; limit++) {
        const size_t n = limit < TEST ? limit : TEST;
        const train_feed_part part = {.limit = limit};
        assert_int_equal(list_tests(set, feed, part, again), n);
        assert_memory_equal(all, again, n * sizeof(*all));
    }
    train_feed_close(feed);
    data_set_close(set);
}

// Nine workers have more shares than there are examples.
static void shares_make_up_the_tests(void **state)
{
    (void)state;
    data_set *const set = open_images();
    for (uint32_t world = 1; world <= 9; world++) {
        for (size_t limit = 0; limit < TEST; limit++) {
            const train_feed_part part = {.limit = limit, .shared = true};
            uint32_t all[TEST] = {0}, list[TEST] = {0};
            size_t count = 0, batches = 0;
            for (uint32_t rank = 0; rank < world; rank++) {
                train_feed *const feed = open_feed((train_feed_options){
                    .set = set,
                    .rank = rank,
                    .world = world,
                    .batch = 1,
                    .test_batch = 2});
                if (rank == 0) {
                    batches = train_feed_tests(feed, part);
                    (void)list_tests(
                        set, feed, (train_feed_part){.limit = limit}, all);
                }
                assert_int_equal(train_feed_tests(feed, part), batches);
                count += list_tests(set, feed, part, list + count);
                train_feed_close(feed);
            }
            assert_int_equal(count, limit == 0 ? TEST : limit);
            assert_memory_equal(all, list, count * sizeof(*all));
        }
    }
    data_set_close(set);
}

// In the order of the set, whatever the split and the test set are.
static void shares_make_up_the_training_set(void **state)
{
    const train_feed_part part = {.shared = true, .training = true};
    (void)state;
    data_set *const set = open_images();
    for (uint32_t world = 1; world <= 5; world++) {
        uint32_t next = 0;
        for (uint32_t rank = 0; rank < world; rank++) {
            train_feed *const feed = open_feed((train_feed_options){
                .set = set,
                .rule.kind = DATA_SPLIT_SORTED,
                .rank = rank,
                .world = world,
                .batch = 1,
                .test_batch = 9});
            for (uint64_t b = 0; b < train_feed_tests(feed, part); b++) {
                nn_batch batch;
                train_feed_test(feed, part, b, &batch);
                for (uint32_t i = 0; i < batch.count; i++, next++) {
                    assert_int_equal(find(set, batch.x + i * PIXELS), next);
                    assert_int_equal(batch.labels[i], next * 7 % 10);
                }
            }
            train_feed_close(feed);
        }
        assert_int_equal(next, TRAIN);
    }
    data_set_close(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_example_is_taken_once_an_epoch),
        IN_FOLDER(another_epoch_has_another_order),
        IN_FOLDER(all_workers_make_the_same_steps),
        IN_FOLDER(a_batch_depends_on_epoch_and_step_alone),
        IN_FOLDER(who_has_fewer_examples_takes_them_again),
        IN_FOLDER(only_what_is_trained_on_is_augmented),
        IN_FOLDER(tests_are_the_first_of_one_shuffle),
        IN_FOLDER(shares_make_up_the_tests),
        IN_FOLDER(shares_make_up_the_training_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
