// SPDX-License-Identifier: MIT
// Forged headers with a valid checksum: the message names the problem, and
// nothing is written.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "folder.h"
#include "lac_test.h"
#include "tensors.h"
#include "train/safetensors_file.h"

// Makes a file of a header, spaces and zeros for values, and replaces the
// sixteen zeros by a valid checksum.
static void put_header(const char *header, size_t values)
{
    uint8_t file[4096] = {0};
    char digits[17];
    const size_t len = strlen(header);
    file[0] = (uint8_t)len;
    file[1] = (uint8_t)(len >> 8);
    memcpy(file + 8, header, len);
    (void)snprintf(
        digits, sizeof(digits), "%016" PRIx64,
        XXH3_64bits(file, 8 + len + values));
    memcpy(file + TRAIN_DIGITS_AT, digits, 16);
    put_file("file", file, 8 + len + values);
}

#define META                                                                   \
    "{\"__metadata__\":{\"checksum\":\"0000000000000000\",\"format\":\"pt\","  \
    "\"laconic\":\"1\""
#define X "\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
#define Y(offsets)                                                             \
    "\"y\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":" offsets "}"
#define GOOD META ",\"n\":\"5\"}," X "," Y("[8,11]")

typedef struct hostile {
    const char *header;
    lac_status status;
    const char *message;
} hostile;

// All of these have a valid checksum.
static const hostile hostiles[] = {
    {META "}," X "," Y("[8,11]") "}", LAC_ERR_INVALID,
     "file: has no number 'n'"},
    {META ",\"n\":\"5\",\"m\":\"5\"}," X "," Y("[8,11]") "}", LAC_ERR_INVALID,
     "file: has 5 metadata entries, expected 4"},
    {META ",\"n\":\"05\"}," X "," Y("[8,11]") "}", LAC_ERR_CORRUPT,
     "file: 'n' is '05', expected a whole number"},
    {META ",\"n\":\"18446744073709551616\"}," X "," Y("[8,11]") "}",
     LAC_ERR_CORRUPT,
     "file: 'n' is '18446744073709551616', expected a whole number"},
    {META ",\"n\":5}," X "," Y("[8,11]") "}", LAC_ERR_CORRUPT,
     "file: 'n' is '', expected a whole number"},
    {META ",\"n\":\"5\"}," X "}", LAC_ERR_INVALID, "file: has no tensor 'y'"},
    {GOOD ",\"z\":{}}", LAC_ERR_INVALID, "file: has an unexpected tensor 'z'"},
    {GOOD ",\"\\u001b[2J\":{}}", LAC_ERR_INVALID,
     "file: has an unexpected tensor '?[2J'"},
    {GOOD "," X "}", LAC_ERR_CORRUPT,
     "file: has two tensors 'x', expected one"},
    {META ",\"n\":\"5\"},\"x\":7}", LAC_ERR_CORRUPT,
     "file: tensor 'x' has no dtype, shape or data_offsets"},
    {META ",\"n\":\"5\"},\"x\":{\"dtype\":\"F64\",\"shape\":[2],"
          "\"data_offsets\":[0,8]}}",
     LAC_ERR_INVALID, "file: tensor 'x' has dtype 'F64', expected 'F32'"},
    {META ",\"n\":\"5\"},\"x\":{\"dtype\":\"F32\",\"shape\":[1,2],"
          "\"data_offsets\":[0,8]}}",
     LAC_ERR_INVALID, "file: the shape of tensor 'x' is 1 x 2, expected 2"},
    {META ",\"n\":\"5\"},\"x\":{\"dtype\":\"F32\",\"shape\":[],"
          "\"data_offsets\":[0,8]}}",
     LAC_ERR_INVALID, "file: the shape of tensor 'x' is scalar, expected 2"},
    {META ",\"n\":\"5\"},\"x\":{\"dtype\":\"F32\",\"shape\":[1e300,-3,\"a\"],"
          "\"data_offsets\":[0,8]}}",
     LAC_ERR_INVALID,
     "file: the shape of tensor 'x' is 1e+300 x -3 x 0, expected 2"},
    {META ",\"n\":\"5\"}," X "," Y("[9,12]") "}", LAC_ERR_CORRUPT,
     "file: tensor 'y' has other data_offsets, expected 3 bytes at 8"},
    {META ",\"n\":\"5\"}," X "," Y("[0,3]") "}", LAC_ERR_CORRUPT,
     "file: tensor 'y' has other data_offsets, expected 3 bytes at 8"},
    {META ",\"n\":\"5\"}," X "," Y("[8,12]") "}", LAC_ERR_CORRUPT,
     "file: tensor 'y' has other data_offsets, expected 3 bytes at 8"},
    {META ",\"n\":\"5\"}," X "," Y("[8]") "}", LAC_ERR_CORRUPT,
     "file: tensor 'y' has other data_offsets, expected 3 bytes at 8"},
    {META ",\"n\":\"5\"}," X "," Y("[8,11,11]") "}", LAC_ERR_CORRUPT,
     "file: tensor 'y' has other data_offsets, expected 3 bytes at 8"},
    {META ",\"n\":\"5\"}," X "," Y("[-1e999,11]") "}", LAC_ERR_CORRUPT,
     "file: tensor 'y' has other data_offsets, expected 3 bytes at 8"},
    {GOOD "", LAC_ERR_CORRUPT, "file: the header is not JSON"},
    {GOOD "}}", LAC_ERR_CORRUPT, "file: the header is not JSON"},
    {"{\"__metadata__\":{\"checksum\":\"0000000000000000\"}}", LAC_ERR_CORRUPT,
     "file: has no format version"},
    {"{\"__metadata__\":{\"checksum\":\"0000000000000000\",\"laconic\":\"2\"}}",
     LAC_ERR_INVALID, "file: has format version '2', expected '1'"},
    {"{\"__metadata__\":{\"format\":\"pt\"}," X "," Y("[8,11]") "}",
     LAC_ERR_INVALID,
     "file: has no checksum, expected a file written by laconic"},
};

static void what_is_not_as_expected_is_named(void **state)
{
    (void)state;
    float x[2] = {1, 2};
    uint8_t y[3] = {3, 4, 5};
    uint64_t n = 6;
    const train_tensor t[] = {
        {NULL, "x", TRAIN_F32, {2}, 1, x},
        {NULL, "y", TRAIN_U8, {3}, 1, y},
    };
    const train_number number = {"n", &n, false};
    const train_record record = {
        .tensors = t, .tensor_count = 2, .numbers = &number, .number_count = 1};
    for (size_t i = 0; i < sizeof(hostiles) / sizeof(hostiles[0]); i++) {
        const hostile *const h = &hostiles[i];
        put_header(h->header, 11);
        assert_fails(read_record("file", &record), h->status, h->message);
        assert_true(x[0] + x[1] == 3 && y[0] == 3 && y[2] == 5 && n == 6);
    }
    put_header(GOOD "}", 10);
    assert_fails(
        read_record("file", &record), LAC_ERR_CORRUPT,
        "file: tensor 'y' has other data_offsets, expected 3 bytes at 8");
    put_header(GOOD "}", 12);
    assert_fails(
        read_record("file", &record), LAC_ERR_CORRUPT,
        "file: has 12 bytes of values, expected 11");
    assert_true(x[0] + x[1] == 3 && y[0] == 3 && y[2] == 5 && n == 6);
    put_header(GOOD "}", 11);
    assert_ok(read_record("file", &record));
    assert_true(x[0] + x[1] == 0 && y[0] == 0 && y[2] == 0 && n == 5);
    assert_int_equal(empty_folder(), 1);
}

static void a_header_of_any_depth_is_refused(void **state)
{
    (void)state;
    enum { DEPTH = 3000 };
    char header[sizeof(META) + DEPTH];
    sample out;
    sample_clear(&out);
    (void)snprintf(header, sizeof(header), "%s", META);
    memset(header + strlen(META), '[', DEPTH);
    header[strlen(META)] = ',';
    header[sizeof(META) - 1 + DEPTH] = '\0';
    put_header(header, 0);
    assert_fails(
        read_record("file", &out.record), LAC_ERR_CORRUPT,
        "file: the header is not JSON");
    assert_int_equal(empty_folder(), 1);
}

static void a_header_longer_than_the_file_is_refused(void **state)
{
    (void)state;
    sample out;
    sample_clear(&out);
    uint8_t file[64];
    memset(file, 0xff, sizeof(file));
    put_file("file", file, sizeof(file));
    assert_fails(
        read_record("file", &out.record), LAC_ERR_CORRUPT,
        "file: the header has 18446744073709551615 bytes, expected at most "
        "16777216 and no more than the file");
    assert_int_equal(empty_folder(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_as_expected_is_named),
        cmocka_unit_test(a_header_of_any_depth_is_refused),
        cmocka_unit_test(a_header_longer_than_the_file_is_refused),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
