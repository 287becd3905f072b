// SPDX-License-Identifier: MIT
// Equal data have equal hashes, and any difference that a run would read
// changes the hash.
#include "train/data_hash.h"

#include "feed_test.h"

static uint64_t hash_and_close(data_set *set)
{
    uint64_t hash = 0;
    assert_ok(train_data_hash(set, &hash));
    data_set_close(set);
    return hash;
}

static void every_array_of_images_counts(void **state)
{
    (void)state;
    const uint64_t hash = hash_and_close(open_images());
    assert_true(hash_and_close(open_images()) == hash);
    assert_true(hash_and_close(open_set("mnist", TRAIN)) == hash);
    assert_true(hash_and_close(open_set("mnist", TRAIN - 1)) != hash);
    for (int part = 0; part < DATA_PARTS; part += DATA_TEST) {
        data_set *set = open_images();
        set->parts[part].pixels[set->info.count[part] * PIXELS - 1] ^= 1;
        assert_true(hash_and_close(set) != hash);
        set = open_images();
        set->parts[part].labels[0] ^= 1;
        assert_true(hash_and_close(set) != hash);
    }
    data_set *const set = open_images();
    set->info.width = HEIGHT;
    set->info.height = WIDTH;
    assert_true(hash_and_close(set) != hash);
}

static void examples_beyond_the_limit_do_not_count(void **state)
{
    (void)state;
    data_set_close(open_images());
    data_set *const set = open_set("mnist", 2);
    const uint64_t hash = hash_and_close(open_set("mnist", 2));
    set->parts[DATA_TRAIN].pixels[2 * PIXELS] ^= 1;
    set->parts[DATA_TRAIN].labels[2] ^= 1;
    assert_true(hash_and_close(set) == hash);
}

static void every_array_of_a_table_counts(void **state)
{
    (void)state;
    const uint64_t hash = hash_and_close(open_table());
    assert_true(hash_and_close(open_table()) == hash);
    data_set *set = open_table();
    set->parts[DATA_TRAIN].table.value[4] += 1;
    assert_true(hash_and_close(set) != hash);
    set = open_table();
    set->parts[DATA_TEST].table.column[0]--;
    assert_true(hash_and_close(set) != hash);
    set = open_table();
    set->parts[DATA_TRAIN].table.start[1]++;
    assert_true(hash_and_close(set) != hash);
    assert_true(hash_and_close(open_set("a9a", 1)) != hash);
}

static data_set *open_text(void)
{
    put_text("train.txt", "a b c a b\n");
    put_text("valid.txt", "a b\n");
    put_text("test.txt", "c\n");
    return open_set("wikitext-2", 0);
}

static void words_and_documents_of_a_text_count(void **state)
{
    (void)state;
    const uint64_t hash = hash_and_close(open_text());
    assert_true(hash_and_close(open_text()) == hash);
    for (int part = 0; part < DATA_PARTS; part++) {
        data_set *const set = open_text();
        set->parts[part].tokens[0]++;
        assert_true(hash_and_close(set) != hash);
    }
    data_set *const set = open_text();
    if (set->document_count > 0) {
        set->documents[0].label++;
        assert_true(hash_and_close(set) != hash);
        return;
    }
    data_set_close(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_array_of_images_counts),
        IN_FOLDER(examples_beyond_the_limit_do_not_count),
        IN_FOLDER(every_array_of_a_table_counts),
        IN_FOLDER(words_and_documents_of_a_text_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
