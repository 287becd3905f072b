// SPDX-License-Identifier: MIT
// Texts in HTML and SVG.
#ifndef LACONIC_CLI_REPORT_MARKUP_H
#define LACONIC_CLI_REPORT_MARKUP_H

#include <stdio.h>

// cli_markup_text prints a text of any bytes as the content of an element or of
// a quoted attribute. Control characters are left out; a byte that is not UTF-8
// becomes U+FFFD.
void cli_markup_text(FILE *f, const char *text);

#endif
