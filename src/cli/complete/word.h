// SPDX-License-Identifier: MIT
// One word to complete, and the candidates of a list or of the catalog.
#ifndef LACONIC_CLI_COMPLETE_WORD_H
#define LACONIC_CLI_COMPLETE_WORD_H

#include <stddef.h>
#include <stdio.h>

#include "cli/options/catalog.h"

// The word as typed so far. Candidates begin with its first `fixed` characters
// and replace the rest.
typedef struct cli_word {
    const char *text;
    size_t fixed;
    FILE *stream;
} cli_word;

// cli_word_offer prints a candidate if it begins with what was typed.
void cli_word_offer(
    const cli_word *word, const char *candidate, const char *about);

// cli_word_offer_list prints the candidates of a list as `completes` of a
// command has it.
void cli_word_offer_list(const cli_word *word, const char *list, size_t len);

// cli_word_offer_spec prints what may follow in a spec of a kind: names, keys
// or words of settings; for compressors in the last part of
// "A:key=value,...+B".
void cli_word_offer_spec(const cli_word *word, const cli_kind *kind);

#endif
