// SPDX-License-Identifier: MIT
// Text in lines that fit a terminal.
#ifndef LACONIC_CLI_REPORT_WRAP_H
#define LACONIC_CLI_REPORT_WRAP_H

#include <stddef.h>
#include <stdio.h>

// The columns of a terminal. Everything for people fits into them.
enum { CLI_COLUMNS = 80 };

// cli_columns returns the columns of UTF-8: its characters.
size_t cli_columns(const char *text);

// cli_line returns how many bytes of `text` the first line of at most `columns`
// columns has. It ends before a space; a word that is longer is cut, after a
// comma, a plus or a slash if it has one. Of a text that is not empty it has at
// least one character.
size_t cli_line(const char *text, size_t columns);

// cli_wrap prints `text`, which begins in column `indent`, and a line feed. Its
// other lines are indented as far.
void cli_wrap(const char *text, size_t indent, FILE *stream);

#endif
