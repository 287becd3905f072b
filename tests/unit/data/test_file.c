// SPDX-License-Identifier: MIT
// Bytes in memory, gzipped or not.
#include <string.h>

#include <zlib.h>

#include "data/file.h"
#include "lac_test.h"

enum { LEN = 300000, MOST = 1 << 20 };

static uint8_t plain[LEN];

static int make_plain(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < LEN; i++) {
        plain[i] = (uint8_t)(i * i >> 9);
    }
    return 0;
}

static data_bytes gzipped(size_t len)
{
    data_bytes bytes = {"file", malloc(LEN + 4096), 0};
    z_stream z = {
        .next_in = plain,
        .avail_in = (uInt)len,
        .next_out = bytes.data,
        .avail_out = LEN + 4096};
    assert_int_equal(
        deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    bytes.len = z.total_out;
    assert_int_equal(deflateEnd(&z), Z_OK);
    return bytes;
}

static void gzipped_bytes_are_unpacked(void **state)
{
    (void)state;
    for (size_t len = 0; len <= LEN; len = 3 * len + 1) {
        data_bytes bytes = gzipped(len);
        assert_ok(data_gunzip(&bytes, MOST));
        assert_int_equal(bytes.len, len);
        assert_memory_equal(bytes.data, plain, len);
        data_bytes_free(&bytes);
    }
}

static void plain_bytes_stay(void **state)
{
    (void)state;
    data_bytes bytes = {"file", plain, LEN};
    assert_ok(data_gunzip(&bytes, 1));
    assert_ptr_equal(bytes.data, plain);
    assert_int_equal(bytes.len, LEN);
}

static void truncations_and_additions_are_corrupt(void **state)
{
    (void)state;
    data_bytes bytes = gzipped(1000);
    const size_t len = bytes.len;
    for (bytes.len = 2; bytes.len < len; bytes.len++) {
        assert_status(data_gunzip(&bytes, MOST), LAC_ERR_CORRUPT);
    }
    bytes.data[len] = 0;
    bytes.len = len + 1;
    assert_status(data_gunzip(&bytes, MOST), LAC_ERR_CORRUPT);
    bytes.len = len;
    bytes.data[len - 6] ^= 1; // of the checksum
    assert_status(data_gunzip(&bytes, MOST), LAC_ERR_CORRUPT);
    data_bytes_free(&bytes);
}

static void more_than_allowed_is_refused(void **state)
{
    (void)state;
    data_bytes bytes = gzipped(1000);
    assert_fails(
        data_gunzip(&bytes, 999), LAC_ERR_CORRUPT,
        "file: has more than 999 bytes when unpacked, expected no more");
    assert_ok(data_gunzip(&bytes, 1000));
    data_bytes_free(&bytes);
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    data_bytes bytes;
    assert_fails(
        data_file_read("/nowhere/x", &bytes), LAC_ERR_INVALID,
        "/nowhere/x: cannot open: No such file or directory");
    assert_null(bytes.data);
    assert_status(data_file_read("/", &bytes), LAC_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gzipped_bytes_are_unpacked),
        cmocka_unit_test(plain_bytes_stay),
        cmocka_unit_test(truncations_and_additions_are_corrupt),
        cmocka_unit_test(more_than_allowed_is_refused),
        cmocka_unit_test(a_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, make_plain, NULL);
}
