// SPDX-License-Identifier: MIT
// Escapes texts for HTML and SVG. Names of files may have any bytes.
#include "cli/report/markup.h"

#include <stdbool.h>
#include <stddef.h>

// The length of the UTF-8 character at `text`, 0 if there is none. Overlong
// forms, surrogates and numbers above 10FFFF are none.
static size_t utf8_length(const unsigned char *text)
{
    const unsigned char first = text[0];
    const size_t len = first < 0x80                    ? 1
                       : first >= 0xc2 && first < 0xe0 ? 2
                       : first >= 0xe0 && first < 0xf0 ? 3
                       : first >= 0xf0 && first < 0xf5 ? 4
                                                       : 0;
    for (size_t i = 1; i < len; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    const bool wrong = (first == 0xe0 && text[1] < 0xa0) ||
                       (first == 0xed && text[1] >= 0xa0) ||
                       (first == 0xf0 && text[1] < 0x90) ||
                       (first == 0xf4 && text[1] >= 0x90);
    return wrong ? 0 : len;
}

static void put_ascii(FILE *f, unsigned char c)
{
    switch (c) {
    case '<':
        (void)fputs("&lt;", f);
        break;
    case '>':
        (void)fputs("&gt;", f);
        break;
    case '&':
        (void)fputs("&amp;", f);
        break;
    case '"':
        (void)fputs("&quot;", f);
        break;
    case '\'':
        (void)fputs("&#39;", f);
        break;
    default:
        if (c >= ' ' && c != 0x7f) {
            (void)fputc(c, f);
        }
    }
}

void cli_markup_text(FILE *f, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at != '\0') {
        const size_t len = utf8_length(at);
        if (len == 0) {
            (void)fputs("\xef\xbf\xbd", f);
        } else if (len == 1) {
            put_ascii(f, *at);
        } else {
            (void)fwrite(at, 1, len, f);
        }
        at += len == 0 ? 1 : len;
    }
}
