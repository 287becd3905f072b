// SPDX-License-Identifier: MIT
// What shells can complete a word of the command line with.
#ifndef LACONIC_CLI_COMPLETE_CANDIDATES_H
#define LACONIC_CLI_COMPLETE_CANDIDATES_H

#include <stddef.h>
#include <stdio.h>

// cli_candidates prints the candidates for the last of `count` words that
// follow `laconic` on a command line, a line each: the whole word, a tab, and
// its description. The line ":files" or ":folders" stands for names of files or
// folders that begin with the word or, after "--option=", with its value.
void cli_candidates(size_t count, char *const *words, FILE *stream);

#endif
