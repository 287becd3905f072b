// SPDX-License-Identifier: MIT
// The command line of a subcommand: what is accepted, and the error messages.
#include <string.h>

#include "cli/options/command.h"
#include "lac_test.h"

typedef struct settings {
    const char *text;
    uint64_t number;
    double real;
    bool flag;
    uint32_t choice;
    uint64_t count;
    lac_number_or_word rate;
} settings;

static const cli_option options[] = {
    {.name = "text",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, text),
     .value = "SPEC",
     .help = "required"},
    {.name = "number",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, number),
     .value = "N",
     .default_value = "5",
     .min = 2,
     .max = UINT64_MAX,
     .help = "a whole number"},
    {.name = "real",
     .type = CLI_OPTION_F64,
     .offset = offsetof(settings, real),
     .value = "R",
     .default_value = "0.5",
     .low = 0,
     .high = 1,
     .help = "a number"},
    {.name = "flag",
     .type = CLI_OPTION_FLAG,
     .offset = offsetof(settings, flag),
     .help = "no value"},
    {.name = "choice",
     .type = CLI_OPTION_CHOICE,
     .offset = offsetof(settings, choice),
     .value = "WORD",
     .default_value = "b",
     .choices = "a|b|see",
     .help = "a word"},
    {.name = "count",
     .brief = 'n',
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, count),
     .value = "N",
     .default_value = "",
     .min = 1,
     .max = 9,
     .help = "0 unless it is given"},
    {.name = "rate",
     .type = CLI_OPTION_F64_OR_WORD,
     .offset = offsetof(settings, rate),
     .value = "X",
     .default_value = "",
     .low = 0,
     .high = 10,
     .choices = "default|auto",
     .help = "a number or a word"},
    {0},
};

static const cli_command command = {
    .name = "try",
    .arguments = "IN [OUT]",
    .arguments_min = 1,
    .arguments_max = 2,
    .options = options,
    .settings_size = sizeof(settings),
};

enum { WORDS_MAX = 16 };

typedef struct outcome {
    settings settings;
    char *words[WORDS_MAX];
    size_t count;
} outcome;

static char line[256];

// Splits a line at spaces and parses it.
static lac_status parse_as(const cli_command *as, const char *text, outcome *o)
{
    int argc = 0;
    memset(o, 0, sizeof(*o));
    memcpy(line, text, strlen(text) + 1);
    for (char *at = line; at != NULL && argc < WORDS_MAX; argc++) {
        o->words[argc] = at;
        at = strchr(at, ' ');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    return cli_parse(as, argc, o->words, &o->settings, &o->count);
}

static lac_status parse(const char *text, outcome *o)
{
    return parse_as(&command, text, o);
}

static void missing_options_have_their_defaults(void **state)
{
    (void)state;
    outcome o;
    assert_ok(parse("--text t in", &o));
    assert_string_equal(o.settings.text, "t");
    assert_int_equal(o.settings.number, 5);
    assert_true(o.settings.real == 0.5);
    assert_false(o.settings.flag);
    assert_int_equal(o.settings.choice, 1);
    assert_int_equal(o.settings.count, 0);
    assert_int_equal(o.count, 1);
}

static void options_and_arguments_come_in_any_order(void **state)
{
    (void)state;
    outcome o;
    assert_ok(parse(
        "in --choice see --flag --number=18446744073709551615 out "
        "--real 1e-1 --text=a=b",
        &o));
    assert_string_equal(o.settings.text, "a=b");
    assert_true(o.settings.number == UINT64_MAX);
    assert_true(o.settings.real == 0.1);
    assert_true(o.settings.flag);
    assert_int_equal(o.settings.choice, 2);
    assert_int_equal(o.count, 2);
    assert_string_equal(o.words[0], "in");
    assert_string_equal(o.words[1], "out");
}

static void a_number_may_be_a_word(void **state)
{
    (void)state;
    const cli_option *rate = options;
    char text[CLI_OPTION_TEXT_SIZE];
    outcome o;
    while (strcmp(rate->name, "rate") != 0) {
        rate++;
    }
    assert_ok(parse("--text t in", &o));
    assert_int_equal(o.settings.rate.word, 0);
    assert_string_equal(cli_option_text(rate, &o.settings, text), "default");
    assert_ok(parse("--text t in --rate auto", &o));
    assert_int_equal(o.settings.rate.word, 1);
    assert_string_equal(cli_option_text(rate, &o.settings, text), "auto");
    assert_ok(parse("--text t in --rate 0.5", &o));
    assert_int_equal(o.settings.rate.word, -1);
    assert_true(o.settings.rate.value == 0.5);
    assert_string_equal(cli_option_text(rate, &o.settings, text), "0.5");
    assert_fails(
        parse("--text t in --rate 11", &o), LAC_ERR_INVALID,
        "--rate is \"11\", expected a number from 0 to 10, or default|auto");
    assert_fails(
        parse("--text t in --rate aut", &o), LAC_ERR_INVALID,
        "--rate is \"aut\", expected a number from 0 to 10, or default|auto");
}

static void the_last_of_repeated_options_wins(void **state)
{
    (void)state;
    outcome o;
    assert_ok(parse("--text a in --text b", &o));
    assert_string_equal(o.settings.text, "b");
}

static void two_dashes_end_the_options(void **state)
{
    (void)state;
    outcome o;
    assert_ok(parse("--text t -- --flag -", &o));
    assert_false(o.settings.flag);
    assert_int_equal(o.count, 2);
    assert_string_equal(o.words[0], "--flag");
}

static void an_option_may_have_a_brief_form(void **state)
{
    (void)state;
    outcome o;
    assert_ok(parse("--text t -n 4 in -x", &o));
    assert_int_equal(o.settings.count, 4);
    assert_int_equal(o.count, 2);
    assert_string_equal(o.words[1], "-x");
    assert_ok(parse("--text t -- -n 4", &o));
    assert_int_equal(o.settings.count, 0);
    assert_string_equal(o.words[0], "-n");
}

static void a_command_line_is_left_as_it_is(void **state)
{
    (void)state;
    outcome o;
    cli_command launcher = command;
    launcher.command_line = true;
    launcher.arguments_max = WORDS_MAX;
    assert_ok(parse_as(&launcher, "--text t run --flag  -n --", &o));
    assert_false(o.settings.flag);
    assert_int_equal(o.count, 5);
    assert_string_equal(o.words[0], "run");
    assert_string_equal(o.words[1], "--flag");
    assert_string_equal(o.words[2], "");
    assert_string_equal(o.words[4], "--");
}

static void assert_rejected(const char *text, const char *message)
{
    outcome o;
    assert_fails(parse(text, &o), LAC_ERR_INVALID, message);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    assert_rejected("in", "try: --text SPEC is missing");
    assert_rejected(
        "--text t", "try: 0 arguments are given, expected IN [OUT]");
    assert_rejected(
        "--text t a b c", "try: unexpected argument \"c\", expected IN [OUT]");
    assert_rejected("--text", "try: --text has no value, expected --text SPEC");
    assert_rejected(
        "--text --flag in", "try: --text has no value, expected --text SPEC");
    assert_rejected("--flag=yes", "try: --flag takes no value, found \"yes\"");
    assert_rejected(
        "--nmber 3", "try: unknown option --nmber; did you mean --number?");
    assert_rejected("--elsewhere", "try: unknown option --elsewhere");
    assert_rejected("-n", "try: --count has no value, expected --count N");
    assert_rejected(
        "-n 10", "--count is \"10\", expected a whole number from 1 to 9");
}

static void values_must_be_of_their_type(void **state)
{
    (void)state;
    static const char *const numbers[] = {
        "--number= --text t in",    "--number=x --text t in",
        "--number=-3 --text t in",  "--number=3x --text t in",
        "--number=1 --text t in",   "--number=18446744073709551616 --text t in",
        "--number=3.5 --text t in", "--number=+3 --text t in",
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        outcome o;
        assert_status(parse(numbers[i], &o), LAC_ERR_INVALID);
    }
    assert_rejected(
        "--number 1", "--number is \"1\", expected a whole number from 2 to "
                      "18446744073709551615");
    assert_rejected(
        "--real 1.5", "--real is \"1.5\", expected a number from 0 to 1");
    assert_rejected(
        "--real nan", "--real is \"nan\", expected a number from 0 to 1");
    assert_rejected("--choice s", "--choice is \"s\", expected one of a|b|see");
    assert_rejected("--choice=", "--choice is \"\", expected one of a|b|see");
}

static void close_names_are_found(void **state)
{
    (void)state;
    size_t distance = CLI_CLOSE + 1;
    assert_false(cli_closer("encode", "bench", &distance));
    assert_true(cli_closer("ncdoe", "encode", &distance));
    assert_int_equal(distance, 2);
    assert_true(cli_closer("encdoe", "encode", &distance));
    assert_int_equal(distance, 1);
    assert_false(cli_closer("encdoe", "decode", &distance));
    assert_true(cli_closer("encode", "encode", &distance));
    assert_int_equal(distance, 0);
    distance = CLI_CLOSE + 1;
    assert_false(cli_closer("", "ab", &distance));
    assert_false(cli_closer("ab", "ring", &distance));
    assert_true(cli_closer("ENCODE", "encode", &distance));
    assert_int_equal(distance, 0);
}

static void a_beginning_is_close_to_its_names(void **state)
{
    (void)state;
    size_t distance = CLI_CLOSE + 1;
    assert_false(cli_closer("al", "algorithm", &distance));
    assert_true(cli_closer("alg", "algorithm", &distance));
    assert_int_equal(distance, CLI_CLOSE);
    assert_false(cli_closer("alg", "algebra", &distance));
}

// Of a name of three characters, one may be wrong.
static void few_characters_allow_fewer_edits(void **state)
{
    (void)state;
    size_t distance = CLI_CLOSE + 1;
    assert_false(cli_closer("xyp", "mlp", &distance));
    assert_true(cli_closer("mpl", "mlp", &distance));
    distance = CLI_CLOSE + 1;
    assert_true(cli_closer("kin", "ring", &distance));
}

static void words_of_any_length_are_compared(void **state)
{
    (void)state;
    char word[200];
    size_t distance = CLI_CLOSE + 1;
    memset(word, 'a', sizeof(word));
    for (size_t len = 199; len > 0; len--) {
        word[len] = '\0';
        assert_false(cli_closer(word, "b", &distance));
        assert_false(cli_closer("b", word, &distance));
    }
}

static void numbers_have_as_few_digits_as_they_need(void **state)
{
    (void)state;
    const struct {
        double value;
        const char *expected;
    } cases[] = {
        {0.3, "0.3"},
        {0.1, "0.1"},
        {1e-9, "1e-09"},
        {100000, "100000"},
        {1234567, "1234567"},
        {0.1 + 0.2, "0.30000000000000004"},
        {0, "0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[CLI_OPTION_TEXT_SIZE];
        cli_number_text(cases[i].value, text);
        assert_string_equal(text, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_options_have_their_defaults),
        cmocka_unit_test(options_and_arguments_come_in_any_order),
        cmocka_unit_test(a_number_may_be_a_word),
        cmocka_unit_test(the_last_of_repeated_options_wins),
        cmocka_unit_test(two_dashes_end_the_options),
        cmocka_unit_test(an_option_may_have_a_brief_form),
        cmocka_unit_test(a_command_line_is_left_as_it_is),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(values_must_be_of_their_type),
        cmocka_unit_test(close_names_are_found),
        cmocka_unit_test(a_beginning_is_close_to_its_names),
        cmocka_unit_test(few_characters_allow_fewer_edits),
        cmocka_unit_test(words_of_any_length_are_compared),
        cmocka_unit_test(numbers_have_as_few_digits_as_they_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
