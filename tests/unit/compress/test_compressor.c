// SPDX-License-Identifier: MIT
// Opening compressors: by spec, joined with a +, and brought by the caller.
#include "lac_test.h"
#include "silent_compressor.h"

#include <math.h>

static void bad_specs_are_explained(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        lac_status status;
        const char *message;
    } cases[] = {
        {"", LAC_ERR_NOTFOUND,
         "no compressor is named \"\"; `laconic list` shows those there are"},
        {"topk", LAC_ERR_NOTFOUND,
         "no compressor is named \"topk\"; `laconic list` shows those there "
         "are"},
        {"top-k:2", LAC_ERR_INVALID,
         "top-k: ratio is \"2\", expected a number above 0 to 1"},
        {"terngrad:levels=0", LAC_ERR_INVALID,
         "terngrad: levels is \"0\", expected a whole number from 1 to 65535"},
        {"+natural", LAC_ERR_INVALID, "compressor: nothing stands before a +"},
        {"top-k+", LAC_ERR_INVALID, "compressor: nothing stands after a +"},
        {"natural+sign", LAC_ERR_INVALID,
         "natural: nothing can follow with a +, expected a sparsifier such as "
         "top-k before it"},
        {"top-k+top-k+top-k+top-k+sign", LAC_ERR_INVALID,
         "compressor: more than 4 are joined with a +, expected fewer"},
        {"top-k:0.1+natural:bits=7", LAC_ERR_INVALID,
         "natural: bits is \"7\", expected one of 9|8"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        lac_compressor *c = (void *)state; // anything but NULL
        assert_fails(
            lac_compressor_open(&c, cases[i].spec, LAC_FORM_PLAIN),
            cases[i].status, cases[i].message);
        assert_null(c);
    }
}

static void null_arguments_are_refused(void **state)
{
    (void)state;
    const lac_shape shape = {3, 1};
    lac_compressor *c;
    float x[3] = {0};
    uint8_t payload[8];
    size_t len;
    assert_fails(
        lac_compressor_open(&c, NULL, LAC_FORM_PLAIN), LAC_ERR_INVALID,
        "compressor: its spec is NULL");
    assert_fails(
        lac_compressor_open_with(&c, NULL, "", LAC_FORM_PLAIN), LAC_ERR_INVALID,
        "compressor: its ops table is NULL");
    assert_null(c);
    assert_ok(lac_compressor_open(&c, "sign", LAC_FORM_PLAIN));
    assert_fails(
        lac_compressor_use_kernels(c, NULL), LAC_ERR_INVALID,
        "compressor: its name of kernels is NULL");
    assert_fails(
        lac_compressor_encode(
            c, NULL, shape, x, payload, sizeof(payload), &len),
        LAC_ERR_INVALID, "sign: the key is NULL");
    assert_fails(
        lac_compressor_check(c, NULL, shape, payload, 5), LAC_ERR_INVALID,
        "sign: the key is NULL");
    lac_compressor_close(c);
}

static void a_scope_must_be_known(void **state)
{
    (void)state;
    const lac_key key = {.scope = (lac_scope_kind)7};
    const lac_shape shape = {3, 1};
    float x[3] = {0};
    uint8_t payload[8];
    size_t len;
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, "sign", LAC_FORM_PLAIN));
    assert_fails(
        lac_compressor_encode(
            c, &key, shape, x, payload, sizeof(payload), &len),
        LAC_ERR_INVALID, "sign: the key's scope is 7, expected 0, 1 or 2");
    lac_compressor_close(c);
}

// Buffers that share bytes are refused, neighbours are not.
static void overlapping_buffers_are_refused(void **state)
{
    (void)state;
    static const char message[] =
        "identity: the values and the payload of a tensor of 3 x 1 overlap";
    const lac_key key = {0};
    const lac_shape shape = {3, 1};
    float block[9] = {0};
    uint8_t *const bytes = (void *)block;
    size_t len = 77;
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, "identity", LAC_FORM_PLAIN));
    for (size_t at = 1; at < 6; at++) {
        assert_fails(
            lac_compressor_encode(
                c, &key, shape, block + 3, bytes + 4 * at, 12, &len),
            LAC_ERR_INVALID, message);
        assert_fails(
            lac_compressor_decode(
                c, &key, shape, bytes + 4 * at, 12, block + 3),
            LAC_ERR_INVALID, message);
        assert_fails(
            lac_compressor_decode_add(
                c, &key, shape, bytes + 4 * at, 12, 1, block + 3),
            LAC_ERR_INVALID, message);
    }
    assert_int_equal(len, 77);
    for (size_t at = 0; at <= 6; at += 6) {
        assert_ok(lac_compressor_encode(
            c, &key, shape, block + 3, bytes + 4 * at, 12, &len));
    }
    lac_compressor_close(c);
}

// Questions that cannot fail leave the message of the last failure alone.
static void questions_leave_the_message_alone(void **state)
{
    (void)state;
    const lac_shape huge = {(size_t)1 << 40, (size_t)1 << 24};
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, "top-k+natural", LAC_FORM_PLAIN));
    assert_int_equal(lac_fail(LAC_ERR_PEER, "earlier"), LAC_ERR_PEER);
    assert_int_equal(lac_compressor_bound(c, huge, LAC_SCOPE_SHARED), 0);
    assert_int_equal(lac_compressor_kept(c, huge), 0);
    assert_true(isinf(lac_compressor_guarantee(c, huge).error));
    assert_string_equal(lac_error_message(), "earlier");
    lac_compressor_close(c);
}

static void a_form_must_be_known(void **state)
{
    (void)state;
    lac_compressor *c;
    assert_fails(
        lac_compressor_open(&c, "natural", (lac_form)3), LAC_ERR_INVALID,
        "compressor: form is 3, expected 0, 1 or 2");
}

static uint32_t wire_id(const char *spec)
{
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, spec, LAC_FORM_PLAIN));
    const uint32_t id = lac_compressor_wire_id(c);
    lac_compressor_close(c);
    return id;
}

static void every_format_has_its_own_wire_id(void **state)
{
    (void)state;
    assert_int_equal(wire_id("natural"), 4);
    assert_int_equal(wire_id("qsgd"), wire_id("dithering:levels=3"));
    assert_int_equal(wire_id("top-k+natural"), 8 + 256 * 4);
    assert_int_equal(
        wire_id("top-k+top-k+top-k+sign"), 8 + 256 * (8 + 256 * (8 + 256 * 7)));
}

static void a_shape_that_is_refused_has_no_guarantee(void **state)
{
    (void)state;
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, "natural", LAC_FORM_PLAIN));
    const lac_guarantee claim = lac_compressor_guarantee(
        c, (lac_shape){(size_t)1 << 40, (size_t)1 << 24});
    assert_false(claim.unbiased);
    assert_true(isinf(claim.error));
    lac_compressor_close(c);
}

static void a_caller_may_bring_its_own(void **state)
{
    (void)state;
    const lac_key key = {0};
    const lac_shape shape = {3, 1};
    lac_compressor *c;
    float x[3] = {1, 2, 3};
    assert_ok(lac_compressor_open_with(&c, &silent, "", LAC_FORM_PLAIN));
    assert_int_equal(lac_compressor_wire_id(c), 0);
    assert_ok(lac_compressor_reserve(c, shape));
    assert_ok(lac_compressor_decode(c, &key, shape, NULL, 0, x));
    assert_true(x[0] == 0 && x[2] == 0);
    lac_compressor_close(c);
    assert_fails(
        lac_compressor_open_with(&c, &silent, "x=1", LAC_FORM_PLAIN),
        LAC_ERR_INVALID, "silent: \"x\" was given, but it has no settings");
}

static void floats_at_odd_addresses_are_refused(void **state)
{
    (void)state;
    static const char message[] =
        "sign: the values of a tensor of 3 x 1 are at an address that is no "
        "multiple of 4, as floats need";
    const lac_key key = {0};
    const lac_shape shape = {3, 1};
    float values[4] = {0};
    float *const odd = (void *)((char *)values + 1);
    uint8_t payload[8];
    size_t len = 0;
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, "sign", LAC_FORM_PLAIN));
    assert_ok(lac_compressor_encode(
        c, &key, shape, values, payload, sizeof(payload), &len));
    assert_fails(
        lac_compressor_encode(
            c, &key, shape, odd, payload, sizeof(payload), &len),
        LAC_ERR_INVALID, message);
    assert_fails(
        lac_compressor_decode(c, &key, shape, payload, len, odd),
        LAC_ERR_INVALID, message);
    assert_fails(
        lac_compressor_decode_add(c, &key, shape, payload, len, 1, odd),
        LAC_ERR_INVALID, message);
    lac_compressor_close(c);
}

static void what_a_caller_brings_must_be_whole(void **state)
{
    (void)state;
    lac_compressor_ops broken[5] = {silent, silent, silent, silent, silent};
    lac_compressor *c;
    broken[0].plugin.size = 0;
    broken[1].plugin.name = NULL;
    broken[2].decode = NULL;
    broken[3].guarantee = NULL;
    broken[4].settle = (void (*)(
        const void *, const lac_call *, const uint8_t *, size_t,
        void *))(void (*)(void))silent_decode; // without its two companions
    for (size_t i = 0; i < 5; i++) {
        assert_status(
            lac_compressor_open_with(&c, &broken[i], "", LAC_FORM_PLAIN),
            LAC_ERR_INVALID);
        assert_null(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_specs_are_explained),
        cmocka_unit_test(null_arguments_are_refused),
        cmocka_unit_test(a_scope_must_be_known),
        cmocka_unit_test(overlapping_buffers_are_refused),
        cmocka_unit_test(questions_leave_the_message_alone),
        cmocka_unit_test(a_form_must_be_known),
        cmocka_unit_test(every_format_has_its_own_wire_id),
        cmocka_unit_test(a_shape_that_is_refused_has_no_guarantee),
        cmocka_unit_test(floats_at_odd_addresses_are_refused),
        cmocka_unit_test(a_caller_may_bring_its_own),
        cmocka_unit_test(what_a_caller_brings_must_be_whole),
    };
    return cmocka_run_group_tests_name("compressor", tests, NULL, NULL);
}
