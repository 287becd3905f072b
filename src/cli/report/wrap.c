// SPDX-License-Identifier: MIT
// Breaks lines at spaces, and within words where a spec or a path has a joint.
#include "cli/report/wrap.h"

#include <stdbool.h>
#include <string.h>

// Whether a byte of UTF-8 begins a character.
static bool is_first(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

size_t cli_columns(const char *text)
{
    size_t columns = 0;
    for (; *text != '\0'; text++) {
        columns += is_first(*text);
    }
    return columns;
}

size_t cli_line(const char *text, size_t columns)
{
    size_t len = 0, used = 0, space = 0, joint = 0;
    for (; text[len] != '\0'; len++) {
        if (text[len] == ' ' && len > 0 && text[len - 1] != ' ') {
            space = len;
        }
        if (is_first(text[len]) && used++ >= columns && len > 0) {
            break;
        }
        if (strchr(",+/", text[len]) != NULL) {
            joint = len + 1;
        }
    }
    if (text[len] == '\0') {
        return len;
    }
    return space > 0 ? space : joint > 0 ? joint : len;
}

void cli_wrap(const char *text, size_t indent, FILE *stream)
{
    const size_t columns = indent < CLI_COLUMNS ? CLI_COLUMNS - indent : 1;
    size_t len = cli_line(text, columns);
    (void)fprintf(stream, "%.*s\n", (int)len, text);
    for (text += len; *text != '\0'; text += len) {
        text += strspn(text, " ");
        len = cli_line(text, columns);
        if (len > 0) {
            (void)fprintf(stream, "%*s%.*s\n", (int)indent, "", (int)len, text);
        }
    }
}
