// SPDX-License-Identifier: MIT
// The fragments of a layout: balanced, none empty, and the same for every order
// of the tensors.
#include "lac_test.h"

#include "algorithm/framework/fragments.h"

enum { TENSORS = 9 };

static const lac_tensor tensors[TENSORS] = {
    {.name = "conv1", .shape = {20, 5}}, {.name = "conv2", .shape = {40, 10}},
    {.name = "bias1", .shape = {20, 1}}, {.name = "bias2", .shape = {20, 1}},
    {.name = "empty", .shape = {0, 4}},  {.name = "none", .shape = {0, 1}},
    {.name = "full", .shape = {30, 10}}, {.name = "head", .shape = {10, 10}},
    {.name = "bias3", .shape = {10, 1}},
};

static void divide(
    const lac_tensor *list, size_t count, uint32_t fragments, uint32_t *out)
{
    lac_layout *layout;
    assert_ok(lac_layout_open(&layout, list, count));
    assert_ok(laci_fragments_divide(layout, fragments, out));
    lac_layout_close(layout);
}

// The largest tensor goes first, so the largest fragment has at most 4/3 of the
// values of the best division (Graham, 1969), or of the largest tensor.
static void fragments_are_balanced_and_not_empty(void **state)
{
    (void)state;
    for (uint32_t fragments = 1; fragments <= TENSORS; fragments++) {
        uint32_t of[TENSORS];
        size_t values[TENSORS] = {0}, counts[TENSORS] = {0}, all = 0;
        divide(tensors, TENSORS, fragments, of);
        for (size_t t = 0; t < TENSORS; t++) {
            assert_true(of[t] < fragments);
            values[of[t]] += lac_shape_values(tensors[t].shape);
            counts[of[t]]++;
            all += lac_shape_values(tensors[t].shape);
        }
        const size_t mean = all / fragments + 1;
        const size_t least = mean > 400 ? mean : 400;
        for (uint32_t f = 0; f < fragments; f++) {
            assert_true(counts[f] > 0);
            assert_true(3 * values[f] <= 4 * least);
        }
    }
}

static void the_order_of_tensors_does_not_matter(void **state)
{
    (void)state;
    lac_tensor backwards[TENSORS];
    uint32_t of[TENSORS], other[TENSORS];
    for (size_t t = 0; t < TENSORS; t++) {
        backwards[t] = tensors[TENSORS - 1 - t];
    }
    for (uint32_t fragments = 1; fragments <= 4; fragments++) {
        divide(tensors, TENSORS, fragments, of);
        divide(backwards, TENSORS, fragments, other);
        for (size_t t = 0; t < TENSORS; t++) {
            assert_int_equal(of[t], other[TENSORS - 1 - t]);
        }
    }
}

static void fewer_tensors_than_fragments_leave_some_empty(void **state)
{
    (void)state;
    uint32_t of[2];
    divide(tensors, 2, 5, of);
    assert_int_equal(of[0], 1);
    assert_int_equal(of[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fragments_are_balanced_and_not_empty),
        cmocka_unit_test(the_order_of_tensors_does_not_matter),
        cmocka_unit_test(fewer_tensors_than_fragments_leave_some_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
