// SPDX-License-Identifier: MIT
// .lac files: whole files are read back, and everything else is rejected.
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "cli/files/lac_file.h"
#include "lac_test.h"

enum { FILE_MAX = 2048, VALUES = 6 };

typedef struct file {
    uint8_t bytes[FILE_MAX];
    size_t len;
} file;

static const float values[VALUES] = {1, -2, 3.5f, 0, 1e-20f, -7};

// A file of 3 x 2 values through identity.
static file make(void)
{
    file f = {{0}, 0};
    cli_lac lac = {
        .form = LAC_FORM_UNBIASED,
        .key = cli_lac_key(1),
        .dimensions = {2, {3, 2}},
        .spec = "identity",
        .spec_len = strlen("identity"),
    };
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, "identity", LAC_FORM_UNBIASED));
    lac.wire_id = lac_compressor_wire_id(c);
    assert_ok(lac_compressor_encode(
        c, &lac.key, (lac_shape){3, 2}, values,
        f.bytes + cli_lac_payload_offset(&lac), sizeof(values),
        &lac.payload_len));
    f.len = cli_lac_finish(&lac, f.bytes);
    lac_compressor_close(c);
    return f;
}

// Changes a number and corrects the checksum, as an attacker would.
static void forge(file *f, size_t at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        f->bytes[at + i] = (uint8_t)(value >> 8 * i);
    }
    const uint64_t sum = XXH3_64bits(f->bytes, f->len - 8);
    for (size_t i = 0; i < 8; i++) {
        f->bytes[f->len - 8 + i] = (uint8_t)(sum >> 8 * i);
    }
}

// Parses and opens a copy of the exact length, so that a sanitizer detects a
// read past its end.
static lac_status parse(const file *f)
{
    cli_lac lac;
    lac_compressor *c = NULL;
    uint8_t *const copy = malloc(f->len == 0 ? 1 : f->len);
    assert_non_null(copy);
    memcpy(copy, f->bytes, f->len);
    lac_status status = cli_lac_parse("x.lac", copy, f->len, &lac);
    if (status == LAC_OK) {
        status = cli_lac_open("x.lac", &lac, &c);
    }
    lac_compressor_close(c);
    free(copy);
    return status;
}

static void a_file_is_read_back_unchanged(void **state)
{
    (void)state;
    const file f = make();
    const lac_key key = cli_lac_key(1);
    float x[VALUES];
    cli_lac lac;
    lac_compressor *c;
    assert_ok(cli_lac_parse("x.lac", f.bytes, f.len, &lac));
    assert_int_equal(lac.form, LAC_FORM_UNBIASED);
    assert_int_equal(lac.dimensions.count, 2);
    assert_int_equal(lac.shape.rows, 3);
    assert_int_equal(lac.shape.cols, 2);
    assert_true(lac.key.low == key.low && lac.key.high == key.high);
    assert_int_equal(lac.key.scope, LAC_SCOPE_SHARED);
    assert_int_equal(lac.spec_len, strlen("identity"));
    assert_memory_equal(lac.spec, "identity", lac.spec_len);
    assert_ok(cli_lac_open("x.lac", &lac, &c));
    assert_ok(lac_compressor_decode(
        c, &lac.key, lac.shape, lac.payload, lac.payload_len, x));
    assert_memory_equal(x, values, sizeof(values));
    lac_compressor_close(c);
}

// Other decoders rely on the layout.
static void the_layout_is_the_documented_one(void **state)
{
    (void)state;
    static const uint8_t start[] = {0x89, 'L', 'A', 'C', 'O', 'N', 'I', 'C',
                                    1,    0,   0,   0,   80,  0,   0,   0,
                                    1,    0,   0,   0,   1,   0,   0,   0};
    static const uint8_t middle[] = {
        24, 0, 0,   0,   0,   0,   0,   0,   2,   0,   0, 0, 8,    0,   0,
        0,  3, 0,   0,   0,   0,   0,   0,   0,   2,   0, 0, 0,    0,   0,
        0,  0, 'i', 'd', 'e', 'n', 't', 'i', 't', 'y', 0, 0, 0x80, 0x3f};
    const file f = make();
    assert_int_equal(f.len, 80 + 24 + 8);
    assert_memory_equal(f.bytes, start, sizeof(start));
    assert_memory_equal(f.bytes + 40, middle, sizeof(middle));
}

static void every_altered_byte_is_detected(void **state)
{
    (void)state;
    file f = make();
    assert_ok(parse(&f));
    for (size_t i = 0; i < f.len; i++) {
        for (unsigned flip = 1; flip < 256; flip++) {
            f.bytes[i] ^= (uint8_t)flip;
            assert_true(parse(&f) != LAC_OK);
            f.bytes[i] ^= (uint8_t)flip;
        }
    }
    assert_ok(parse(&f));
}

static void every_truncation_and_extension_is_detected(void **state)
{
    (void)state;
    file f = make();
    const size_t whole = f.len;
    for (f.len = 0; f.len < whole + 100; f.len++) {
        assert_true((parse(&f) == LAC_OK) == (f.len == whole));
    }
}

static void assert_forged(
    size_t at, uint64_t value, size_t bytes, const char *message)
{
    file f = make();
    forge(&f, at, value, bytes);
    assert_true(parse(&f) != LAC_OK);
    assert_string_equal(lac_error_message(), message);
}

static void a_wrong_field_with_a_correct_checksum_is_rejected(void **state)
{
    (void)state;
    assert_forged(8, 2, 4, "x.lac: has .lac version 2, expected 1");
    assert_forged(
        16, 9, 4, "x.lac: has payload format 9, but \"identity\" has format 1");
    assert_forged(20, 3, 4, "x.lac: has form 3, expected 0, 1 or 2");
    assert_forged(48, 33, 4, "x.lac: has 33 dimensions, expected at most 32");
    assert_forged(48, 1, 4, "x.lac: has a header of 80 bytes, expected 72");
    assert_forged(52, 7, 4, "x.lac: has a header of 80 bytes, expected 79");
    assert_forged(
        72, 'x', 1,
        "x.lac: no compressor is named \"xdentity\"; `laconic list` shows "
        "those there are");
    assert_forged(
        73, 0, 1,
        "x.lac: byte 1 of its spec is 0x00, expected printable ASCII");
    assert_forged(
        12, 0x7fffffff, 4,
        "x.lac: has 112 bytes, which contradicts its header; it is truncated "
        "or altered");
}

// Nothing is allocated for values that the payload cannot hold.
static void a_small_file_cannot_claim_many_values(void **state)
{
    (void)state;
    assert_forged(
        56, (uint64_t)1 << 40, 8,
        "x.lac: identity: payload has 24 bytes, expected 8796093022208");
    assert_forged(
        56, UINT64_MAX, 8,
        "x.lac: the shape has too many values, at most 288230376151711743 fit");
    assert_forged(
        56, 1, 8, "x.lac: identity: payload has 24 bytes, expected 8");
    assert_forged(
        56, 0, 8,
        "x.lac: identity: payload of a tensor without values has 24 bytes, "
        "expected 0");
}

static void different_seeds_make_different_keys(void **state)
{
    (void)state;
    assert_true(cli_lac_key(1).low != cli_lac_key(2).low);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_back_unchanged),
        cmocka_unit_test(the_layout_is_the_documented_one),
        cmocka_unit_test(every_altered_byte_is_detected),
        cmocka_unit_test(every_truncation_and_extension_is_detected),
        cmocka_unit_test(a_wrong_field_with_a_correct_checksum_is_rejected),
        cmocka_unit_test(a_small_file_cannot_claim_many_values),
        cmocka_unit_test(different_seeds_make_different_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
