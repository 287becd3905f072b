// SPDX-License-Identifier: MIT
// Memory and limits of every compressor: who allocates when, what happens when
// there is no memory, what is read and written, and which calls are refused.
#include "subjects.h"

#include <stdlib.h>

static float sample[VALUES_MAX];

static int setup(void **state)
{
    (void)state;
    fill_normal(sample, VALUES_MAX, 7);
    return 0;
}

static void allocate_only_to_open(subject *s)
{
    const lac_shape shape = {24, 25};
    const lac_key key = test_key(1, lac_scope_worker(0));
    uint8_t payload[BYTES_MAX];
    float y[VALUES_MAX];
    lac_memory *m;
    assert_ok(lac_memory_open(&m, s->c, shape));
    const size_t before = test_allocations;
    size_t len = encode_test(s, &key, shape, sample, payload);
    assert_ok(lac_compressor_decode(s->c, &key, shape, payload, len, y));
    assert_ok(lac_compressor_decode_add(s->c, &key, shape, payload, len, 2, y));
    assert_ok(lac_memory_encode(m, &key, sample, payload, BYTES_MAX, &len));
    assert_ok(lac_memory_settle(m, &key, payload, len));
    assert_int_equal(test_allocations, before);
    lac_memory_close(m);
}

// A block that holds `size` bytes and nothing after them, not even where there
// are none: the sanitizer sees what touches the byte that follows. It begins a
// float before them, to stay aligned for floats.
static void *exact_copy(const void *bytes, size_t size)
{
    unsigned char *const block = malloc(sizeof(float) + size);
    assert_non_null(block);
    memcpy(block + sizeof(float), bytes, size);
    return block + sizeof(float);
}

static void free_exact(void *copy)
{
    free((unsigned char *)copy - sizeof(float));
}

static void touch_what_they_are_given_only(subject *s)
{
    for (size_t i = 0; i < 2 * SHAPE_COUNT; i++) {
        const lac_shape shape = test_shapes[i / 2];
        const size_t size = lac_shape_values(shape) * sizeof(float);
        const lac_key key =
            test_key(i, i % 2 ? lac_scope_shared() : lac_scope_worker(0));
        const size_t bound = lac_compressor_bound(s->c, shape, key.scope);
        const uint8_t zeros[BYTES_MAX] = {0};
        float *const x = exact_copy(sample, size);
        float *const y = exact_copy(sample, size);
        uint8_t *const out = exact_copy(zeros, bound);
        lac_memory *m;
        size_t len = 0;
        assert_ok(
            lac_compressor_encode(s->c, &key, shape, x, out, bound, &len));
        uint8_t *const in = exact_copy(out, len);
        assert_ok(lac_compressor_check(s->c, &key, shape, in, len));
        assert_ok(lac_compressor_decode(s->c, &key, shape, in, len, y));
        assert_ok(lac_compressor_decode_add(s->c, &key, shape, in, len, 2, y));
        assert_ok(lac_memory_open(&m, s->c, shape));
        assert_ok(lac_memory_encode(m, &key, x, out, bound, &len));
        uint8_t *const sent = exact_copy(out, len);
        assert_ok(lac_memory_settle(m, &key, sent, len));
        assert_memory_equal(x, sample, size);
        lac_memory_close(m);
        free_exact(sent);
        free_exact(in);
        free_exact(out);
        free_exact(y);
        free_exact(x);
    }
}

// Opens everything a caller opens; the allocation number `allowed` fails.
static lac_status open_with(subject *s, long allowed)
{
    lac_compressor *c = NULL;
    lac_memory *m = NULL;
    test_allocations_left = allowed;
    lac_status status = lac_compressor_open(&c, s->spec, s->form);
    assert_true(status == LAC_OK || c == NULL);
    if (status == LAC_OK) {
        status = lac_memory_open(&m, c, (lac_shape){24, 25});
        assert_true(status == LAC_OK || m == NULL);
    }
    test_allocations_left = -1;
    lac_memory_close(m);
    lac_compressor_close(c);
    return status;
}

static void report_lack_of_memory(subject *s)
{
    long allowed = 0;
    for (; open_with(s, allowed) != LAC_OK; allowed++) {
        assert_status(open_with(s, allowed), LAC_ERR_NOMEM);
        assert_between(allowed, 0, 100);
    }
    assert_true(allowed >= 2); // a handle and a memory at least
}

// Sizes are checked before anything is multiplied or allocated.
static void refuse_what_cannot_be(subject *s)
{
    static const lac_shape too_large[] = {
        {SIZE_MAX, 2},
        {SIZE_MAX, SIZE_MAX},
        {SIZE_MAX / 32, 1},
        {(size_t)1 << 40, (size_t)1 << 40},
    };
    const lac_key key = test_key(1, lac_scope_worker(0));
    uint8_t payload[BYTES_MAX];
    size_t len = 77;
    lac_memory *m;
    for (size_t i = 0; i < sizeof(too_large) / sizeof(too_large[0]); i++) {
        const size_t before = test_allocations;
        assert_status(
            lac_compressor_reserve(s->c, too_large[i]), LAC_ERR_INVALID);
        assert_status(lac_memory_open(&m, s->c, too_large[i]), LAC_ERR_INVALID);
        assert_null(m);
        assert_int_equal(
            lac_compressor_bound(s->c, too_large[i], LAC_SCOPE_WORKER), 0);
        assert_status(
            lac_compressor_encode(
                s->c, &key, too_large[i], sample, payload, BYTES_MAX, &len),
            LAC_ERR_INVALID);
        assert_int_equal(len, 77);
        assert_int_equal(test_allocations, before);
    }
    assert_status(
        lac_compressor_encode(
            s->c, &key, (lac_shape){9, 1}, NULL, payload, BYTES_MAX, &len),
        LAC_ERR_INVALID);
}

// Scratch that nobody reserved is never used.
static void want_their_scratch_reserved(subject *s)
{
    const lac_shape shape = {200, 300};
    const lac_key key = test_key(1, lac_scope_worker(0));
    const size_t bound = lac_compressor_bound(s->c, shape, key.scope);
    float *const x = test_calloc(60000, sizeof(*x));
    uint8_t *const payload = test_calloc(bound, 1);
    size_t len = 0;
    const lac_status status =
        lac_compressor_encode(s->c, &key, shape, x, payload, bound, &len);
    assert_true(status == LAC_OK || status == LAC_ERR_INVALID);
    if (status == LAC_ERR_INVALID) {
        assert_non_null(strstr(lac_error_message(), "are reserved"));
        assert_ok(lac_compressor_reserve(s->c, shape));
        assert_ok(
            lac_compressor_encode(s->c, &key, shape, x, payload, bound, &len));
    }
    test_free(x);
    test_free(payload);
}

#define TEST(run)                                                              \
    static void compressors_##run(void **state)                                \
    {                                                                          \
        (void)state;                                                           \
        for_all_subjects(run);                                                 \
    }
TEST(allocate_only_to_open)
TEST(touch_what_they_are_given_only)
TEST(report_lack_of_memory)
TEST(refuse_what_cannot_be)
TEST(want_their_scratch_reserved)
#undef TEST

int main(void)
{
#define TEST(run) cmocka_unit_test(compressors_##run)
    const struct CMUnitTest tests[] = {
        TEST(allocate_only_to_open),       TEST(touch_what_they_are_given_only),
        TEST(report_lack_of_memory),       TEST(refuse_what_cannot_be),
        TEST(want_their_scratch_reserved),
    };
    return cmocka_run_group_tests_name("resources", tests, setup, NULL);
}
