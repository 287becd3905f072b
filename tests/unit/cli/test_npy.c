// SPDX-License-Identifier: MIT
// .npy files: what is accepted, and the message for everything else.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files/npy.h"
#include "lac_test.h"

enum { FILE_MAX = 4096 };

typedef struct file {
    uint8_t bytes[FILE_MAX];
    size_t len;
} file;

// A file of version `major` with this dictionary and `values` bytes of zeros.
static file make(unsigned major, const char *dictionary, size_t values)
{
    file f = {{0x93, 'N', 'U', 'M', 'P', 'Y', (uint8_t)major, 0}, 0};
    const size_t len = strlen(dictionary);
    const size_t offset = major == 1 ? 10 : 12;
    f.bytes[8] = (uint8_t)len;
    f.bytes[9] = (uint8_t)(len >> 8);
    memcpy(f.bytes + offset, dictionary, len);
    f.len = offset + len + values;
    return f;
}

// Parses a copy of the exact length, so that a sanitizer detects a read past
// its end.
static lac_status parse_types(const file *f, unsigned types, cli_npy *out)
{
    uint8_t *const copy = malloc(f->len == 0 ? 1 : f->len);
    assert_non_null(copy);
    memcpy(copy, f->bytes, f->len);
    const lac_status status = cli_npy_parse("x.npy", types, copy, f->len, out);
    free(copy);
    return status;
}

static lac_status parse(const file *f, cli_npy *out)
{
    return parse_types(f, CLI_NPY_F32, out);
}

#define HEADER(shape)                                                          \
    "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }"

static void assert_shape(const char *header, size_t rows, size_t cols)
{
    cli_npy npy;
    const file f = make(1, header, 4 * rows * cols);
    assert_ok(parse(&f, &npy));
    assert_int_equal(npy.shape.rows, rows);
    assert_int_equal(npy.shape.cols, cols);
    assert_int_equal(npy.offset, f.len - 4 * rows * cols);
}

static void a_tensor_is_its_first_dimension_by_the_others(void **state)
{
    (void)state;
    assert_shape(HEADER("()"), 1, 1);
    assert_shape(HEADER("(7,)"), 7, 1);
    assert_shape(HEADER("(3, 4)"), 3, 4);
    assert_shape(HEADER("(3, 4, 5)"), 3, 20);
    assert_shape(HEADER("(3,4,)"), 3, 4);
    assert_shape(HEADER("(0,)"), 0, 1);
    assert_shape(HEADER("(5, 0, 2)"), 5, 0);
    assert_shape(
        HEADER("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
               "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2)"),
        1, 2);
}

static void keys_come_in_any_order_and_quotes_of_either_kind(void **state)
{
    (void)state;
    assert_shape(
        "  {\"shape\":(2,),\"fortran_order\":False,'descr':\"<f4\"}   \n", 2,
        1);
}

static void versions_two_and_three_have_longer_lengths(void **state)
{
    (void)state;
    cli_npy npy;
    for (unsigned version = 2; version <= 3; version++) {
        const file f = make(version, HEADER("(2, 2)"), 16);
        assert_ok(parse(&f, &npy));
        assert_int_equal(npy.offset, f.len - 16);
    }
}

static void written_headers_are_read_back(void **state)
{
    (void)state;
    const cli_dimensions cases[] = {
        {0, {0}}, {1, {9}}, {2, {3, 5}}, {4, {1, 2, 0, 4}}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        file f = {{0}, 0};
        cli_npy npy;
        lac_shape shape;
        assert_ok(cli_dimensions_shape("x", &cases[i], &shape));
        const size_t offset = cli_npy_header(CLI_NPY_F32, &cases[i], f.bytes);
        assert_int_equal(offset % 64, 0);
        assert_int_equal(f.bytes[offset - 1], '\n');
        f.len = offset + 4 * shape.rows * shape.cols;
        assert_ok(parse(&f, &npy));
        assert_int_equal(npy.offset, offset);
        assert_memory_equal(&npy.dimensions, &cases[i], sizeof(npy.dimensions));
    }
}

static void the_longest_shape_fits_into_a_header(void **state)
{
    (void)state;
    uint8_t header[CLI_NPY_HEADER_MAX];
    cli_dimensions d = {.count = CLI_DIMENSIONS_MAX};
    for (size_t i = 0; i < d.count; i++) {
        d.size[i] = UINT64_MAX;
    }
    const size_t len = cli_npy_header(CLI_NPY_F32, &d, header);
    assert_true(len <= CLI_NPY_HEADER_MAX);
    assert_int_equal(header[len - 1], '\n');
}

static void assert_rejected(const file *f, const char *message)
{
    cli_npy npy = {.offset = 77};
    assert_true(parse(f, &npy) != LAC_OK);
    assert_string_equal(lac_error_message(), message);
    assert_int_equal(npy.offset, 77);
}

static void other_types_and_orders_are_named(void **state)
{
    (void)state;
    file f =
        make(1, "{'descr': '<f8', 'fortran_order': False, 'shape': ()}", 8);
    assert_rejected(&f, "x.npy: holds float64, expected float32 (<f4)");
    f = make(1, "{'descr': '>f4', 'fortran_order': False, 'shape': ()}", 4);
    assert_rejected(
        &f, "x.npy: holds big-endian float32 (>f4), expected float32 (<f4)");
    f = make(1, "{'descr': '|V7', 'fortran_order': False, 'shape': ()}", 4);
    assert_rejected(
        &f, "x.npy: holds values of type \"|V7\", expected float32 (<f4)");
    f = make(1, "{'descr': [('a', '<f4')], 'fortran_order': False}", 4);
    assert_rejected(&f, "x.npy: holds records, expected float32 (<f4)");
    f = make(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", 16);
    assert_rejected(
        &f, "x.npy: holds values in Fortran order, expected C order");
}

static void bytes_are_read_only_where_they_are_accepted(void **state)
{
    (void)state;
    const unsigned both = CLI_NPY_F32 + CLI_NPY_U8;
    static const char header[] =
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)}";
    cli_npy npy = {0};
    file f = make(1, header, 6);
    assert_ok(parse_types(&f, both, &npy));
    assert_int_equal(npy.type, CLI_NPY_U8);
    assert_int_equal(npy.offset, f.len - 6);
    assert_rejected(&f, "x.npy: holds uint8, expected float32 (<f4)");
    f = make(1, HEADER("(2, 3)"), 24);
    assert_ok(parse_types(&f, both, &npy));
    assert_int_equal(npy.type, CLI_NPY_F32);
    f = make(1, header, 24);
    assert_status(parse_types(&f, both, &npy), LAC_ERR_CORRUPT);
    assert_string_equal(
        lac_error_message(),
        "x.npy: has 24 bytes of values, expected 6 for its shape");
    f = make(1, "{'descr': '<i8', 'fortran_order': False, 'shape': ()}", 8);
    assert_status(parse_types(&f, both, &npy), LAC_ERR_UNSUPPORTED);
    assert_string_equal(
        lac_error_message(),
        "x.npy: holds int64, expected uint8 (|u1) or float32 (<f4)");
}

static void lengths_must_agree(void **state)
{
    (void)state;
    file f = make(1, HEADER("(2,)"), 7);
    assert_rejected(
        &f, "x.npy: has 7 bytes of values, expected 8 for its shape");
    f = make(1, HEADER("(2,)"), 9);
    assert_rejected(
        &f, "x.npy: has 9 bytes of values, expected 8 for its shape");
    f = make(4, HEADER("(2,)"), 8);
    assert_rejected(
        &f, "x.npy: has .npy format version 4.0, expected 1.0, 2.0 or 3.0");
    f = make(2, HEADER("(2,)"), 8);
    f.bytes[11] = 1;
    assert_rejected(
        &f, "x.npy: has a header of 16777273 bytes, expected at most 65536");
}

static void shapes_that_overflow_are_rejected(void **state)
{
    (void)state;
    file f = make(1, HEADER("(4294967296, 4294967296)"), 0);
    assert_rejected(
        &f, "x.npy: the shape has too many values, at most "
            "288230376151711743 fit");
    f = make(1, HEADER("(0, 4294967296, 4294967296)"), 0);
    assert_rejected(
        &f, "x.npy: the shape has too many values, at most "
            "288230376151711743 fit");
    f = make(1, HEADER("(18446744073709551616,)"), 0);
    assert_rejected(
        &f,
        "x.npy: the .npy header is malformed, expected dimensions below 2^64");
    f = make(
        1,
        HEADER("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
               "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"),
        4);
    assert_rejected(&f, "x.npy: has more than 32 dimensions");
}

static void malformed_dictionaries_are_rejected(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "{",
        "{}",
        "[]",
        "{'descr'",
        "{'descr':",
        "{'descr': '<f4",
        "{'descr': '<f4'}",
        HEADER("(2)"),
        HEADER("(-2,)"),
        HEADER("(2"),
        HEADER("(2,"),
        HEADER("2"),
        (HEADER("(2,)") "x"),
        HEADER("(2.0,)"),
        HEADER("(,)"),
        HEADER("(2 1)"),
        "{'shape':(2,),'fortran_order':False,'descr':'<f4','descr':'<f4'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
        "{'descr': 4, 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        cli_npy npy;
        const file f = make(1, texts[i], 8);
        assert_status(parse(&f, &npy), LAC_ERR_CORRUPT);
        assert_non_null(strstr(lac_error_message(), "x.npy: the .npy header"));
    }
}

static void every_truncation_is_rejected(void **state)
{
    (void)state;
    file f = make(1, HEADER("(2, 2)"), 16);
    cli_npy npy;
    assert_ok(parse(&f, &npy));
    while (f.len-- > 0) {
        assert_true(parse(&f, &npy) != LAC_OK);
    }
}

// The parser never reads past the end of the file, whatever it accepts.
static void no_altered_byte_causes_a_read_past_the_end(void **state)
{
    (void)state;
    file f = make(2, HEADER("(2, 2)"), 16);
    for (size_t i = 0; i < f.len; i++) {
        const uint8_t was = f.bytes[i];
        for (unsigned value = 0; value < 256; value++) {
            cli_npy npy;
            f.bytes[i] = (uint8_t)value;
            if (parse(&f, &npy) == LAC_OK) {
                assert_int_equal(
                    npy.offset + 4 * npy.shape.rows * npy.shape.cols, f.len);
            }
        }
        f.bytes[i] = was;
    }
}

static void long_shapes_are_truncated_as_text(void **state)
{
    (void)state;
    char text[CLI_DIMENSIONS_SIZE];
    const cli_dimensions few = {3, {2, 30, 4}};
    assert_string_equal(cli_dimensions_text(&few, text), "2 x 30 x 4");
    cli_dimensions many = {CLI_DIMENSIONS_MAX, {100, 100}};
    assert_string_equal(
        cli_dimensions_text(&many, text) + CLI_DIMENSIONS_SIZE - 4, "...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_is_its_first_dimension_by_the_others),
        cmocka_unit_test(keys_come_in_any_order_and_quotes_of_either_kind),
        cmocka_unit_test(versions_two_and_three_have_longer_lengths),
        cmocka_unit_test(written_headers_are_read_back),
        cmocka_unit_test(the_longest_shape_fits_into_a_header),
        cmocka_unit_test(other_types_and_orders_are_named),
        cmocka_unit_test(bytes_are_read_only_where_they_are_accepted),
        cmocka_unit_test(lengths_must_agree),
        cmocka_unit_test(shapes_that_overflow_are_rejected),
        cmocka_unit_test(malformed_dictionaries_are_rejected),
        cmocka_unit_test(every_truncation_is_rejected),
        cmocka_unit_test(no_altered_byte_causes_a_read_past_the_end),
        cmocka_unit_test(long_shapes_are_truncated_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
