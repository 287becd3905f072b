// SPDX-License-Identifier: MIT
// SHA-256 against the examples of FIPS 180-4 and against other programs.
#include <string.h>

#include "data/sha256.h"
#include "lac_test.h"

static void assert_sum(const void *data, size_t len, const char *expected)
{
    char found[DATA_SHA256_SIZE];
    data_sha256(data, len, found);
    assert_string_equal(found, expected);
}

static void known_sums_are_given(void **state)
{
    (void)state;
    assert_sum(
        NULL, 0,
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_sum(
        "abc", 3,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    // 56 bytes: the length needs a second block.
    assert_sum(
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *const many = malloc(1000000);
    memset(many, 'a', 1000000);
    assert_sum(
        many, 1000000,
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(many);
}

static void another_sum_is_corrupt(void **state)
{
    (void)state;
    uint8_t byte = 'x';
    const data_bytes bytes = {"file", &byte, 1};
    assert_fails(
        data_sha256_check(&bytes, "00"), LAC_ERR_CORRUPT,
        "file: sha256 is "
        "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881, "
        "expected 00");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_sums_are_given),
        cmocka_unit_test(another_sum_is_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
