// SPDX-License-Identifier: MIT
// .lac files: they come back as they were made, and nothing else is accepted.
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

// Puts a number in place and makes the checksum right again: what somebody
// would do who wants to be believed.
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

// Parses a copy that ends where the file ends, so that a sanitizer sees any
// byte read beyond it; and opens what was parsed.
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

static void a_file_comes_back_as_it_was_made(void **state)
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

// The layout is a promise to other decoders.
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

static void every_altered_byte_is_noticed(void **state)
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

static void every_truncation_and_extension_is_noticed(void **state)
{
    (void)state;
    file f = make();
    const size_t whole = f.len;
    for (f.len = 0; f.len < whole + 100; f.len++) {
        assert_true((parse(&f) == LAC_OK) == (f.len == whole));
    }
}

static void assert_forged(
    size_t at, uint64_t value, size_t bytes, const char *sentence)
{
    file f = make();
    forge(&f, at, value, bytes);
    assert_true(parse(&f) != LAC_OK);
    assert_string_equal(lac_error_message(), sentence);
}

static void a_right_checksum_does_not_make_a_file_right(void **state)
{
    (void)state;
    assert_forged(8, 2, 4, "x.lac: has .lac version 2, expected 1");
    assert_forged(
        16, 9, 4, "x.lac: has payload format 9, but \"identity\" is format 1");
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
        "x.lac: has 112 bytes, which is not the length its header tells; it "
        "is truncated or altered");
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

static void seeds_make_keys_of_their_own(void **state)
{
    (void)state;
    assert_true(cli_lac_key(1).low != cli_lac_key(2).low);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_comes_back_as_it_was_made),
        cmocka_unit_test(the_layout_is_the_documented_one),
        cmocka_unit_test(every_altered_byte_is_noticed),
        cmocka_unit_test(every_truncation_and_extension_is_noticed),
        cmocka_unit_test(a_right_checksum_does_not_make_a_file_right),
        cmocka_unit_test(a_small_file_cannot_claim_many_values),
        cmocka_unit_test(seeds_make_keys_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
