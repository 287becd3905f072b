// SPDX-License-Identifier: MIT
// Values of options, parsed by type; and the edit distance of two words.
#include "cli/options/option.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Characters of a word that may be the beginning of a name.
enum { BEGINNING = 3 };

static void *field(const cli_option *option, void *settings)
{
    return (unsigned char *)settings + option->offset;
}

static lac_status store_u64(
    const cli_option *option, const char *text, void *settings)
{
    char *end = NULL;
    errno = 0;
    const uint64_t value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 ||
        value < option->min || value > option->max) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--%s is \"%s\", expected a whole number from %" PRIu64
            " to %" PRIu64,
            option->name, text, option->min, option->max);
    }
    memcpy(field(option, settings), &value, sizeof(value));
    return LAC_OK;
}

static bool option_read_f64(
    const cli_option *option, const char *text, double *out)
{
    char *end = NULL;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*out) &&
           *out >= option->low && *out <= option->high;
}

static lac_status store_f64(
    const cli_option *option, const char *text, void *settings)
{
    double value = 0;
    if (!option_read_f64(option, text, &value)) {
        return lac_fail(
            LAC_ERR_INVALID, "--%s is \"%s\", expected a number from %g to %g",
            option->name, text, option->low, option->high);
    }
    memcpy(field(option, settings), &value, sizeof(value));
    return LAC_OK;
}

// Writes the position of a word in the choices of an option; false: not there.
static bool find_choice(
    const cli_option *option, const char *text, uint32_t *position_out)
{
    const size_t len = strlen(text);
    const char *word = option->choices;
    for (uint32_t i = 0; word != NULL; i++) {
        const size_t word_len = strcspn(word, "|");
        if (len == word_len && memcmp(text, word, len) == 0) {
            *position_out = i;
            return true;
        }
        word = word[word_len] == '|' ? word + word_len + 1 : NULL;
    }
    return false;
}

static lac_status store_choice(
    const cli_option *option, const char *text, void *settings)
{
    uint32_t position = 0;
    if (!find_choice(option, text, &position)) {
        return lac_fail(
            LAC_ERR_INVALID, "--%s is \"%s\", expected one of %s", option->name,
            text, option->choices);
    }
    memcpy(field(option, settings), &position, sizeof(position));
    return LAC_OK;
}

static lac_status store_f64_or_word(
    const cli_option *option, const char *text, void *settings)
{
    uint32_t position = 0;
    lac_number_or_word found = {.word = -1};
    if (find_choice(option, text, &position)) {
        found.word = (int32_t)position;
    } else if (!option_read_f64(option, text, &found.value)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--%s is \"%s\", expected a number from %g to %g, or %s",
            option->name, text, option->low, option->high, option->choices);
    }
    memcpy(field(option, settings), &found, sizeof(found));
    return LAC_OK;
}

static lac_status store_texts(
    const cli_option *option, const char *text, void *settings)
{
    cli_texts *const texts = field(option, settings);
    if (texts->count == CLI_TEXTS_MAX) {
        return lac_fail(
            LAC_ERR_INVALID, "--%s is given more than %d times", option->name,
            CLI_TEXTS_MAX);
    }
    texts->items[texts->count++] = text;
    return LAC_OK;
}

// Writes word number `index` of a list.
static void choice_text(
    const char *choices, uint32_t index, char text[CLI_OPTION_TEXT_SIZE])
{
    for (; index > 0; index--) {
        choices += strcspn(choices, "|") + 1;
    }
    (void)snprintf(
        text, CLI_OPTION_TEXT_SIZE, "%.*s", (int)strcspn(choices, "|"),
        choices);
}

void cli_number_text(double value, char text[CLI_OPTION_TEXT_SIZE])
{
    enum { FEWEST = 6, MOST = 17 }; // digits; 17 are enough for any double
    for (int digits = FEWEST; digits <= MOST; digits++) {
        (void)snprintf(text, CLI_OPTION_TEXT_SIZE, "%.*g", digits, value);
        const double found = strtod(text, NULL);
        if (!(found < value || found > value)) {
            return;
        }
    }
}

static void number_or_word_text(
    const cli_option *option, const lac_number_or_word *at,
    char text[CLI_OPTION_TEXT_SIZE])
{
    if (at->word < 0) {
        cli_number_text(at->value, text);
    } else {
        choice_text(option->choices, (uint32_t)at->word, text);
    }
}

const char *cli_option_text(
    const cli_option *option, const void *settings,
    char text[CLI_OPTION_TEXT_SIZE])
{
    const void *const at = (const unsigned char *)settings + option->offset;
    switch (option->type) {
    case CLI_OPTION_TEXT:
        return *(const char *const *)at;
    case CLI_OPTION_TEXTS: {
        const cli_texts *const texts = at;
        return texts->count == 0 ? "" : texts->items[texts->count - 1];
    }
    case CLI_OPTION_U64:
        (void)snprintf(
            text, CLI_OPTION_TEXT_SIZE, "%" PRIu64, *(const uint64_t *)at);
        break;
    case CLI_OPTION_F64:
        cli_number_text(*(const double *)at, text);
        break;
    case CLI_OPTION_CHOICE:
        choice_text(option->choices, *(const uint32_t *)at, text);
        break;
    case CLI_OPTION_F64_OR_WORD:
        number_or_word_text(option, at, text);
        break;
    case CLI_OPTION_FLAG:
        (void)snprintf(
            text, CLI_OPTION_TEXT_SIZE, "%s", *(const bool *)at ? "yes" : "no");
        break;
    }
    return text;
}

lac_status cli_option_store(
    const cli_option *option, const char *text, void *settings)
{
    switch (option->type) {
    case CLI_OPTION_TEXT:
        memcpy(field(option, settings), &text, sizeof(text));
        return LAC_OK;
    case CLI_OPTION_TEXTS:
        return store_texts(option, text, settings);
    case CLI_OPTION_U64:
        return store_u64(option, text, settings);
    case CLI_OPTION_F64:
        return store_f64(option, text, settings);
    case CLI_OPTION_CHOICE:
        return store_choice(option, text, settings);
    case CLI_OPTION_F64_OR_WORD:
        return store_f64_or_word(option, text, settings);
    case CLI_OPTION_FLAG:
        memcpy(field(option, settings), &(bool){true}, sizeof(bool));
        return LAC_OK;
    }
    return lac_fail(LAC_ERR_INVALID, "--%s has no type", option->name);
}

static int lower(char c)
{
    return tolower((unsigned char)c);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

// The Levenshtein distance, in which swapped neighbours count as one edit.
static size_t edits(const char *a, const char *b)
{
    enum { LONGEST = 63 };
    size_t table[LONGEST + 1][LONGEST + 1];
    const size_t a_len = strlen(a), b_len = strlen(b);
    if (a_len > LONGEST || b_len > LONGEST) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i <= a_len; i++) {
        for (size_t j = 0; j <= b_len; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = i + j;
                continue;
            }
            const bool same = lower(a[i - 1]) == lower(b[j - 1]);
            table[i][j] = least(table[i - 1][j], table[i][j - 1]) + 1;
            table[i][j] = least(table[i][j], table[i - 1][j - 1] + !same);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1])) {
                table[i][j] = least(table[i][j], table[i - 2][j - 2] + 1);
            }
        }
    }
    return table[a_len][b_len];
}

bool cli_closer(const char *word, const char *name, size_t *distance_inout)
{
    const size_t len = strlen(name), word_len = strlen(word);
    const bool begins =
        word_len >= BEGINNING && strncasecmp(word, name, word_len) == 0;
    size_t distance = edits(word, name);
    distance = begins && distance > CLI_CLOSE ? CLI_CLOSE : distance;
    if (distance >= *distance_inout || 2 * distance > len) {
        return false;
    }
    *distance_inout = distance;
    return true;
}
