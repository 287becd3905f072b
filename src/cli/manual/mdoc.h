// SPDX-License-Identifier: MIT
// Writes texts of the command as mdoc, the macros of manual pages.
#ifndef LACONIC_CLI_MANUAL_MDOC_H
#define LACONIC_CLI_MANUAL_MDOC_H

#include <stdio.h>

// mdoc_words writes words of one line, to follow a macro on its line. No word
// of them is taken for a macro.
void mdoc_words(FILE *f, const char *text);

// mdoc_text writes paragraphs as --help prints them: lines that are filled,
// empty lines between paragraphs, and lines that are indented by four spaces,
// which stay as they are. Words between backticks are bold.
void mdoc_text(FILE *f, const char *text);

// mdoc_literal writes lines that stay as they are, but for the two spaces with
// which those of a table begin: the page indents them already.
void mdoc_literal(FILE *f, const char *text);

#endif
