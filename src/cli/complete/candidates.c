// SPDX-License-Identifier: MIT
// Reads a command line up to the word to complete, by the same tables as the
// parser of options, and offers what may stand there.
#include "cli/complete/candidates.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cli/complete/word.h"
#include "cli/options/catalog.h"
#include "cli/options/commands.h"
#include "cli/report/pager.h"

// Whether a placeholder such as FILE, PATH or X.npy stands for a file.
static bool is_file(const char *placeholder)
{
    const char *const dot = strchr(placeholder, '.');
    return (dot != NULL && islower((unsigned char)dot[1])) ||
           strcmp(placeholder, "FILE") == 0 || strcmp(placeholder, "PATH") == 0;
}

// Returns the list of candidates for the value of an option that names nothing
// of the catalog.
static const char *value_list(const cli_option *option)
{
    if (option->choices != NULL) {
        return option->choices;
    }
    if (strcmp(option->value, "DIR") == 0) {
        return "@folders";
    }
    return is_file(option->value) ? "@files" : "";
}

static void offer_value(const cli_word *word, const cli_option *option)
{
    size_t count = 0;
    const cli_kind *const kinds = cli_kinds(&count);
    const char *const list = option->value == NULL ? "" : value_list(option);
    cli_word_offer_list(word, list, strlen(list));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(option->name, kinds[i].option) == 0) {
            cli_word_offer_spec(word, &kinds[i]);
        }
    }
}

// Offers the options that have not been given.
static void offer_options(
    const cli_word *word, const cli_command *command, uint64_t given)
{
    for (size_t i = 0; command->options[i].name != NULL; i++) {
        const cli_option *const o = &command->options[i];
        char name[64];
        (void)snprintf(name, sizeof(name), "--%s", o->name);
        if (o->help != NULL && (given >> i & 1) == 0) {
            cli_word_offer(word, name, o->help);
        }
    }
    cli_word_offer(word, "--help", "print the help of the command");
}

// Offers what argument number `index` of a command may be.
static void offer_argument(
    const cli_word *word, const cli_command *command, size_t index)
{
    const char *list =
        command->completes == NULL ? "@files" : command->completes;
    if (index >= command->arguments_max) {
        return;
    }
    for (; index > 0 && strchr(list, ' ') != NULL; index--) {
        list = strchr(list, ' ') + 1;
    }
    cli_word_offer_list(word, list, strcspn(list, " "));
}

// Where a command line has got to before the word to complete.
typedef struct position {
    bool options;            // may still follow
    const cli_option *value; // expected next, of this option; or NULL
    uint64_t given;          // bit i: option i
    size_t arguments;
} position;

static void read_word(const cli_command *command, const char *word, position *p)
{
    const cli_option *const o =
        p->options ? cli_option_named(command->options, word) : NULL;
    if (p->value != NULL && strncmp(word, "--", 2) != 0) {
        p->value = NULL;
        return;
    }
    p->value = NULL;
    if (o != NULL) {
        const bool complete =
            o->type == CLI_OPTION_FLAG || strchr(word, '=') != NULL;
        p->value = complete ? NULL : o;
        p->given |= (uint64_t)1 << (o - command->options);
    } else if (p->options && strcmp(word, "--") == 0) {
        p->options = false;
    } else if (!p->options || strncmp(word, "--", 2) != 0) {
        p->arguments++;
    }
}

static void offer_word(
    const cli_command *command, const char *text, const position *p,
    FILE *stream)
{
    cli_word word = {text, 0, stream};
    const bool dashes = strncmp(text, "--", 2) == 0;
    const char *const equals = strchr(text, '=');
    if (p->value != NULL && !dashes) {
        offer_value(&word, p->value);
    } else if (p->options && dashes && equals != NULL) {
        const cli_option *const o = cli_option_named(command->options, text);
        word.fixed = (size_t)(equals + 1 - text);
        if (o != NULL) {
            offer_value(&word, o);
        }
    } else if (p->options && (*text == '-' || command->arguments_max == 0)) {
        offer_options(&word, command, p->given);
    } else {
        offer_argument(&word, command, p->arguments);
    }
}

// Reads words[1..count-1), the arguments of a command. Returns the index of the
// first word of a command line among them, or 0.
static size_t read_words(
    const cli_command *command, size_t count, char *const *words,
    position *p_out)
{
    const bool nested = command->completes != NULL &&
                        strcmp(command->completes, "@command") == 0;
    *p_out = (position){.options = true};
    for (size_t i = 1; i + 1 < count; i++) {
        read_word(command, words[i], p_out);
        if (nested && p_out->arguments > 0) {
            return i;
        }
    }
    return 0;
}

// Offers what may follow a word that is no command.
static void offer_without_command(
    bool nested, size_t count, char *const *words, FILE *stream)
{
    const cli_word word = {words[count - 1], 0, stream};
    if (nested) {
        cli_word_offer_list(&word, "@files", strlen("@files"));
    } else if (count == 2 && strcmp(words[0], "help") == 0) {
        cli_word_offer_list(&word, "@commands", strlen("@commands"));
    }
}

static void offer_first(const cli_word *word)
{
    cli_word_offer_list(word, "@commands", strlen("@commands"));
    cli_word_offer(word, "help", "print the help of a command");
    cli_word_offer(word, "--help", "list the commands");
    cli_word_offer(word, "--version", "print the version");
    cli_word_offer(word, CLI_NO_PAGER, "print help and lists as they are");
}

void cli_candidates(size_t count, char *const *words, FILE *stream)
{
    position p = {0};
    size_t next = 0;
    bool nested = false;
    while (count > 1 && strcmp(words[0], CLI_NO_PAGER) == 0) {
        words++;
        count--;
    }
    if (count == 1) {
        offer_first(&(cli_word){words[0], 0, stream});
        return;
    }
    do {
        const cli_command *const command =
            count == 0 ? NULL : cli_command_find(words[0]);
        if (command == NULL) {
            offer_without_command(nested, count, words, stream);
            return;
        }
        next = read_words(command, count, words, &p);
        if (next == 0) {
            offer_word(command, words[count - 1], &p, stream);
        }
        words += next;
        count -= next;
        nested = true;
    } while (next > 0);
}
