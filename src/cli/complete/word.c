// SPDX-License-Identifier: MIT
// Candidates of a list. Specs are completed part by part: a name, then the keys
// of its settings, then the words that a setting takes.
#include "cli/complete/word.h"

#include <stdbool.h>
#include <string.h>

#include "cli/options/catalog.h"
#include "cli/options/commands.h"

enum { TEXT_SIZE = 128 };

void cli_word_offer(
    const cli_word *word, const char *candidate, const char *about)
{
    const char *const typed = word->text + word->fixed;
    if (strncmp(candidate, typed, strlen(typed)) == 0) {
        (void)fprintf(
            word->stream, "%.*s%s\t%s\n", (int)word->fixed, word->text,
            candidate, about);
    }
}

// Offers the words of a setting, which has been typed up to its value.
static void offer_choices(const cli_word *word, const lac_param *param)
{
    const char *const choices =
        param->type == LAC_PARAM_BOOL ? "yes|no" : param->choices;
    if (choices != NULL) {
        cli_word_offer_list(word, choices, strlen(choices));
    }
}

// Offers the settings of an item, or the words of the one that was typed.
static void offer_settings(const cli_word *word, const cli_item *item)
{
    const char *const typed = word->text + word->fixed;
    const size_t key_len = strcspn(typed, "=");
    const lac_param *param;
    for (size_t i = 0; (param = cli_item_param(item, i)) != NULL; i++) {
        char key[TEXT_SIZE];
        if (typed[key_len] == '\0') {
            (void)snprintf(key, sizeof(key), "%s=", param->name);
            cli_word_offer(word, key, param->help);
        } else if (
            strlen(param->name) == key_len &&
            memcmp(param->name, typed, key_len) == 0) {
            const cli_word value = {
                word->text, word->fixed + key_len + 1, word->stream};
            offer_choices(&value, param);
        }
    }
}

void cli_word_offer_spec(const cli_word *word, const cli_kind *kind)
{
    cli_word part = *word;
    const char *const plus = strrchr(word->text + word->fixed, '+');
    if (plus != NULL && strcmp(kind->name, "compressors") == 0) {
        part.fixed = (size_t)(plus + 1 - word->text);
    }
    const char *const typed = part.text + part.fixed;
    const size_t name_len = strcspn(typed, ":");
    cli_item item;
    for (size_t i = 0; cli_kind_item(kind, i, &item); i++) {
        if (typed[name_len] == '\0') {
            cli_word_offer(&part, item.name, item.plugin->summary);
        } else if (
            strlen(item.name) == name_len &&
            memcmp(item.name, typed, name_len) == 0) {
            const char *const comma = strrchr(typed, ',');
            const char *const setting =
                comma == NULL ? typed + name_len : comma;
            part.fixed = (size_t)(setting + 1 - part.text);
            offer_settings(&part, &item);
            return;
        }
    }
}

static void offer_commands(const cli_word *word)
{
    size_t count = 0;
    const cli_command *const *const commands = cli_commands(&count);
    for (size_t i = 0; i < count; i++) {
        cli_word_offer(word, commands[i]->name, commands[i]->summary);
    }
}

static void offer_placeholder(const cli_word *word, const char *name)
{
    size_t count = 0;
    const cli_kind *const kinds = cli_kinds(&count);
    if (strcmp(name, "files") == 0 || strcmp(name, "folders") == 0) {
        (void)fprintf(word->stream, ":%s\n", name);
    } else if (strcmp(name, "commands") == 0) {
        offer_commands(word);
    } else if (strcmp(name, "command") == 0) {
        offer_commands(word);
        (void)fprintf(word->stream, ":files\n");
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, "kinds") == 0) {
            cli_word_offer(word, kinds[i].name, "");
        } else if (strcmp(name, kinds[i].name) == 0) {
            cli_word_offer_spec(word, &kinds[i]);
        }
    }
}

void cli_word_offer_list(const cli_word *word, const char *list, size_t len)
{
    const char *const end = list + len;
    while (list < end) {
        char text[TEXT_SIZE];
        size_t item_len = strcspn(list, "|");
        item_len =
            item_len < (size_t)(end - list) ? item_len : (size_t)(end - list);
        (void)snprintf(text, sizeof(text), "%.*s", (int)item_len, list);
        if (text[0] == '@') {
            offer_placeholder(word, text + 1);
        } else {
            cli_word_offer(word, text, "");
        }
        list += item_len + 1;
    }
}
