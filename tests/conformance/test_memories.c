// SPDX-License-Identifier: MIT
// The error memory of every compressor: nothing is lost, whatever fails.
#include "subjects.h"

#include <math.h>

enum { ROUNDS = 20 };

static const lac_shape shape = {24, 25};

static void one_round(lac_memory *m, uint64_t round, bool delivered)
{
    const lac_key key = test_key(round, lac_scope_worker(0));
    uint8_t payload[BYTES_MAX];
    float x[VALUES_MAX];
    size_t len = 0;
    fill_normal(x, lac_shape_values(shape), round);
    assert_ok(lac_memory_encode(m, &key, x, payload, BYTES_MAX, &len));
    if (delivered) {
        assert_ok(lac_memory_settle(m, &key, payload, len));
    }
}

// What was sent and what is kept add up to what came in. Each of the ROUNDS
// rounds a few sums of numbers of the size of the memory's largest value, so
// the difference stays below ROUNDS * 4 * 2^-24 of the largest seen.
static void telescope(subject *s)
{
    lac_memory *m;
    double in[VALUES_MAX] = {0}, sent[VALUES_MAX] = {0}, largest = 1;
    float e[VALUES_MAX];
    if (s->form == LAC_FORM_UNBIASED) {
        return; // no contraction: the memory may grow without limit
    }
    assert_ok(lac_memory_open(&m, s->c, shape));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const bool delivered = round % 5 != 3; // some rounds fail
        const lac_key key = test_key(round, lac_scope_worker(0));
        uint8_t payload[BYTES_MAX];
        float x[VALUES_MAX], y[VALUES_MAX];
        size_t len = 0;
        fill_normal(x, VALUES_MAX, round);
        assert_ok(lac_memory_encode(m, &key, x, payload, BYTES_MAX, &len));
        assert_ok(lac_compressor_decode(s->c, &key, shape, payload, len, y));
        if (delivered) {
            assert_ok(lac_memory_settle(m, &key, payload, len));
        }
        lac_memory_read(m, e);
        for (size_t i = 0; i < lac_shape_values(shape); i++) {
            in[i] += (double)x[i];
            sent[i] += delivered ? (double)y[i] : 0;
            largest = fmax(largest, fabs((double)y[i]));
            largest = fmax(largest, fabs((double)e[i]));
            const double lost = in[i] - sent[i] - (double)e[i];
            assert_true(fabs(lost) <= ROUNDS * 4 * 0x1p-24 * largest);
        }
    }
    lac_memory_close(m);
}

// A memory that was read and written into another goes on bit for bit.
static void resume(subject *s)
{
    lac_memory *first, *second;
    float e[VALUES_MAX], f[VALUES_MAX];
    assert_ok(lac_memory_open(&first, s->c, shape));
    assert_ok(lac_memory_open(&second, s->c, shape));
    for (uint64_t round = 0; round < 6; round++) {
        one_round(first, round, round != 4);
    }
    lac_memory_read(first, e);
    lac_memory_write(second, e);
    lac_memory_read(second, f);
    assert_memory_equal(e, f, lac_shape_values(shape) * sizeof(*e));
    for (uint64_t round = 6; round < 9; round++) {
        one_round(first, round, true);
        one_round(second, round, true);
    }
    lac_memory_read(first, e);
    lac_memory_read(second, f);
    assert_memory_equal(e, f, lac_shape_values(shape) * sizeof(*e));
    lac_memory_close(first);
    lac_memory_close(second);
}

// Neither a short buffer nor a bad payload moves the memory.
static void are_unchanged_by_failure(subject *s)
{
    lac_memory *m;
    float e[VALUES_MAX], f[VALUES_MAX], x[VALUES_MAX];
    const lac_key key = test_key(9, lac_scope_worker(0));
    uint8_t payload[BYTES_MAX] = {0};
    size_t len = 0;
    assert_ok(lac_memory_open(&m, s->c, shape));
    one_round(m, 1, true);
    lac_memory_read(m, e);
    fill_normal(x, VALUES_MAX, 9);
    assert_status(
        lac_memory_encode(m, &key, x, payload, 0, &len), LAC_ERR_SPACE);
    assert_status(
        lac_memory_settle(m, &key, payload, BYTES_MAX), LAC_ERR_CORRUPT);
    lac_memory_read(m, f);
    assert_memory_equal(e, f, lac_shape_values(shape) * sizeof(*e));
    lac_memory_close(m);
}

// Values near the largest float are encoded or refused. Nothing that was
// refused stays behind, and later values of ordinary size find a memory that
// is finite.
static void stay_finite(subject *s)
{
    lac_memory *m;
    float e[VALUES_MAX], before[VALUES_MAX], x[VALUES_MAX];
    uint8_t payload[BYTES_MAX];
    const size_t n = lac_shape_values(shape);
    if (s->form == LAC_FORM_UNBIASED) {
        return; // no contraction: the memory may grow without limit
    }
    assert_ok(lac_memory_open(&m, s->c, shape));
    for (uint64_t round = 0; round < 103; round++) {
        const float size = round < 3 ? 3e38f : 1;
        const lac_key key = test_key(round, lac_scope_worker(0));
        size_t len = 0;
        for (size_t i = 0; i < n; i++) {
            x[i] = size * sinf((float)(i + 7 * round));
        }
        lac_memory_read(m, before);
        const lac_status status =
            lac_memory_encode(m, &key, x, payload, BYTES_MAX, &len);
        if (status == LAC_OK) {
            assert_ok(lac_memory_settle(m, &key, payload, len));
        } else {
            assert_status(status, LAC_ERR_INVALID);
            assert_true(round < 3);
            assert_non_null(strstr(lac_error_message(), "overflows"));
        }
        lac_memory_read(m, e);
        for (size_t i = 0; i < n; i++) {
            assert_true(isfinite(e[i]));
        }
        if (status != LAC_OK) {
            assert_memory_equal(e, before, n * sizeof(*e));
        }
    }
    lac_memory_close(m);
}

#define TEST(run)                                                              \
    static void memories_##run(void **state)                                   \
    {                                                                          \
        (void)state;                                                           \
        for_all_subjects(run);                                                 \
    }
TEST(telescope)
TEST(resume)
TEST(are_unchanged_by_failure)
TEST(stay_finite)
#undef TEST

int main(void)
{
#define TEST(run) cmocka_unit_test(memories_##run)
    const struct CMUnitTest tests[] = {
        TEST(telescope),
        TEST(resume),
        TEST(are_unchanged_by_failure),
        TEST(stay_finite),
    };
    return cmocka_run_group_tests_name("memories", tests, NULL, NULL);
}
