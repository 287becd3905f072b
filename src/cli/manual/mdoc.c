// SPDX-License-Identifier: MIT
// Texts as mdoc. A minus is written as \-, so that options and names can be
// copied from the page. A line ends after a full stop, as mdoc demands; at its
// start a full stop would make it a macro. A word with a capital letter may be
// the name of a macro.
#include "cli/manual/mdoc.h"

#include <stdbool.h>
#include <string.h>

// Spaces before lines of a text that stay as they are, and before a table.
enum { INDENT = 4, TABLE_INDENT = 2 };

static void write_character(FILE *f, char c)
{
    if (c == '\\') {
        (void)fputs("\\e", f);
    } else if (c == '-') {
        (void)fputs("\\-", f);
    } else {
        (void)fputc(c, f);
    }
}

void mdoc_words(FILE *f, const char *text)
{
    while (*text != '\0') {
        const size_t len = strcspn(text, " ");
        const bool plain = *text >= 'a' && *text <= 'z';
        (void)fputs(plain ? " " : " \\&", f);
        for (size_t i = 0; i < len; i++) {
            if (text[i] == '"') {
                (void)fputs("\\(dq", f);
            } else {
                write_character(f, text[i]);
            }
        }
        text += len + strspn(text + len, " ");
    }
}

// Whether text[i] is the space after a full stop.
static bool ends_line(const char *text, size_t i)
{
    return i > 0 && text[i] == ' ' && text[i - 1] == '.';
}

// Writes text[0..len), a line. `*bold` is whether a backtick is open, also over
// the end of a line; NULL: the line stays as it is.
static void mdoc_line(FILE *f, const char *text, size_t len, bool *bold)
{
    bool first = true; // character of a line of the source
    for (size_t i = 0; i < len; i++) {
        if (first && (text[i] == '.' || text[i] == '\'')) {
            (void)fputs("\\&", f);
        }
        first = false;
        if (bold != NULL && text[i] == '`') {
            *bold = !*bold;
            (void)fputs(*bold ? "\\fB" : "\\fR", f);
        } else if (bold != NULL && ends_line(text, i)) {
            (void)fputc('\n', f);
            first = true;
        } else {
            write_character(f, text[i]);
        }
    }
    (void)fputc('\n', f);
}

static void begin_literal(FILE *f)
{
    (void)fputs(".Bd -literal -offset indent\n", f);
}

static void end_literal(FILE *f)
{
    (void)fputs(".Ed\n", f);
}

void mdoc_text(FILE *f, const char *text)
{
    bool bold = false, literal = false, gap = false;
    while (*text != '\0') {
        const size_t len = strcspn(text, "\n");
        const size_t spaces = strspn(text, " ");
        const size_t indent = spaces < INDENT ? spaces : INDENT;
        if (len == 0) {
            gap = true;
        } else if (indent > 0) {
            if (!literal) {
                begin_literal(f);
            }
            literal = true;
            mdoc_line(f, text + indent, len - indent, NULL);
        } else {
            if (literal) {
                end_literal(f);
            }
            if (gap) {
                (void)fputs(".Pp\n", f);
            }
            literal = false;
            gap = false;
            mdoc_line(f, text, len, &bold);
        }
        text += len + (text[len] == '\n');
    }
    if (literal) {
        end_literal(f);
    }
}

void mdoc_literal(FILE *f, const char *text)
{
    (void)fputs(".Bd -literal\n", f);
    while (*text != '\0') {
        const size_t len = strcspn(text, "\n");
        const size_t spaces = strspn(text, " ");
        const size_t indent = spaces < TABLE_INDENT ? spaces : TABLE_INDENT;
        mdoc_line(f, text + indent, len - indent, NULL);
        text += len + (text[len] == '\n');
    }
    end_literal(f);
}
