// SPDX-License-Identifier: MIT
// Data sets by name, from folders that the tests make.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/cifar.h"
#include "data/set.h"
#include "data/source.h"
#include "folder.h"
#include "lac_test.h"

static lac_status open_set(const char *name, size_t limit, data_set **out)
{
    const data_options o = {.name = name, .folder = ".", .limit = limit};
    return data_set_open(out, &o);
}

static void write_digits(uint8_t test_images)
{
    const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2,   0,  0,
                              0, 1, 0, 0, 0, 2, 0, 255, 51, 102};
    const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 3, 9};
    const uint8_t tests[] = {0, 0, 8, 3, 0, 0, 0, test_images, 0,
                             0, 0, 1, 0, 0, 0, 2, 1,           2};
    const uint8_t one[] = {0, 0, 8, 1, 0, 0, 0, 1, 5};
    put_file("train-images-idx3-ubyte", images, sizeof(images));
    put_file("train-labels-idx1-ubyte", labels, sizeof(labels));
    put_file("t10k-images-idx3-ubyte", tests, sizeof(tests));
    put_file("t10k-labels-idx1-ubyte", one, sizeof(one));
}

static void images_are_normalised(void **state)
{
    (void)state;
    data_set *set = NULL;
    float x[2];
    write_digits(1);
    assert_ok(open_set("mnist", 0, &set));
    const data_info *const info = data_set_info(set);
    assert_int_equal(info->kind, DATA_IMAGES);
    assert_int_equal(info->count[DATA_TRAIN], 2);
    assert_int_equal(info->count[DATA_TEST], 1);
    assert_int_equal(info->channels * info->height * info->width, 2);
    assert_int_equal(info->classes, 10);
    data_set_copy(set, DATA_TRAIN, 0, x);
    assert_true(x[0] == (float)((0 - 0.1307) / 0.3081));
    assert_true(x[0] == info->blank[0]);
    assert_true(x[1] == (float)((1 - 0.1307) / 0.3081));
    data_set_copy(set, DATA_TRAIN, 1, x);
    assert_true(x[1] == (float)((102 / 255.0 - 0.1307) / 0.3081));
    assert_int_equal(data_set_labels(set, DATA_TRAIN)[1], 9);
    assert_int_equal(data_set_labels(set, DATA_TEST)[0], 5);
    data_set_close(set);
}

static void the_limit_is_of_training_examples(void **state)
{
    (void)state;
    data_set *set = NULL;
    write_digits(1);
    assert_ok(open_set("mnist", 1, &set));
    assert_int_equal(data_set_info(set)->count[DATA_TRAIN], 1);
    data_set_close(set);
    assert_ok(open_set("mnist", 9, &set));
    assert_int_equal(data_set_info(set)->count[DATA_TRAIN], 2);
    data_set_close(set);
}

static void a_damaged_file_is_named(void **state)
{
    (void)state;
    data_set *set = NULL;
    write_digits(2);
    assert_fails(
        open_set("mnist", 0, &set), LAC_ERR_CORRUPT,
        "./t10k-images-idx3-ubyte: has 2 bytes after the header, expected 4");
    assert_null(set);
    write_digits(1);
    const uint8_t none[] = {0, 0, 8, 1, 0, 0, 0, 0};
    put_file("t10k-labels-idx1-ubyte", none, sizeof(none));
    assert_fails(
        open_set("mnist", 0, &set), LAC_ERR_CORRUPT,
        "./t10k-images-idx3-ubyte: 1 images, expected 0, the number of labels");
}

static void batches_follow_each_other(void **state)
{
    (void)state;
    static uint8_t record[DATA_CIFAR_RECORD];
    static float x[DATA_CIFAR_PIXELS];
    data_set *set = NULL;
    for (int i = 0; i < DATA_CIFAR_FILES; i++) {
        char name[32];
        (void)snprintf(
            name, sizeof(name), "%s.bin", data_cifar_name((size_t)i));
        memset(record, 10 * i, sizeof(record));
        record[0] = (uint8_t)i;
        record[DATA_CIFAR_RECORD - 1] = 255;
        put_file(name, record, sizeof(record));
    }
    assert_ok(open_set("cifar-10", 0, &set));
    assert_int_equal(data_set_info(set)->count[DATA_TRAIN], 5);
    assert_int_equal(data_set_info(set)->count[DATA_TEST], 1);
    assert_int_equal(data_set_labels(set, DATA_TRAIN)[4], 4);
    data_set_copy(set, DATA_TRAIN, 3, x);
    assert_true(x[0] == (float)((30 / 255.0 - 0.4914) / 0.2470));
    assert_true(x[1024] == (float)((30 / 255.0 - 0.4822) / 0.2435));
    assert_true(x[2048] == (float)((30 / 255.0 - 0.4465) / 0.2616));
    assert_true(x[3071] == (float)((1 - 0.4465) / 0.2616));
    data_set_close(set);
}

static void tables_have_classes_and_zeros(void **state)
{
    (void)state;
    data_set *set = NULL;
    float x[4];
    put_text("a9a", "-1 2:1\n+1 1:3 3:4\n");
    put_text("a9a.t", "+1 4:2\n");
    assert_ok(open_set("a9a", 0, &set));
    assert_int_equal(data_set_info(set)->width, 4);
    assert_int_equal(data_set_info(set)->classes, 2);
    const uint32_t labels[] = {0, 1};
    assert_memory_equal(
        data_set_labels(set, DATA_TRAIN), labels, sizeof(labels));
    const float row[] = {3, 0, 4, 0};
    data_set_copy(set, DATA_TRAIN, 1, x);
    assert_memory_equal(x, row, sizeof(row));
    data_set_close(set);
    put_text("a9a.t", "2 4:2\n");
    assert_fails(
        open_set("a9a", 0, &set), LAC_ERR_CORRUPT,
        "./a9a.t: example 1 has label 2, expected one of the training file");
}

static void a_text_has_its_own_parts(void **state)
{
    (void)state;
    data_set *set = NULL;
    put_text("wiki.train.tokens", " a b a\n\n");
    put_text("wiki.valid.tokens", "b\n");
    put_text("test.txt", "c a");
    assert_ok(open_set("wikitext-2", 0, &set));
    const data_info *const info = data_set_info(set);
    assert_int_equal(info->count[DATA_TRAIN], 5);
    assert_int_equal(info->count[DATA_VALID], 2);
    assert_int_equal(info->count[DATA_TEST], 3);
    assert_int_equal(info->classes, 4);
    const uint32_t *const tokens = data_set_tokens(set, DATA_TEST);
    assert_string_equal(
        data_vocabulary_word(&set->vocabulary, tokens[0]), "<unk>");
    assert_string_equal(data_vocabulary_word(&set->vocabulary, tokens[1]), "a");
    assert_null(data_set_labels(set, DATA_TRAIN));
    data_set_close(set);
}

static void a_folder_of_texts_is_parted(void **state)
{
    (void)state;
    data_set *set = NULL;
    for (int i = 0; i < 10; i++) {
        char name[32];
        (void)snprintf(
            name, sizeof(name), "%d_%s.txt", 1790 + i, i < 3 ? "x" : "y");
        put_text(name, i == 9 ? "rare\n" : "word word\n");
    }
    assert_ok(open_set("sotu", 0, &set));
    const data_info *const info = data_set_info(set);
    assert_int_equal(info->count[DATA_TRAIN], 24);
    assert_int_equal(info->count[DATA_VALID], 3);
    assert_int_equal(info->count[DATA_TEST], 2);
    size_t count;
    const data_document *const documents = data_set_documents(set, &count);
    assert_int_equal(count, 10);
    assert_int_equal(documents[2].label, 0);
    assert_int_equal(documents[3].label, 1);
    assert_int_equal(documents[3].start, 9);
    assert_int_equal(documents[9].part, DATA_TEST);
    assert_int_equal(documents[9].label, 1);
    data_set_close(set);
}

static void missing_files_are_reported(void **state)
{
    (void)state;
    data_set *set = NULL;
    assert_fails(
        open_set("emnist", 0, &set), LAC_ERR_NOTFOUND,
        "no data set is named \"emnist\"; `laconic list` shows those there "
        "are");
    assert_fails(
        open_set("cifar-10", 0, &set), LAC_ERR_INVALID,
        "cifar-10: not found in ., expected a folder with "
        "data_batch_1.bin to data_batch_5.bin and test_batch.bin");
    const data_options mnist = {.name = "mnist", .cache = folder};
    assert_fails(
        data_set_open(&set, &mnist), LAC_ERR_INVALID,
        "mnist: not on this machine; `laconic data fetch mnist` downloads it");
    const data_options a9a = {.name = "a9a"};
    assert_fails(
        data_set_open(&set, &a9a), LAC_ERR_INVALID,
        "a9a: not on this machine and not in a package; download it and "
        "pass "
        "--data-dir with a folder with a9a and a9a.t in the format of LIBSVM");
}

// 60,000 normalised images have mean 0 and variance 1, as far as the four
// digits of the constants go: 0.00005 / 0.353 and 2 * 0.00005 / 0.353.
static void fashion_is_whole_and_balanced(void **state)
{
    (void)state;
    data_set *set = NULL;
    const data_options o = {.name = "fashion-mnist"};
    if (data_set_open(&set, &o) == LAC_ERR_INVALID) {
        print_message(
            "no dataset-fashion-mnist here: %s\n", lac_error_message());
        skip();
    }
    assert_non_null(set);
    const data_info *const info = data_set_info(set);
    const size_t pixels = (size_t)info->height * info->width;
    assert_int_equal(info->count[DATA_TRAIN], 60000);
    assert_int_equal(info->count[DATA_TEST], 10000);
    assert_int_equal(pixels, 784);
    size_t counts[2][10] = {{0}};
    double sum = 0, squares = 0;
    float x[784];
    for (size_t i = 0; i < 60000; i++) {
        counts[0][data_set_labels(set, DATA_TRAIN)[i]]++;
        data_set_copy(set, DATA_TRAIN, i, x);
        for (size_t k = 0; k < pixels; k++) {
            sum += (double)x[k];
            squares += (double)x[k] * (double)x[k];
        }
    }
    for (size_t i = 0; i < 10000; i++) {
        counts[1][data_set_labels(set, DATA_TEST)[i]]++;
    }
    for (int c = 0; c < 10; c++) {
        assert_int_equal(counts[0][c], 6000);
        assert_int_equal(counts[1][c], 1000);
    }
    assert_true(fabs(sum / (60000.0 * 784)) < 2e-4);
    assert_true(fabs(squares / (60000.0 * 784) - 1) < 4e-4);
    data_set_close(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(images_are_normalised),
        IN_FOLDER(the_limit_is_of_training_examples),
        IN_FOLDER(a_damaged_file_is_named),
        IN_FOLDER(batches_follow_each_other),
        IN_FOLDER(tables_have_classes_and_zeros),
        IN_FOLDER(a_text_has_its_own_parts),
        IN_FOLDER(a_folder_of_texts_is_parted),
        IN_FOLDER(missing_files_are_reported),
        IN_FOLDER(fashion_is_whole_and_balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
