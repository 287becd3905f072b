// SPDX-License-Identifier: MIT
// Every compressor with a tensor of so many values that it asks whether to
// share them among threads. A handle that was given no threads computes what
// one with two threads does. One form is enough: the others differ in scales.
#include "subjects.h"

// Few rows, so that decompositions of the matrix are fast.
static const lac_shape large = {8, 40000};

enum { LARGE = 8 * 40000, LARGE_BYTES = 8 * LARGE + 64 };

static float values[LARGE];

// All that is written for one tensor.
typedef struct results {
    size_t len;
    uint8_t payload[LARGE_BYTES];
    float decoded[LARGE];
    float sum[LARGE];
    size_t memory_len;
    uint8_t memory_payload[LARGE_BYTES];
    float memory[LARGE];
} results;

static int fill_the_values(void **state)
{
    (void)state;
    fill_normal(values, LARGE, 5);
    return 0;
}

static void write_results(subject *s, results *r)
{
    lac_memory *m;
    const lac_key key = test_key(3, lac_scope_worker(0));
    memset(r, 0, sizeof(*r));
    assert_ok(lac_compressor_encode(
        s->c, &key, large, values, r->payload, LARGE_BYTES, &r->len));
    assert_ok(lac_compressor_decode(
        s->c, &key, large, r->payload, r->len, r->decoded));
    assert_ok(lac_compressor_decode_add(
        s->c, &key, large, r->payload, r->len, 0.5f, r->sum));
    assert_ok(lac_memory_open(&m, s->c, large));
    assert_ok(lac_memory_encode(
        m, &key, values, r->memory_payload, LARGE_BYTES, &r->memory_len));
    assert_ok(lac_memory_settle(m, &key, r->memory_payload, r->memory_len));
    lac_memory_read(m, r->memory);
    lac_memory_close(m);
}

static void need_no_threads(subject *s)
{
    static results alone, shared;
    if (s->form != LAC_FORM_PLAIN) {
        return;
    }
    assert_ok(lac_compressor_reserve(s->c, large));
    write_results(s, &alone);
    for (size_t i = 0; i < LARGE; i++) {
        assert_true(alone.sum[i] == 0.5f * alone.decoded[i]);
    }
    assert_ok(lac_compressor_use_threads(s->c, 2));
    write_results(s, &shared);
    assert_memory_equal(&alone, &shared, sizeof(alone));
}

static void all_large_tensors_need_no_threads(void **state)
{
    (void)state;
    for_all_subjects(need_no_threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_large_tensors_need_no_threads),
    };
    return cmocka_run_group_tests(tests, fill_the_values, NULL);
}
