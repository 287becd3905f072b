// SPDX-License-Identifier: MIT
// The command line of a subcommand: options as "--name value" or "--name=value"
// in any order, with arguments between them. Everything after a lone "--" is an
// argument. An option may have a brief form, "-n value".
#include "cli/options/command.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/report/wrap.h"

enum {
    OPTIONS_MAX = 64, // one bit each in `given`
    HELP_SIZE = 256,
    USAGE_INDENT = 14, // "usage: laconic"
};

// Finds the option that text[0..len) names.
static const cli_option *find_option(
    const cli_option *options, const char *text, size_t len)
{
    for (const cli_option *o = options; o->name != NULL; o++) {
        if (strlen(o->name) == len && memcmp(o->name, text, len) == 0) {
            return o;
        }
    }
    return NULL;
}

static lac_status unknown_option(const cli_command *command, const char *text)
{
    const size_t dashes = strspn(text, "-") < 2 ? 1 : 2;
    const size_t len = strcspn(text + dashes, "=");
    char word[64];
    (void)snprintf(
        word, sizeof(word), "%.*s", (int)(len < 63 ? len : 63), text + dashes);
    if (len == 1 && dashes == 1) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: unknown option -%s, expected --NAME",
            command->name, word);
    }
    const char *closest = NULL;
    size_t distance = CLI_CLOSE + 1;
    for (const cli_option *o = command->options; o->name != NULL; o++) {
        if (o->help != NULL && cli_closer(word, o->name, &distance)) {
            closest = o->name;
        }
    }
    return lac_fail(
        LAC_ERR_INVALID, "%s: unknown option %.*s%s%s%s%s", command->name,
        (int)dashes, text, word, closest == NULL ? "" : "; did you mean --",
        closest == NULL ? "" : closest, closest == NULL ? "" : "?");
}

// Finds the option whose brief form is `word`.
static const cli_option *find_brief(const cli_option *options, const char *word)
{
    const bool brief = word[0] == '-' && word[1] != '\0' && word[2] == '\0';
    for (const cli_option *o = options; brief && o->name != NULL; o++) {
        if (o->brief == word[1]) {
            return o;
        }
    }
    return NULL;
}

const cli_option *cli_option_named(const cli_option *options, const char *word)
{
    const cli_option *const brief = find_brief(options, word);
    if (brief != NULL || strncmp(word, "--", 2) != 0) {
        return brief;
    }
    return find_option(options, word + 2, strcspn(word + 2, "="));
}

static bool is_option(const cli_command *command, const char *word)
{
    return strncmp(word, "--", 2) == 0 ||
           find_brief(command->options, word) != NULL;
}

// Reads the option at argv[*i_inout] and moves past its value.
static lac_status read_option(
    const cli_command *command, int argc, char **argv, int *i_inout,
    void *settings, uint64_t *given)
{
    const char *const text = argv[*i_inout] + 2;
    const size_t len = strcspn(text, "=");
    const cli_option *const o =
        cli_option_named(command->options, argv[*i_inout]);
    if (o == NULL) {
        return unknown_option(command, argv[*i_inout]);
    }
    *given |= (uint64_t)1 << (o - command->options);
    const char *value = text[len] == '=' ? text + len + 1 : NULL;
    if (o->type == CLI_OPTION_FLAG) {
        if (value != NULL) {
            return lac_fail(
                LAC_ERR_INVALID, "%s: --%s takes no value, found \"%s\"",
                command->name, o->name, value);
        }
        return cli_option_store(o, "", settings);
    }
    if (value == NULL && *i_inout + 1 < argc &&
        strncmp(argv[*i_inout + 1], "--", 2) != 0) {
        value = argv[++*i_inout];
    }
    if (value == NULL) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: --%s has no value, expected --%s %s",
            command->name, o->name, o->name, o->value);
    }
    return cli_option_store(o, value, settings);
}

// Stores the defaults, and writes which options are required.
static lac_status store_defaults(
    const cli_command *command, void *settings, uint64_t *required_out)
{
    *required_out = 0;
    for (size_t i = 0; command->options[i].name != NULL; i++) {
        const cli_option *const o = &command->options[i];
        if (i == OPTIONS_MAX) {
            return lac_fail(
                LAC_ERR_INVALID, "%s: more than %d options", command->name,
                OPTIONS_MAX);
        }
        const bool none = o->default_value != NULL &&
                          *o->default_value == '\0' &&
                          o->type != CLI_OPTION_TEXT;
        if (o->default_value != NULL && !none) {
            LAC_TRY(cli_option_store(o, o->default_value, settings));
        } else if (o->type != CLI_OPTION_FLAG && !none) {
            *required_out |= (uint64_t)1 << i;
        }
    }
    return LAC_OK;
}

static lac_status extra_argument(const cli_command *command, const char *word)
{
    if (word[0] == '-' && isalpha((unsigned char)word[1])) {
        return unknown_option(command, word);
    }
    return lac_fail(
        LAC_ERR_INVALID, "%s: unexpected argument \"%s\", expected %s",
        command->name, word,
        *command->arguments == '\0' ? "only options" : command->arguments);
}

static lac_status check_complete(
    const cli_command *command, uint64_t missing, size_t count, char **argv)
{
    if (count > command->arguments_max) {
        return extra_argument(command, argv[command->arguments_max]);
    }
    if (count < command->arguments_min) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %zu argument%s given, expected %s",
            command->name, count, count == 1 ? " is" : "s are",
            command->arguments);
    }
    for (size_t i = 0; command->options[i].name != NULL; i++) {
        if (missing >> i & 1) {
            return lac_fail(
                LAC_ERR_INVALID, "%s: --%s %s is missing", command->name,
                command->options[i].name, command->options[i].value);
        }
    }
    for (size_t i = 0; i < count && !command->command_line; i++) {
        if (*argv[i] == '\0') {
            return lac_fail(
                LAC_ERR_INVALID, "%s: argument %zu is empty, expected %s",
                command->name, i + 1, command->arguments);
        }
    }
    return LAC_OK;
}

lac_status cli_parse(
    const cli_command *command, int argc, char **argv, void *settings,
    size_t *count_out)
{
    uint64_t required = 0, given = 0;
    size_t count = 0;
    bool options = true;
    memset(settings, 0, command->settings_size);
    LAC_TRY(store_defaults(command, settings, &required));
    for (int i = 0; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && is_option(command, argv[i])) {
            LAC_TRY(read_option(command, argc, argv, &i, settings, &given));
        } else {
            argv[count++] = argv[i];
            options = options && !command->command_line;
        }
    }
    LAC_TRY(check_complete(command, required & ~given, count, argv));
    if (command->given_offset != 0) {
        memcpy(
            (unsigned char *)settings + command->given_offset, &given,
            sizeof(given));
    }
    *count_out = count;
    return LAC_OK;
}

// Writes the left side of an option's help, "name VALUE, -n VALUE".
static size_t write_left(const cli_option *o, char out[CLI_COLUMNS])
{
    const char *const space = o->value == NULL ? "" : " ";
    const char *const value = o->value == NULL ? "" : o->value;
    int len = 0;
    if (o->brief == 0) {
        len = snprintf(out, CLI_COLUMNS, "%s%s%s", o->name, space, value);
    } else {
        len = snprintf(
            out, CLI_COLUMNS, "%s%s%s, -%c%s%s", o->name, space, value,
            o->brief, space, value);
    }
    return len < 0 ? 0 : (size_t)len;
}

// Writes the right side, "help: a|b (default)".
static void write_right(const cli_option *o, char out[HELP_SIZE])
{
    const bool choice = o->type == CLI_OPTION_CHOICE;
    const bool required =
        o->default_value == NULL && o->type != CLI_OPTION_FLAG;
    const char *const shown = required ? "required" : o->default_value;
    const bool none = shown == NULL || *shown == '\0';
    (void)snprintf(
        out, HELP_SIZE, "%s%s%s%s%s%s", o->help, choice ? ": " : "",
        choice ? o->choices : "", none ? "" : " (", none ? "" : shown,
        none ? "" : ")");
}

static void print_option(const cli_option *o, size_t width)
{
    char left[CLI_COLUMNS], right[HELP_SIZE];
    (void)write_left(o, left);
    write_right(o, right);
    printf("  --%-*s  ", (int)width, left);
    cli_wrap(right, width + 6, stdout);
}

// Prints a word of the usage, on a new line if it does not fit.
static void print_word(const char *word, size_t *column_inout)
{
    const size_t len = 1 + strlen(word);
    if (*column_inout + len > CLI_COLUMNS) {
        printf("\n%*s", USAGE_INDENT, "");
        *column_inout = USAGE_INDENT;
    }
    printf(" %s", word);
    *column_inout += len;
}

static void print_usage(const cli_command *command)
{
    char word[CLI_COLUMNS];
    size_t column = strlen("usage: laconic ") + strlen(command->name);
    printf("usage: laconic %s", command->name);
    for (const cli_option *o = command->options; o->name != NULL; o++) {
        const bool required = o->default_value == NULL && o->value != NULL;
        if (o->help == NULL) {
            continue;
        }
        (void)snprintf(
            word, sizeof(word), "%s--%s%s%s%s", required ? "" : "[", o->name,
            o->value == NULL ? "" : " ", o->value == NULL ? "" : o->value,
            required ? "" : "]");
        print_word(word, &column);
    }
    if (*command->arguments != '\0') {
        print_word(command->arguments, &column);
    }
    printf("\n\n");
}

void cli_help(const cli_command *command)
{
    char left[CLI_COLUMNS];
    size_t width = strlen("help");
    print_usage(command);
    printf("%s\n\n", command->details);
    for (const cli_option *o = command->options; o->name != NULL; o++) {
        const size_t left_width = o->help == NULL ? 0 : write_left(o, left);
        width = left_width > width ? left_width : width;
    }
    for (const cli_option *o = command->options; o->name != NULL; o++) {
        if (o->help != NULL) {
            print_option(o, width);
        }
    }
    printf("  --%-*s  ", (int)width, "help");
    cli_wrap(
        "print this text, with --no-pager without a pager", width + 6, stdout);
    if (command->notes != NULL) {
        printf("\n");
        command->notes(stdout);
    }
}

// Returns the bytes of a control character at c, in ASCII or UTF-8, else 0.
static size_t control_length(const unsigned char *c)
{
    if (c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0) {
        return 2;
    }
    return c[0] < ' ' || c[0] == 0x7F ? 1 : 0;
}

void cli_print_message(const char *prefix)
{
    cli_print_text(prefix, lac_error_message());
}

void cli_print_text(const char *prefix, const char *message)
{
    char text[CLI_MESSAGE_SIZE];
    size_t len = 0;
    const unsigned char *c = (const unsigned char *)message;
    while (*c != '\0' && len + 1 < sizeof(text)) {
        const size_t control = control_length(c);
        text[len++] = control > 0 ? '?' : (char)*c;
        c += control > 0 ? control : 1;
    }
    text[len] = '\0';
    // In one call, since several workers may print.
    (void)fprintf(stderr, "laconic: %s%s\n", prefix, text);
}

int cli_failed(void)
{
    (void)fflush(stdout);
    cli_print_message("");
    return CLI_FAILED;
}

int cli_misused(const char *command)
{
    (void)cli_failed();
    (void)fprintf(
        stderr, "try `laconic %s%s--help`\n", command == NULL ? "" : command,
        command == NULL ? "" : " ");
    return CLI_USAGE;
}

int cli_rejected(const char *command, lac_status status)
{
    return status == LAC_ERR_INVALID || status == LAC_ERR_NOTFOUND
               ? cli_misused(command)
               : cli_failed();
}
