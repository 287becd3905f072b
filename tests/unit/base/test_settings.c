// SPDX-License-Identifier: MIT
// Specs and the typed tables behind them, with a plug-in that has every type.
#include "lac_test.h"

#include <locale.h>
#include <string.h>

#include "base/settings.h"

typedef struct everything {
    bool flag;
    uint32_t count;
    double ratio;
    uint32_t norm;
    lac_number_or_word gamma;
    const char *path;
    const char *server;
} everything;

static const lac_param params[] = {
    {.name = "ratio",
     .type = LAC_PARAM_F64,
     .offset = offsetof(everything, ratio),
     .default_value = "0.01",
     .min = 0,
     .max = 1,
     .above_min = true,
     .help = "part of the values"},
    {.name = "count",
     .aliases = "number how_many",
     .type = LAC_PARAM_U32,
     .offset = offsetof(everything, count),
     .default_value = "3",
     .min = 1,
     .max = 4294967295.0,
     .help = "how many"},
    {.name = "flag",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(everything, flag),
     .default_value = "yes",
     .help = "whether"},
    {.name = "norm",
     .type = LAC_PARAM_CHOICE,
     .offset = offsetof(everything, norm),
     .default_value = "2",
     .choices = "2|inf",
     .help = "which"},
    {.name = "gamma",
     .aliases = "consensus_stepsize",
     .type = LAC_PARAM_F64_OR_WORD,
     .offset = offsetof(everything, gamma),
     .default_value = "auto",
     .min = 0,
     .max = 2,
     .choices = "auto",
     .help = "step"},
    {.name = "path",
     .type = LAC_PARAM_TEXT,
     .offset = offsetof(everything, path),
     .default_value = "",
     .help = "a file"},
    {.name = "server",
     .type = LAC_PARAM_SPEC,
     .offset = offsetof(everything, server),
     .default_value = "identity",
     .help = "the way back"},
    {0},
};

static const lac_plugin all_types = {
    .size = sizeof(lac_plugin),
    .name = "all",
    .summary = "every type of setting",
    .params = params,
    .param_size = sizeof(lac_param),
    .state_size = sizeof(everything),
};

static const lac_plugin bare = {.name = "bare", .summary = "no settings"};

static const lac_plugin *const plugins[] = {&all_types, &bare};
static const lac_alias aliases[] = {{"some", "all", "norm=inf,count=7"}};

static const laci_registry registry = {
    "thing", plugins, 2, aliases, 1,
};

static char texts[4096];

static lac_status read_spec(const char *text, everything *out)
{
    laci_spec spec;
    const lac_status status =
        laci_spec_find(&registry, text, strlen(text), &spec);
    if (status != LAC_OK) {
        return status;
    }
    assert_between(laci_settings_texts_size(&spec), 0, sizeof(texts));
    memset(out, 0, sizeof(*out));
    return laci_settings_read(&spec, out, texts);
}

static void defaults_come_from_the_table(void **state)
{
    (void)state;
    everything e;
    assert_ok(read_spec("all", &e));
    assert_true(e.flag);
    assert_int_equal(e.count, 3);
    assert_true(e.ratio == 0.01);
    assert_int_equal(e.norm, 0);
    assert_int_equal(e.gamma.word, 0);
    assert_string_equal(e.path, "");
    assert_string_equal(e.server, "identity");
}

static void every_type_can_be_given(void **state)
{
    (void)state;
    everything e;
    assert_ok(read_spec(
        "all:ratio=1e-3,count=4294967295,flag=no,norm=inf,gamma=0.5,"
        "path=(a,b),server=(top-k:ratio=0.1,x=(y))",
        &e));
    assert_false(e.flag);
    assert_int_equal(e.count, UINT32_MAX);
    assert_true(e.ratio == 1e-3);
    assert_int_equal(e.norm, 1);
    assert_int_equal(e.gamma.word, -1);
    assert_true(e.gamma.value == 0.5);
    assert_string_equal(e.path, "a,b");
    assert_string_equal(e.server, "top-k:ratio=0.1,x=(y)");
    assert_ok(read_spec("all:server=(top-k:0.1)+(natural)", &e));
    assert_string_equal(e.server, "(top-k:0.1)+(natural)");
}

// Programs with a locale whose decimal point is a comma read the same specs.
// Any such locale will do; without one there is nothing to see.
static void the_locale_of_the_program_does_not_matter(void **state)
{
    (void)state;
    static const char *const with_comma[] = {
        "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR", "lac_COMMA",
    };
    everything e;
    for (size_t i = 0; i < sizeof(with_comma) / sizeof(with_comma[0]); i++) {
        if (setlocale(LC_NUMERIC, with_comma[i]) != NULL) {
            const lac_status status = read_spec("all:0.25", &e);
            (void)setlocale(LC_NUMERIC, "C");
            assert_ok(status);
            assert_true(e.ratio == 0.25);
            return;
        }
    }
    print_message("skipped: no locale with a decimal comma is installed\n");
    skip();
}

static void the_first_key_may_be_left_out(void **state)
{
    (void)state;
    everything e;
    assert_ok(read_spec("all:0.5,count=2", &e));
    assert_true(e.ratio == 0.5);
    assert_int_equal(e.count, 2);
}

static void keys_have_other_names(void **state)
{
    (void)state;
    everything e;
    assert_ok(read_spec("all:how_many=9,consensus_stepsize=auto", &e));
    assert_int_equal(e.count, 9);
    assert_int_equal(e.gamma.word, 0);
}

static void an_alias_sets_other_defaults(void **state)
{
    (void)state;
    everything e;
    assert_ok(read_spec("some", &e));
    assert_int_equal(e.norm, 1);
    assert_int_equal(e.count, 7);
    assert_ok(read_spec("some:0.25,count=8", &e));
    assert_true(e.ratio == 0.25);
    assert_int_equal(e.norm, 1);
    assert_int_equal(e.count, 8);
}

static const struct {
    const char *spec;
    lac_status status;
    const char *message;
} cases[] = {
    {"", LAC_ERR_NOTFOUND,
     "no thing is named \"\"; `laconic list` shows those there are"},
    {"al", LAC_ERR_NOTFOUND,
     "no thing is named \"al\"; `laconic list` shows those there are"},
    {"all:0", LAC_ERR_INVALID,
     "all: ratio is \"0\", expected a number above 0 to 1"},
    {"all:1.0001", LAC_ERR_INVALID,
     "all: ratio is \"1.0001\", expected a number above 0 to 1"},
    {"all:nan", LAC_ERR_INVALID,
     "all: ratio is \"nan\", expected a number above 0 to 1"},
    {"all:0x1p-2", LAC_ERR_INVALID,
     "all: ratio is \"0x1p-2\", expected a number above 0 to 1"},
    {"all:(0.5)", LAC_ERR_INVALID,
     "all: ratio is \"(0.5)\", expected a number above 0 to 1"},
    {"all:0,5", LAC_ERR_INVALID,
     "all: ratio is \"0\", expected a number above 0 to 1"},
    {"all:ratio=", LAC_ERR_INVALID,
     "all: ratio is \"\", expected a number above 0 to 1"},
    {"some:count=0", LAC_ERR_INVALID,
     "some: count is \"0\", expected a whole number from 1 to 4294967295"},
    {"all:count=-1", LAC_ERR_INVALID,
     "all: count is \"-1\", expected a whole number from 1 to 4294967295"},
    {"all:count=1e30", LAC_ERR_INVALID,
     "all: count is \"1e30\", expected a whole number from 1 to "
     "4294967295"},
    {"all:count=1.5", LAC_ERR_INVALID,
     "all: count is \"1.5\", expected a whole number from 1 to "
     "4294967295"},
    {"all:flag=true", LAC_ERR_INVALID,
     "all: flag is \"true\", expected one of yes|no"},
    {"all:norm=3", LAC_ERR_INVALID,
     "all: norm is \"3\", expected one of 2|inf"},
    {"all:gamma=fast", LAC_ERR_INVALID,
     "all: gamma is \"fast\", expected auto or a number from 0 to 2"},
    {"all:0.5,2", LAC_ERR_INVALID,
     "all: no setting is named \"2\", expected ratio, count, flag, norm, "
     "gamma, path, server"},
    {"all:size=2", LAC_ERR_INVALID,
     "all: no setting is named \"size\", expected ratio, count, flag, "
     "norm, gamma, path, server"},
    {"all:rtaio=2", LAC_ERR_INVALID,
     "all: no setting is named \"rtaio\", expected ratio, count, flag, "
     "norm, gamma, path, server; did you mean ratio?"},
    {"all:0.5,severs=2", LAC_ERR_INVALID,
     "all: no setting is named \"severs\", expected ratio, count, flag, "
     "norm, gamma, path, server; did you mean server?"},
    {"all:norn=2", LAC_ERR_INVALID,
     "all: no setting is named \"norn\", expected ratio, count, flag, "
     "norm, gamma, path, server; did you mean norm?"},
    {"all:nrmo=2", LAC_ERR_INVALID,
     "all: no setting is named \"nrmo\", expected ratio, count, flag, "
     "norm, gamma, path, server; did you mean norm?"},
    {"all:oath=2", LAC_ERR_INVALID,
     "all: no setting is named \"oath\", expected ratio, count, flag, "
     "norm, gamma, path, server; did you mean path?"},
    {"all:a_very_long_name_that_is_not_that_of_any_setting=2", LAC_ERR_INVALID,
     "all: no setting is named "
     "\"a_very_long_name_that_is_not_that_of_any_setting\", expected ratio, "
     "count, flag, norm, gamma, path, server"},
    {"all:=2", LAC_ERR_INVALID,
     "all: no setting is named \"\", expected ratio, count, flag, norm, "
     "gamma, path, server"},
    {"all:0.5,count", LAC_ERR_INVALID,
     "all: count has no value, expected count=VALUE"},
    {"all:count=1,number=2", LAC_ERR_INVALID, "all: count is given twice"},
    {"all:count=1,", LAC_ERR_INVALID, "all: nothing follows the last comma"},
    {"all:server=(a", LAC_ERR_INVALID,
     "spec: parentheses do not match in \"server=(a\""},
    {"all:server=a)", LAC_ERR_INVALID,
     "spec: parentheses do not match in \"server=a)\""},
    {"bare:x=1", LAC_ERR_INVALID,
     "bare: \"x\" was given, but it has no settings"},
};

static void mistakes_are_explained(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        everything e;
        assert_fails(
            read_spec(cases[i].spec, &e), cases[i].status, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_come_from_the_table),
        cmocka_unit_test(every_type_can_be_given),
        cmocka_unit_test(the_locale_of_the_program_does_not_matter),
        cmocka_unit_test(the_first_key_may_be_left_out),
        cmocka_unit_test(keys_have_other_names),
        cmocka_unit_test(an_alias_sets_other_defaults),
        cmocka_unit_test(mistakes_are_explained),
    };
    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
