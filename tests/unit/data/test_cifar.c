// SPDX-License-Identifier: MIT
// Batches of CIFAR-10: whole records, labels up to nine.
#include <stdio.h>

#include "data/cifar.h"
#include "lac_test.h"

static uint8_t batch[3 * DATA_CIFAR_RECORD];

static void records_are_counted(void **state)
{
    (void)state;
    size_t count = 0;
    batch[DATA_CIFAR_RECORD] = 9;
    batch[DATA_CIFAR_RECORD + 1] = 255;
    const data_bytes bytes = {"batch", batch, sizeof(batch)};
    assert_ok(data_cifar_check(&bytes, &count));
    assert_int_equal(count, 3);
}

static void a_part_of_a_record_is_corrupt(void **state)
{
    (void)state;
    size_t count;
    for (size_t len = 0; len < sizeof(batch); len++) {
        const data_bytes bytes = {"batch", batch, len};
        if (len == 0 || len % DATA_CIFAR_RECORD != 0) {
            assert_status(data_cifar_check(&bytes, &count), LAC_ERR_CORRUPT);
        }
    }
    const data_bytes bytes = {"batch", batch, 3072};
    assert_fails(
        data_cifar_check(&bytes, &count), LAC_ERR_CORRUPT,
        "batch: has 3072 bytes, expected a multiple of 3073 and at least one "
        "image");
}

static void labels_above_nine_are_corrupt(void **state)
{
    (void)state;
    size_t count;
    const data_bytes bytes = {"batch", batch, sizeof(batch)};
    batch[2 * DATA_CIFAR_RECORD] = 10;
    assert_fails(
        data_cifar_check(&bytes, &count), LAC_ERR_CORRUPT,
        "batch: label 2 is 10, expected 0 to 9");
    batch[2 * DATA_CIFAR_RECORD] = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_counted),
        cmocka_unit_test(a_part_of_a_record_is_corrupt),
        cmocka_unit_test(labels_above_nine_are_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
