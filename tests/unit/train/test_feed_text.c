// SPDX-License-Identifier: MIT
// Batches of a text: rows that continue from batch to batch, and the part of
// each worker.
#include "feed_test.h"

enum { ROWS = 3, STEPS = 4, TEST_ROWS = 2 };

// A file of different words, so that each identifies its position.
static void write_words(const char *path, int from, int count)
{
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < count; i++) {
        assert_true(fprintf(file, "w%d ", from + i) > 0);
    }
    assert_int_equal(fclose(file), 0);
}

// Numbers of words in train, valid and test, with the <eos> of the line.
static data_set *open_words(int train, int valid, int test)
{
    write_words("train.txt", 0, train - 1);
    write_words("valid.txt", 0, valid - 1);
    write_words("test.txt", 10, test - 1);
    data_set *const set = open_set("wikitext-2", 0);
    assert_int_equal(data_set_info(set)->count[DATA_TRAIN], train);
    assert_int_equal(data_set_info(set)->count[DATA_VALID], valid);
    assert_int_equal(data_set_info(set)->count[DATA_TEST], test);
    return set;
}

// Ten documents of twelve times one word and an end of line. The fifth is for
// validation and the last for testing; the names have two labels in turn.
enum { DOCUMENT = 13 };

static void write_documents(void)
{
    for (int i = 0; i < 10; i++) {
        char name[32], text[64] = "";
        (void)snprintf(
            name, sizeof(name), "%d_%s.txt", 1790 + i, i % 2 ? "b" : "a");
        for (int k = 0; k < DOCUMENT - 1; k++) {
            const size_t len = strlen(text);
            (void)snprintf(text + len, sizeof(text) - len, "d%d ", i);
        }
        put_text(name, text);
    }
}

static train_feed_options options_of(const data_set *set, data_split_kind rule)
{
    return (train_feed_options){
        .set = set,
        .rule = {.kind = rule},
        .world = 2,
        .batch = ROWS,
        .steps = STEPS,
        .test_batch = TEST_ROWS};
}

// Two workers, 3 rows each: 97 / 2 = 48 words a part, 16 a row, and of those
// 15 / 4 = 3 batches.
static void rows_lie_side_by_side_and_time_goes_down(void **state)
{
    (void)state;
    data_set *const set = open_words(97, 5, 20);
    const uint32_t *const words = data_set_tokens(set, DATA_TRAIN);
    for (uint32_t rank = 0; rank < 2; rank++) {
        train_feed_options o = options_of(set, DATA_SPLIT_FIXED);
        o.rank = rank;
        train_feed *const feed = open_feed(o);
        assert_int_equal(train_feed_steps(feed), 3);
        for (size_t i = 0; i < (size_t)3 * STEPS * ROWS; i++) {
            const size_t step = i / (STEPS * ROWS), row = i % ROWS;
            const size_t t = i / ROWS % STEPS;
            nn_batch batch;
            train_feed_batch(feed, 5, step, &batch);
            assert_int_equal(batch.count, ROWS);
            assert_null(batch.x);
            const uint32_t *const own = words + 48 * rank + 16 * row;
            assert_int_equal(
                batch.tokens[t * ROWS + row], own[STEPS * step + t]);
            assert_int_equal(
                batch.labels[t * ROWS + row], own[STEPS * step + t + 1]);
        }
        train_feed_close(feed);
    }
    data_set_close(set);
}

static void rows_go_on_from_batch_to_batch(void **state)
{
    (void)state;
    data_set *const set = open_words(97, 5, 40);
    train_feed *const feed = open_feed(options_of(set, DATA_SPLIT_SHUFFLE));
    uint32_t next[ROWS];
    nn_batch batch;
    for (uint64_t step = 0; step < train_feed_steps(feed); step++) {
        train_feed_batch(feed, 0, step, &batch);
        if (step > 0) {
            assert_memory_equal(batch.tokens, next, sizeof(next));
        }
        assert_memory_equal(
            batch.labels, batch.tokens + ROWS,
            (STEPS - 1) * ROWS * sizeof(uint32_t));
        memcpy(next, batch.labels + (STEPS - 1) * ROWS, sizeof(next));
    }
    assert_int_equal(train_feed_tests(feed, whole_test), 4);
    for (uint64_t i = 0; i < 4; i++) {
        train_feed_test(feed, whole_test, i, &batch);
        assert_int_equal(batch.count, TEST_ROWS);
        if (i > 0) {
            assert_memory_equal(batch.tokens, next, TEST_ROWS * sizeof(*next));
        }
        memcpy(
            next, batch.labels + (STEPS - 1) * TEST_ROWS,
            TEST_ROWS * sizeof(*next));
    }
    train_feed_close(feed);
    data_set_close(set);
}

// The first word of a part identifies it.
static uint32_t first_word(train_feed *feed, uint64_t epoch)
{
    nn_batch batch;
    train_feed_batch(feed, epoch, 0, &batch);
    return batch.tokens[0];
}

static void shuffle_hands_the_parts_on(void **state)
{
    enum { WORLD = 3 };
    (void)state;
    data_set *const set = open_words(100, 5, 20);
    const uint32_t *const words = data_set_tokens(set, DATA_TRAIN);
    static const uint64_t epochs[] = {4, 0, UINT64_MAX, 2, 3};
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        for (int rule = 0; rule < 2; rule++) {
            train_feed_options o = options_of(set, (data_split_kind)rule);
            o.rank = rank;
            o.world = WORLD;
            train_feed *const feed = open_feed(o);
            for (int i = 0; i < 5; i++) {
                const uint64_t on = rule == 0 ? epochs[i] % WORLD : 0;
                assert_int_equal(
                    first_word(feed, epochs[i]),
                    words[33 * ((rank + on) % WORLD)]);
            }
            train_feed_close(feed);
        }
    }
    data_set_close(set);
}

// Compares the first word of each batch of a worker with the documents.
static void assert_reads(
    const train_feed_options *o, const int *documents, size_t count)
{
    train_feed *const feed = open_feed(*o);
    const uint64_t steps = train_feed_steps(feed);
    assert_between(steps, DOCUMENT * (count - 1), DOCUMENT * count - 1);
    for (uint64_t step = 0; step < steps; step++) {
        char expected[16] = "<eos>";
        if (step % DOCUMENT != DOCUMENT - 1) {
            (void)snprintf(
                expected, sizeof(expected), "d%d", documents[step / DOCUMENT]);
        }
        nn_batch batch;
        train_feed_batch(feed, 2, step, &batch);
        assert_string_equal(
            data_vocabulary_word(&o->set->vocabulary, batch.tokens[0]),
            expected);
    }
    train_feed_close(feed);
}

static void sorted_reads_by_label(void **state)
{
    (void)state;
    static const int a[] = {0, 2, 6, 8}, b[] = {1, 3, 5, 7};
    static const int begin[] = {0, 1, 2, 3};
    write_documents();
    data_set *const set = open_set("sotu", 0);
    assert_int_equal(data_set_info(set)->count[DATA_TRAIN], 8 * DOCUMENT);
    train_feed_options o = {
        .set = set,
        .rule = {.kind = DATA_SPLIT_SORTED},
        .world = 2,
        .batch = 1,
        .steps = 1,
        .test_batch = 1};
    assert_reads(&o, a, 4);
    o.rank = 1;
    assert_reads(&o, b, 4);
    o.rule.kind = DATA_SPLIT_FIXED;
    o.rank = 0;
    assert_reads(&o, begin, 4);
    data_set_close(set);
}

// 58 words: four documents and six words of the next, which is number 5.
static void sorted_keeps_to_a_limit(void **state)
{
    (void)state;
    static const int order[] = {0, 2, 1, 3, 5};
    write_documents();
    data_set *const set = open_set("sotu", 4 * DOCUMENT + 6);
    const train_feed_options o = {
        .set = set,
        .rule = {.kind = DATA_SPLIT_SORTED},
        .world = 1,
        .batch = 1,
        .steps = 1,
        .test_batch = 1};
    assert_reads(&o, order, 5);
    data_set_close(set);
}

// 20 words in 2 rows of 10: two batches of 4. In 5 rows of 4 none, but in 4 of
// 5 one.
static void the_test_set_is_cut_into_rows(void **state)
{
    (void)state;
    data_set *const set = open_words(97, 5, 20);
    const uint32_t *const words = data_set_tokens(set, DATA_TEST);
    train_feed_options o = options_of(set, DATA_SPLIT_SHUFFLE);
    nn_batch batch;
    train_feed *feed = open_feed(o);
    assert_int_equal(train_feed_tests(feed, whole_test), 2);
    train_feed_test(feed, whole_test, 1, &batch);
    assert_int_equal(batch.count, 2);
    assert_int_equal(batch.tokens[0], words[4]);
    assert_int_equal(batch.tokens[1], words[14]);
    assert_int_equal(batch.labels[7], words[18]);
    train_feed_close(feed);
    o.test_batch = 5;
    feed = open_feed(o);
    assert_int_equal(train_feed_tests(feed, whole_test), 1);
    train_feed_test(feed, whole_test, 0, &batch);
    assert_int_equal(batch.count, 4);
    assert_int_equal(batch.tokens[3], words[15]);
    assert_int_equal(batch.labels[15], words[19]);
    train_feed_close(feed);
    data_set_close(set);
}

// The rows of all shares side by side are those of the whole set. A third
// worker has none of the two rows.
static void workers_share_the_rows_of_a_test(void **state)
{
    (void)state;
    data_set *const set = open_words(97, 5, 20);
    const uint32_t *const words = data_set_tokens(set, DATA_TEST);
    const train_feed_part part = {.shared = true};
    train_feed_options o = options_of(set, DATA_SPLIT_SHUFFLE);
    o.world = 3;
    for (o.rank = 0; o.rank < o.world; o.rank++) {
        nn_batch batch;
        train_feed *const feed = open_feed(o);
        assert_int_equal(train_feed_tests(feed, part), 2);
        train_feed_test(feed, part, 1, &batch);
        assert_int_equal(batch.count, o.rank < 2);
        if (o.rank < 2) {
            assert_int_equal(batch.tokens[0], words[o.rank == 0 ? 4 : 14]);
            assert_int_equal(batch.labels[3], words[o.rank == 0 ? 8 : 18]);
        }
        train_feed_close(feed);
    }
    data_set_close(set);
}

// A batch has 8 words.
static void a_limit_keeps_whole_batches_of_words(void **state)
{
    (void)state;
    data_set *const set = open_words(97, 5, 40);
    train_feed *const feed = open_feed(options_of(set, DATA_SPLIT_SHUFFLE));
    const size_t limits[] = {1, 8, 9, 32, 33}, batches[] = {1, 1, 2, 4, 4};
    for (size_t i = 0; i < 5; i++) {
        const train_feed_part part = {.limit = limits[i]};
        assert_int_equal(train_feed_tests(feed, part), batches[i]);
    }
    train_feed_close(feed);
    data_set_close(set);
}

static void validation_stands_in_for_a_missing_test(void **state)
{
    (void)state;
    data_set *const set = open_words(97, 11, 20);
    const train_feed_options o = options_of(set, DATA_SPLIT_SHUFFLE);
    nn_batch batch;
    set->info.count[DATA_TEST] = 0;
    train_feed *feed = open_feed(o);
    assert_int_equal(train_feed_tests(feed, whole_test), 1);
    train_feed_test(feed, whole_test, 0, &batch);
    assert_int_equal(batch.tokens[1], data_set_tokens(set, DATA_VALID)[5]);
    train_feed_close(feed);
    set->info.count[DATA_VALID] = STEPS;
    feed = open_feed(o);
    assert_int_equal(train_feed_tests(feed, whole_test), 0);
    train_feed_close(feed);
    data_set_close(set);
}

static void memory_is_taken_at_open_only(void **state)
{
    (void)state;
    data_set *const set = open_words(97, 5, 20);
    const train_feed_options o = options_of(set, DATA_SPLIT_SORTED);
    check_allocations(o);
    data_set_close(set);
}

// 2 x 3 rows of 5 words are the least for batches of 4.
static void what_cannot_be_fed_is_refused(void **state)
{
    (void)state;
    data_set *const set = open_words(30, 5, 5);
    train_feed_options o = options_of(set, DATA_SPLIT_FIXED);
    train_feed *const feed = open_feed(o);
    assert_int_equal(train_feed_steps(feed), 1);
    train_feed_close(feed);
    set->info.count[DATA_TRAIN] = 29;
    refuse(
        o, "wikitext-2: 29 words for 2 workers with batches of 3 rows of 4 "
           "words, expected at least one batch per worker: 1 worker, or "
           "--batch 2 or less");
    o.batch = 1000;
    refuse(
        o, "wikitext-2: 29 words for 2 workers with batches of 1000 rows of 4 "
           "words, expected at least one batch per worker: --batch 2 or less");
    o.batch = 1;
    o.rule.kind = DATA_SPLIT_DIRICHLET;
    refuse(
        o, "wikitext-2: a text cannot be split by dirichlet, expected shuffle, "
           "fixed or sorted");
    o.augment = true;
    refuse(
        o, "wikitext-2: has no images to crop and mirror, expected no "
           "--augment");
    o.steps = 0;
    refuse(o, "wikitext-2: batches of 0 words per row, expected at least 1");
    data_set_close(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(rows_lie_side_by_side_and_time_goes_down),
        IN_FOLDER(rows_go_on_from_batch_to_batch),
        IN_FOLDER(shuffle_hands_the_parts_on),
        IN_FOLDER(sorted_reads_by_label),
        IN_FOLDER(sorted_keeps_to_a_limit),
        IN_FOLDER(the_test_set_is_cut_into_rows),
        IN_FOLDER(workers_share_the_rows_of_a_test),
        IN_FOLDER(a_limit_keeps_whole_batches_of_words),
        IN_FOLDER(validation_stands_in_for_a_missing_test),
        IN_FOLDER(memory_is_taken_at_open_only),
        IN_FOLDER(what_cannot_be_fed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
