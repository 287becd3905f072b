// SPDX-License-Identifier: MIT
// Options: one typed table defines parsing, defaults and help.
#ifndef LACONIC_CLI_OPTIONS_OPTION_H
#define LACONIC_CLI_OPTIONS_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

// The syntax of an option and the C type of its field.
typedef enum cli_option_type {
    CLI_OPTION_TEXT,        // const char *, borrowed from argv
    CLI_OPTION_TEXTS,       // cli_texts: the option may be given again
    CLI_OPTION_U64,         // uint64_t in [min, max]
    CLI_OPTION_F64,         // double in [low, high]
    CLI_OPTION_FLAG,        // bool; takes no value
    CLI_OPTION_CHOICE,      // uint32_t: the position of a word in `choices`
    CLI_OPTION_F64_OR_WORD, // lac_number_or_word: either of the above
} cli_option_type;

// The values of an option in their order.
enum { CLI_TEXTS_MAX = 26 };
typedef struct cli_texts {
    const char *items[CLI_TEXTS_MAX]; // borrowed from argv
    size_t count;
} cli_texts;

// One --name option, stored at `offset` in the command's settings.
typedef struct cli_option {
    const char *name; // NULL ends the table
    cli_option_type type;
    size_t offset;
    const char *value; // placeholder in the help, "SPEC"; NULL for a flag
    const char *default_value; // as a user would write it; NULL for a flag and
                               // for an option that is required; "" for a
                               // number that is 0, the first word, or no
                               // text, unless it is given
    uint64_t min, max;         // of CLI_OPTION_U64
    double low, high;          // of CLI_OPTION_F64
    const char *choices;       // words, separated by '|'; of CLI_OPTION_TEXT
                               // those that shells complete it with, or NULL
    const char *help;          // lower case, no full stop; NULL: not shown
    char brief;                // 'n' if "-n" is the option too; else 0
} cli_option;

// Options that several commands have; `settings` is the type they fill.
#define CLI_OPTION_JSON(settings)                                              \
    {                                                                          \
        .name = "json", .type = CLI_OPTION_FLAG,                               \
        .offset = offsetof(settings, json),                                    \
        .help = "print one JSON object instead of a table",                    \
    }
#define CLI_OPTION_SEED(settings)                                              \
    {                                                                          \
        .name = "seed", .type = CLI_OPTION_U64,                                \
        .offset = offsetof(settings, seed), .value = "N",                      \
        .default_value = "1", .max = UINT64_MAX,                               \
        .help = "seed of all random draws",                                    \
    }

#define CLI_OPTION_COMPRESSOR(settings)                                        \
    {                                                                          \
        .name = "compressor", .type = CLI_OPTION_TEXT,                         \
        .offset = offsetof(settings, compressor), .value = "SPEC",             \
        .default_value = "",                                                   \
        .help = "such as top-k:0.01, if the algorithm takes one",              \
    }
#define CLI_OPTION_LOCAL_STEPS(settings)                                       \
    {                                                                          \
        .name = "local-steps", .type = CLI_OPTION_U64,                         \
        .offset = offsetof(settings, local_steps), .value = "H",               \
        .default_value = "1", .min = 1, .max = 1000000000,                     \
        .help = "steps from one round to the next, as in train"                \
    }

#define CLI_OPTION_TOPOLOGY(settings)                                          \
    {                                                                          \
        .name = "topology", .type = CLI_OPTION_TEXT,                           \
        .offset = offsetof(settings, topology), .value = "SPEC",               \
        .default_value = "ring",                                               \
        .help = "neighbours of each worker in gossip",                         \
    }
#define CLI_OPTION_STEP_TIME(settings)                                         \
    {                                                                          \
        .name = "step-time", .type = CLI_OPTION_TEXT,                          \
        .offset = offsetof(settings, step_time), .value = "TIME",              \
        .default_value = "",                                                   \
        .help = "computation to add to each step, such as 229ms",              \
    }

// cli_given returns the text of an option, or NULL if it is empty.
static inline const char *cli_given(const char *text)
{
    return *text == '\0' ? NULL : text;
}

// cli_option_text returns the value of an option as a user would write it. It
// is stored in `text`, except for CLI_OPTION_TEXT.
enum { CLI_OPTION_TEXT_SIZE = 512 };
const char *cli_option_text(
    const cli_option *option, const void *settings,
    char text[CLI_OPTION_TEXT_SIZE]);

// cli_number_text writes a number with as few digits as give the same double
// again, at least those of %g: 0.3, not 0.29999999999999999.
void cli_number_text(double value, char text[CLI_OPTION_TEXT_SIZE]);

// cli_option_store parses `text` into the field of `option`. The error message
// names the option, what was found and what was expected.
// Fails with LAC_ERR_INVALID.
lac_status cli_option_store(
    const cli_option *option, const char *text, void *settings);

// cli_closer returns whether `name` is fewer than `*distance_inout` edits of
// one character away from `word`, and if so stores their number there. Case is
// no edit, and the beginning of a name is CLI_CLOSE edits away. Start with
// CLI_CLOSE + 1 to find only names that the user may have meant.
enum { CLI_CLOSE = 2 };
bool cli_closer(const char *word, const char *name, size_t *distance_inout);

#endif
