// SPDX-License-Identifier: MIT
// Settings of plug-ins that a program brings itself.
#include "lac_test.h"

typedef struct cake {
    uint32_t layers;
    const char *icing;
    unsigned char inside[100];
} cake;

static const lac_param params[] = {
    {.name = "layers",
     .type = LAC_PARAM_U32,
     .offset = offsetof(cake, layers),
     .default_value = "2",
     .min = 1,
     .max = 9,
     .help = "how many"},
    {.name = "icing",
     .type = LAC_PARAM_TEXT,
     .offset = offsetof(cake, icing),
     .default_value = "sugar",
     .help = "on top"},
    {0},
};

static const lac_plugin cake_plugin = {
    .size = sizeof(lac_plugin),
    .name = "cake",
    .params = params,
    .param_size = sizeof(lac_param),
    .state_size = sizeof(cake),
};

static const lac_plugin bread_plugin = {
    .size = sizeof(lac_plugin), .name = "bread"};

static const lac_plugin *const plugins[] = {&bread_plugin, &cake_plugin};

static lac_status open_spec(lac_settings **out, const char *spec)
{
    return lac_settings_open(out, "pastry", plugins, 2, spec);
}

static void settings_are_read_over_their_defaults(void **state)
{
    lac_settings *settings = NULL;
    (void)state;
    assert_ok(open_spec(&settings, "cake:3,icing=(a,b)"));
    const cake *const c = settings->state;
    assert_ptr_equal(settings->plugin, &cake_plugin);
    assert_int_equal(c->layers, 3);
    assert_string_equal(c->icing, "a,b");
    for (size_t i = 0; i < sizeof(c->inside); i++) {
        assert_int_equal(c->inside[i], 0);
    }
    lac_settings_close(settings);
    assert_ok(open_spec(&settings, "cake"));
    const cake *const plain = settings->state;
    assert_int_equal(plain->layers, 2);
    assert_string_equal(plain->icing, "sugar");
    lac_settings_close(settings);
}

static void a_plugin_without_settings_can_be_named(void **state)
{
    lac_settings *settings = NULL;
    (void)state;
    assert_ok(open_spec(&settings, "bread"));
    assert_ptr_equal(settings->plugin, &bread_plugin);
    lac_settings_close(settings);
    lac_settings_close(NULL);
}

static void messages_name_the_kind_and_the_plugin(void **state)
{
    lac_settings *settings = NULL;
    (void)state;
    assert_fails(
        open_spec(&settings, "pie"), LAC_ERR_NOTFOUND,
        "no pastry is named \"pie\"; `laconic list` shows those there are");
    assert_fails(
        open_spec(&settings, "cake:layers=10"), LAC_ERR_INVALID,
        "cake: layers is \"10\", expected a whole number from 1 to 9");
    assert_null(settings);
}

static void no_memory_is_reported(void **state)
{
    lac_settings *settings = NULL;
    (void)state;
    test_allocations_left = 0;
    const lac_status status = open_spec(&settings, "cake");
    test_allocations_left = -1;
    assert_fails(status, LAC_ERR_NOMEM, "cake: no memory for its settings");
    assert_null(settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_read_over_their_defaults),
        cmocka_unit_test(a_plugin_without_settings_can_be_named),
        cmocka_unit_test(messages_name_the_kind_and_the_plugin),
        cmocka_unit_test(no_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
