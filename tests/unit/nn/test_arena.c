// SPDX-License-Identifier: MIT
// Buffers of a plan: those live at the same time never overlap.
#include "lac_test.h"

#include "nn/arena.h"

enum { SPANS = 200 };

static void spans_live_at_the_same_time_do_not_overlap(void **state)
{
    (void)state;
    const lac_key key =
        lac_key_make(1, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    nn_span spans[SPANS];
    size_t order[SPANS];
    for (uint32_t i = 0; i < SPANS; i++) {
        const size_t first = lac_key_draw(&key, 3 * i) % 100;
        spans[i] = (nn_span){
            .size = 1 + lac_key_draw(&key, 3 * i + 1) % 10000,
            .first = first,
            .last = first + lac_key_draw(&key, 3 * i + 2) % 20};
    }
    const size_t total = nn_arena_place(spans, SPANS, order);
    for (size_t i = 0; i < SPANS; i++) {
        const nn_span *const a = &spans[i];
        assert_int_equal(a->offset % NN_ALIGNMENT, 0);
        assert_true(a->offset + a->size <= total);
        for (size_t k = 0; k < i; k++) {
            const nn_span *const b = &spans[k];
            assert_true(
                a->last < b->first || b->last < a->first ||
                a->offset + a->size <= b->offset ||
                b->offset + b->size <= a->offset);
        }
    }
}

static void spans_needed_one_after_the_other_share_their_bytes(void **state)
{
    (void)state;
    nn_span spans[] = {
        {.size = 1000, .first = 0, .last = 1},
        {.size = 500, .first = 1, .last = 2},
        {.size = 960, .first = 2, .last = 3},
        {.size = 10, .first = 4, .last = 4}};
    size_t order[4];
    assert_int_equal(nn_arena_place(spans, 4, order), 1024 + 512);
    assert_int_equal(spans[0].offset, 0);
    assert_int_equal(spans[1].offset, 1024);
    assert_int_equal(spans[2].offset, 0);
    assert_int_equal(spans[3].offset, 0);
}

static void no_spans_need_no_bytes(void **state)
{
    (void)state;
    size_t order[1];
    nn_span span = {0};
    assert_int_equal(nn_arena_place(&span, 0, order), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_live_at_the_same_time_do_not_overlap),
        cmocka_unit_test(spans_needed_one_after_the_other_share_their_bytes),
        cmocka_unit_test(no_spans_need_no_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
