// SPDX-License-Identifier: MIT
// Layouts: from tensors and from text.
#include "lac_test.h"

#include <string.h>

static lac_status parse(lac_layout **out, const char *text)
{
    return lac_layout_parse(out, text, strlen(text));
}

static void tensors_follow_one_another(void **state)
{
    (void)state;
    const lac_tensor tensors[] = {
        {.name = "fc.weight", .shape = {3, 4}},
        {.name = "fc.bias", .shape = {3, 1}},
        {.name = "empty", .shape = {0, 7}},
        {.name = "last", .shape = {2, 1}},
    };
    lac_layout *layout;
    assert_ok(lac_layout_open(&layout, tensors, 4));
    assert_int_equal(lac_layout_count(layout), 4);
    assert_int_equal(lac_layout_values(layout), 17);
    assert_int_equal(lac_layout_tensor(layout, 1)->offset, 12);
    assert_int_equal(lac_layout_tensor(layout, 3)->offset, 15);
    assert_ptr_equal(
        lac_layout_find(layout, "fc.bias"), lac_layout_tensor(layout, 1));
    assert_null(lac_layout_find(layout, "fc"));
    assert_int_equal(
        lac_layout_tensor(layout, 0)->name_hash, lac_name_hash("fc.weight"));
    lac_layout_close(layout);
}

static void a_layout_may_be_empty(void **state)
{
    (void)state;
    lac_layout *layout;
    assert_ok(lac_layout_open(&layout, NULL, 0));
    assert_int_equal(lac_layout_values(layout), 0);
    assert_null(lac_layout_find(layout, "x"));
    lac_layout_close(layout);
    lac_layout_close(NULL);
}

static void text_gives_the_same_layout(void **state)
{
    (void)state;
    const lac_tensor tensors[] = {
        {.name = "a", .shape = {3, 4}},
        {.name = "b", .shape = {3, 1}},
    };
    lac_layout *opened, *parsed;
    assert_ok(lac_layout_open(&opened, tensors, 2));
    assert_ok(
        parse(&parsed, "# name rows columns\n\na 3 4 # the weight\r\n\tb,3\n"));
    assert_int_equal(lac_layout_hash(opened), lac_layout_hash(parsed));
    assert_string_equal(lac_layout_tensor(parsed, 1)->name, "b");
    assert_int_equal(lac_layout_tensor(parsed, 1)->shape.cols, 1);
    lac_layout_close(opened);
    lac_layout_close(parsed);
}

static void different_layouts_have_different_hashes(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",           "a 3 4",      "a 4 3",      "b 3 4",
        "a 3 4\nb 1", "b 1\na 3 4", "a 3 4\nb 2", "a 12",
    };
    uint64_t hashes[8];
    for (size_t i = 0; i < 8; i++) {
        lac_layout *layout;
        assert_ok(parse(&layout, texts[i]));
        hashes[i] = lac_layout_hash(layout);
        lac_layout_close(layout);
        for (size_t j = 0; j < i; j++) {
            assert_true(hashes[i] != hashes[j]);
        }
    }
}

static void mistakes_are_explained(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"a", "layout: line 1 is \"a\", expected a name, rows and columns"},
        {"\n\na 3 x",
         "layout: line 3 is \"a 3 x\", expected a name, rows and columns"},
        {"a 3 4 5",
         "layout: line 1 is \"a 3 4 5\", expected a name, rows and columns"},
        {"a -3",
         "layout: line 1 is \"a -3\", expected a name, rows and columns"},
        {"a 99999999999999999999",
         "layout: line 1 is \"a 99999999999999999999\", expected a name, rows "
         "and columns"},
        {"a 3\nb 4\na 5", "layout: two tensors are named a"},
        {"a 9999999999999 9999999999999",
         "layout: a of 9999999999999 x 9999999999999 values makes more than "
         "288230376151711743 in all"},
        {"a 288230376151711743\nb 1",
         "layout: b of 1 x 1 values makes more than 288230376151711743 in "
         "all"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        lac_layout *layout = (void *)&layout; // anything but NULL
        assert_fails(
            parse(&layout, cases[i].text), LAC_ERR_INVALID, cases[i].message);
        assert_null(layout);
    }
}

static void names_must_be_usable(void **state)
{
    (void)state;
    static const char *const names[] = {NULL,   "",    "a b", "a\n",
                                        "\x7f", "a,b", "a#"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const lac_tensor tensor = {.name = names[i], .shape = {1, 1}};
        lac_layout *layout;
        assert_fails(
            lac_layout_open(&layout, &tensor, 1), LAC_ERR_INVALID,
            "layout: tensor 0 has a name that is empty or has a blank, "
            "comma or #");
    }
    lac_layout *layout;
    assert_status(lac_layout_parse(&layout, "a\0b 3", 5), LAC_ERR_INVALID);
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    for (long allowed = 0; allowed < 2; allowed++) {
        lac_layout *layout;
        test_allocations_left = allowed;
        const lac_status status = parse(&layout, "a 3 4");
        test_allocations_left = -1;
        assert_status(status, LAC_ERR_NOMEM);
        assert_null(layout);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_follow_one_another),
        cmocka_unit_test(a_layout_may_be_empty),
        cmocka_unit_test(text_gives_the_same_layout),
        cmocka_unit_test(different_layouts_have_different_hashes),
        cmocka_unit_test(mistakes_are_explained),
        cmocka_unit_test(names_must_be_usable),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
