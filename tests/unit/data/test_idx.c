// SPDX-License-Identifier: MIT
// idx files: complete files are read, others are rejected with a message.
#include <string.h>

#include "data/idx.h"
#include "lac_test.h"

enum { CLASSES = 10 };

static uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0,
                           1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
static uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9};

static data_bytes bytes_of(uint8_t *data, size_t len)
{
    return (data_bytes){"file", data, len};
}

static void images_are_found(void **state)
{
    (void)state;
    const data_bytes bytes = bytes_of(images, sizeof(images));
    data_idx idx;
    assert_ok(data_idx_images(&bytes, &idx));
    assert_int_equal(idx.count, 2);
    assert_int_equal(idx.height, 1);
    assert_int_equal(idx.width, 3);
    assert_ptr_equal(idx.values, images + 16);
}

static void labels_are_found(void **state)
{
    (void)state;
    const data_bytes bytes = bytes_of(labels, sizeof(labels));
    data_idx idx;
    assert_ok(data_idx_labels(&bytes, CLASSES, &idx));
    assert_int_equal(idx.count, 3);
    assert_int_equal(idx.values[2], 9);
}

static void every_truncation_is_corrupt(void **state)
{
    (void)state;
    data_idx idx;
    for (size_t len = 0; len < sizeof(images); len++) {
        const data_bytes bytes = bytes_of(images, len);
        assert_status(data_idx_images(&bytes, &idx), LAC_ERR_CORRUPT);
    }
    for (size_t len = 0; len < sizeof(labels); len++) {
        const data_bytes bytes = bytes_of(labels, len);
        assert_status(data_idx_labels(&bytes, CLASSES, &idx), LAC_ERR_CORRUPT);
    }
}

static void every_altered_byte_of_the_head_is_corrupt(void **state)
{
    (void)state;
    data_idx idx;
    for (size_t i = 0; i < 16; i++) {
        images[i] ^= 0x40;
        const data_bytes bytes = bytes_of(images, sizeof(images));
        assert_status(data_idx_images(&bytes, &idx), LAC_ERR_CORRUPT);
        images[i] ^= 0x40;
    }
}

static void messages_name_what_was_found(void **state)
{
    (void)state;
    data_idx idx;
    data_bytes bytes = bytes_of(labels, sizeof(labels));
    assert_fails(
        data_idx_labels(&bytes, 9, &idx), LAC_ERR_CORRUPT,
        "file: label 2 is 9, expected 0 to 8");
    bytes.len = 7;
    assert_fails(
        data_idx_labels(&bytes, CLASSES, &idx), LAC_ERR_CORRUPT,
        "file: has 7 bytes, expected at least 8");
    bytes.len = 10;
    assert_fails(
        data_idx_labels(&bytes, CLASSES, &idx), LAC_ERR_CORRUPT,
        "file: has 2 bytes after the header, expected 3");
    bytes = bytes_of(images, sizeof(images));
    assert_fails(
        data_idx_labels(&bytes, CLASSES, &idx), LAC_ERR_CORRUPT,
        "file: begins with 0x00000803, expected 0x00000801");
}

static void huge_and_empty_images_are_refused(void **state)
{
    (void)state;
    data_idx idx;
    // The product of these sizes is 0 modulo 2^64, and 2^12 is the limit.
    uint8_t huge[16] = {0, 0, 8, 3, 255, 255, 255, 255, 0, 0, 32, 0, 0, 0, 1};
    const data_bytes bytes = bytes_of(huge, sizeof(huge));
    assert_status(data_idx_images(&bytes, &idx), LAC_ERR_CORRUPT);
    uint8_t none[16] = {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1};
    const data_bytes empty = bytes_of(none, sizeof(none));
    assert_fails(
        data_idx_images(&empty, &idx), LAC_ERR_CORRUPT,
        "file: 0 images of 1 x 1, expected at least one, with sides of 1 to "
        "4096");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_found),
        cmocka_unit_test(labels_are_found),
        cmocka_unit_test(every_truncation_is_corrupt),
        cmocka_unit_test(every_altered_byte_of_the_head_is_corrupt),
        cmocka_unit_test(messages_name_what_was_found),
        cmocka_unit_test(huge_and_empty_images_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
