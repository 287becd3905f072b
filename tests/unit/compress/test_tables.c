// SPDX-License-Identifier: MIT
// Ops tables of programs that were compiled against an older or a newer header.
#include "lac_test.h"

#include <string.h>

enum { VALUES = 4 };

static const lac_shape shape = {VALUES, 1};

// A compressor that sends the first value and drops the others, as version
// 0.1.0 could define it.
static lac_guarantee first_guarantee(
    const void *state, lac_shape of, lac_form form)
{
    (void)state;
    (void)of;
    (void)form;
    return (lac_guarantee){.unbiased = false, .error = 1};
}

static size_t first_bound(const void *state, lac_shape of)
{
    (void)state;
    (void)of;
    return sizeof(float);
}

static size_t first_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    (void)state;
    (void)call;
    memcpy(out, x, sizeof(*x));
    return sizeof(*x);
}

static lac_status first_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)state;
    (void)call;
    (void)in;
    return len == sizeof(float) ? LAC_OK : lac_fail(LAC_ERR_CORRUPT, "length");
}

static void first_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)state;
    memset(x, 0, lac_shape_values(call->shape) * sizeof(*x));
    memcpy(x, in, len);
}

static const lac_compressor_ops first_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "first",
    .guarantee = first_guarantee,
    .bound = first_bound,
    .encode = first_encode,
    .check = first_check,
    .decode = first_decode,
};

// A sparsifier that keeps the first value.
static size_t head_keep(const void *state, lac_shape of)
{
    (void)state;
    (void)of;
    return 1;
}

static void head_choose(
    const void *state, const lac_call *call, const float *x, uint32_t *indices)
{
    (void)state;
    (void)call;
    (void)x;
    indices[0] = 0;
}

static size_t head_indices_bound(
    const void *state, lac_shape of, lac_scope_kind scope)
{
    (void)state;
    (void)of;
    (void)scope;
    return 0;
}

static size_t head_put_indices(
    const void *state, const lac_call *call, const uint32_t *indices,
    uint8_t *out)
{
    (void)state;
    (void)call;
    (void)indices;
    (void)out;
    return 0;
}

static lac_status head_get_indices(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    uint32_t *indices_out, size_t *used_out)
{
    (void)state;
    (void)call;
    (void)in;
    (void)len;
    indices_out[0] = 0;
    *used_out = 0;
    return LAC_OK;
}

static const lac_sparsifier_ops head_sparsifier = {
    .size = sizeof(lac_sparsifier_ops),
    .keep = head_keep,
    .choose = head_choose,
    .indices_bound = head_indices_bound,
    .put_indices = head_put_indices,
    .get_indices = head_get_indices,
};

// A copy of the first bytes of a table, in a block of just that size, so that
// a sanitizer sees a read beyond.
static void *part_of(const void *table, size_t size)
{
    void *const part = malloc(size);
    assert_non_null(part);
    memcpy(part, table, size);
    return part;
}

// Sends a tensor with an error memory: the first value arrives, the others
// stay.
static void assert_works(const lac_compressor_ops *ops)
{
    const lac_key key = {0};
    const float x[VALUES] = {1, 2, 3, 4};
    float y[VALUES] = {0}, e[VALUES];
    uint8_t payload[sizeof(float)];
    size_t len;
    lac_compressor *c;
    lac_memory *m;
    assert_ok(lac_compressor_open_with(&c, ops, "", LAC_FORM_PLAIN));
    assert_ok(lac_memory_open(&m, c, shape));
    assert_ok(lac_memory_encode(m, &key, x, payload, sizeof(payload), &len));
    assert_ok(lac_compressor_decode_add(c, &key, shape, payload, len, 2, y));
    assert_ok(lac_memory_settle(m, &key, payload, len));
    lac_memory_read(m, e);
    assert_true(y[0] == 2 && y[3] == 0 && e[0] == 0 && e[3] == 4);
    lac_memory_close(m);
    lac_compressor_close(c);
}

static void an_older_table_works(void **state)
{
    (void)state;
    const size_t size = offsetof(lac_compressor_ops, finite);
    lac_compressor_ops older = first_ops;
    older.plugin.size = size;
    lac_compressor_ops *const ops = part_of(&older, size);
    assert_works(ops);
    free(ops);
}

// Members that this library does not know are not touched.
static void a_newer_table_works(void **state)
{
    (void)state;
    struct {
        lac_compressor_ops ops;
        void *later[3];
    } newer = {first_ops, {&newer, &newer, &newer}};
    newer.ops.plugin.size = sizeof(newer);
    assert_works(&newer.ops);
}

static void a_newer_sparsifier_works(void **state)
{
    (void)state;
    struct {
        lac_sparsifier_ops ops;
        void *later[3];
    } newer = {head_sparsifier, {&newer, &newer, &newer}};
    newer.ops.size = sizeof(newer);
    const lac_compressor_ops ops = {
        .plugin.size = sizeof(ops),
        .plugin.name = "head",
        .guarantee = first_guarantee,
        .sparsifier = &newer.ops,
    };
    assert_works(&ops);
}

static void an_older_table_with_a_sparsifier_works(void **state)
{
    (void)state;
    const size_t size = offsetof(lac_compressor_ops, finite);
    lac_compressor_ops *const ops = part_of(
        &(lac_compressor_ops){
            .plugin.size = size,
            .plugin.name = "head",
            .guarantee = first_guarantee,
            .sparsifier = &head_sparsifier,
        },
        size);
    assert_works(ops);
    free(ops);
}

// One that sends the lower half of its key besides: decode compares it with the
// key that it gets.
static size_t keyed_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    const float low = (float)call->key.low;
    (void)state;
    (void)x;
    memcpy(out, &low, sizeof(low));
    return sizeof(low);
}

static void keyed_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)state;
    memcpy(x, in, len);
    x[1] = (float)call->key.low;
    x[2] = (float)call->key.high;
}

static lac_compressor_ops keyed_ops(void)
{
    lac_compressor_ops ops = first_ops;
    ops.encode = keyed_encode;
    ops.decode = keyed_decode;
    ops.traits = LAC_TRAIT_LINEAR;
    ops.needs_key = true;
    return ops;
}

// A receiver that has another key of that scope.
static void a_key_that_decoding_needs_is_sent(void **state)
{
    (void)state;
    const lac_compressor_ops ops = keyed_ops();
    for (int scope = LAC_SCOPE_WORKER; scope <= LAC_SCOPE_SHARED; scope++) {
        const bool sent = scope == LAC_SCOPE_WORKER;
        const lac_key key = {5, 6, (lac_scope_kind)scope};
        const lac_key other = {sent ? 7 : 5, sent ? 8 : 6, key.scope};
        const float x[VALUES] = {1, 2, 3, 4};
        float y[VALUES] = {0}, sum[VALUES] = {0};
        uint8_t payload[20];
        size_t len;
        lac_compressor *c;
        assert_ok(lac_compressor_open_with(&c, &ops, "", LAC_FORM_PLAIN));
        assert_ok(lac_compressor_reserve(c, shape));
        assert_int_equal(
            lac_compressor_bound(c, shape, key.scope), sent ? 20 : 4);
        assert_int_equal(
            lac_compressor_traits(c, key.scope), sent ? 0 : LAC_TRAIT_LINEAR);
        assert_ok(lac_compressor_encode(
            c, &key, shape, x, payload, sizeof(payload), &len));
        assert_int_equal(len, sent ? 20 : 4);
        assert_ok(lac_compressor_decode(c, &other, shape, payload, len, y));
        assert_ok(
            lac_compressor_decode_add(c, &other, shape, payload, len, 2, sum));
        assert_true(y[0] == 5 && y[1] == 5 && y[2] == 6);
        assert_true(sum[0] == 10 && sum[1] == 10 && sum[2] == 12);
        assert_status(
            lac_compressor_check(c, &other, shape, payload, sent ? 15 : 3),
            LAC_ERR_CORRUPT);
        lac_compressor_close(c);
    }
}

static bool seed_for_many(const void *state, lac_shape many)
{
    (void)state;
    return many.rows > 1;
}

// The ops get a key that both ends make from 8 bytes: another one for every bit
// of the encoder's key, and for a shape that needs no seed the key itself.
static void a_seed_that_decoding_needs_is_sent(void **state)
{
    (void)state;
    static const lac_key keys[] = {
        {5, 6, 0}, {4, 6, 0}, {5, 7, 0}, {5 | 1ULL << 63, 6, 0}};
    const lac_shape row = {1, VALUES};
    lac_compressor_ops ops = keyed_ops();
    ops.needs_key = false;
    ops.needs_seed = seed_for_many;
    float first[4];
    for (size_t i = 0; i < 12; i++) {
        const lac_scope_kind scope = (lac_scope_kind)(i / 4);
        const bool sent = scope == LAC_SCOPE_WORKER;
        const lac_key key = {keys[i % 4].low, keys[i % 4].high, scope};
        const lac_key other = {sent ? 9 : key.low, sent ? 9 : key.high, scope};
        const float x[VALUES] = {1, 2, 3, 4};
        float y[VALUES] = {0};
        uint8_t payload[20];
        size_t len;
        lac_compressor *c;
        assert_ok(lac_compressor_open_with(&c, &ops, "", LAC_FORM_PLAIN));
        assert_ok(lac_compressor_reserve(c, shape));
        assert_int_equal(lac_compressor_bound(c, shape, scope), sent ? 12 : 4);
        assert_int_equal(
            lac_compressor_traits(c, scope), sent ? 0 : LAC_TRAIT_LINEAR);
        assert_ok(lac_compressor_encode(
            c, &key, shape, x, payload, sizeof(payload), &len));
        assert_int_equal(len, sent ? 12 : 4);
        assert_ok(lac_compressor_decode(c, &other, shape, payload, len, y));
        assert_true(y[0] == y[1] && y[0] != (float)key.low);
        first[i % 4] = i < 4 ? y[0] : first[i % 4];
        assert_true(y[0] == first[i % 4]);
        for (size_t k = 0; i < 4 && k < i; k++) {
            assert_true(first[k] != y[0]);
        }
        assert_int_equal(lac_compressor_bound(c, row, scope), 4);
        assert_ok(lac_compressor_encode(
            c, &key, row, x, payload, sizeof(payload), &len));
        assert_ok(lac_compressor_decode(c, &key, row, payload, len, y));
        assert_true(len == 4 && y[0] == (float)key.low && y[1] == y[0]);
        lac_compressor_close(c);
    }
}

static void a_seed_does_not_go_with_other_members(void **state)
{
    (void)state;
    lac_compressor *c;
    lac_compressor_ops ops = {
        .plugin.size = sizeof(ops),
        .plugin.name = "head",
        .guarantee = first_guarantee,
        .sparsifier = &head_sparsifier,
        .needs_seed = seed_for_many,
    };
    assert_fails(
        lac_compressor_open_with(&c, &ops, "", LAC_FORM_PLAIN), LAC_ERR_INVALID,
        "head: needs_seed is set, expected no sparsifier and no encode_add");
    ops = keyed_ops();
    ops.needs_seed = seed_for_many;
    assert_status(
        lac_compressor_open_with(&c, &ops, "", LAC_FORM_PLAIN),
        LAC_ERR_INVALID);
    assert_non_null(strstr(
        lac_error_message(),
        "needs_key and needs_seed are set, expected one of them"));
}

static void a_key_does_not_go_with_other_members(void **state)
{
    (void)state;
    lac_compressor *c;
    const lac_compressor_ops ops = {
        .plugin.size = sizeof(ops),
        .plugin.name = "head",
        .guarantee = first_guarantee,
        .sparsifier = &head_sparsifier,
        .needs_key = true,
    };
    assert_fails(
        lac_compressor_open_with(&c, &ops, "", LAC_FORM_PLAIN), LAC_ERR_INVALID,
        "head: needs_key is set, expected no sparsifier and no encode_add");
}

// No released header had tables as small as these.
static void smaller_tables_are_refused(void **state)
{
    (void)state;
    lac_compressor *c;
    lac_compressor_ops small = first_ops;
    small.plugin.size = 176;
    lac_compressor_ops *const ops = part_of(&small, 176);
    assert_fails(
        lac_compressor_open_with(&c, ops, "", LAC_FORM_PLAIN), LAC_ERR_INVALID,
        "first: its lac_compressor_ops has 176 bytes, expected at least 184");
    assert_null(c);
    free(ops);
    lac_sparsifier_ops small_sparsifier = head_sparsifier;
    small_sparsifier.size = 48;
    lac_sparsifier_ops *const sparsifier = part_of(&small_sparsifier, 48);
    const lac_compressor_ops head = {
        .plugin.size = sizeof(head),
        .plugin.name = "head",
        .guarantee = first_guarantee,
        .sparsifier = sparsifier,
    };
    assert_fails(
        lac_compressor_open_with(&c, &head, "", LAC_FORM_PLAIN),
        LAC_ERR_INVALID,
        "head: its lac_sparsifier_ops has 48 bytes, expected at least 49");
    free(sparsifier);
}

// Settings of a newer header are larger, those of none are smaller.
static void settings_of_other_sizes_are_read(void **state)
{
    (void)state;
    struct {
        lac_param param;
        void *later;
    } params[2] = {
        {{.name = "a", .type = LAC_PARAM_U32, .default_value = "1", .max = 9},
         params},
        {{.name = NULL}, NULL},
    };
    lac_compressor *c;
    lac_compressor_ops ops = first_ops;
    ops.plugin.params = &params[0].param;
    ops.plugin.param_size = sizeof(params[0]);
    ops.plugin.state_size = sizeof(uint32_t);
    assert_ok(lac_compressor_open_with(&c, &ops, "a=7", LAC_FORM_PLAIN));
    lac_compressor_close(c);
    ops.plugin.param_size = sizeof(lac_param) - 8;
    assert_fails(
        lac_compressor_open_with(&c, &ops, "a=7", LAC_FORM_PLAIN),
        LAC_ERR_INVALID,
        "first: its param_size is 72 bytes, expected at least 80");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_table_works),
        cmocka_unit_test(a_newer_table_works),
        cmocka_unit_test(a_newer_sparsifier_works),
        cmocka_unit_test(an_older_table_with_a_sparsifier_works),
        cmocka_unit_test(a_key_that_decoding_needs_is_sent),
        cmocka_unit_test(a_key_does_not_go_with_other_members),
        cmocka_unit_test(a_seed_that_decoding_needs_is_sent),
        cmocka_unit_test(a_seed_does_not_go_with_other_members),
        cmocka_unit_test(smaller_tables_are_refused),
        cmocka_unit_test(settings_of_other_sizes_are_read),
    };
    return sizeof(void *) == 8
               ? cmocka_run_group_tests_name("tables", tests, NULL, NULL)
               : 77;
}
