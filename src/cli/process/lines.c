// SPDX-License-Identifier: MIT
// Passes the output of one process on, a line at a time.
#include "cli/process/lines.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Messages of laconic name the worker already.
// As many bytes as a pipe holds.
enum { READS = 64 * 1024 / sizeof(((cli_lines *)NULL)->text) + 1 };

static void pass_line(const cli_lines *l, const char *text, size_t len)
{
    char out[CLI_LINE_MAX + 64], own[32];
    const int own_len =
        snprintf(own, sizeof(own), "laconic: worker %u: ", l->rank);
    const bool named =
        len >= (size_t)own_len && memcmp(text, own, (size_t)own_len) == 0;
    const int head =
        named ? 0 : snprintf(out, sizeof(out), "worker %u: ", l->rank);
    memcpy(out + head, text, len);
    out[(size_t)head + len] = '\n';
    (void)fwrite(out, 1, (size_t)head + len + 1, stderr);
}

static void pass_all(cli_lines *l)
{
    char *begin = l->text;
    char *end;
    size_t left = l->len;
    while ((end = memchr(begin, '\n', left)) != NULL) {
        pass_line(l, begin, (size_t)(end - begin));
        left -= (size_t)(end - begin) + 1;
        begin = end + 1;
    }
    if (left == sizeof(l->text)) {
        pass_line(l, begin, left);
        left = 0;
    }
    memmove(l->text, begin, left);
    l->len = left;
}

void cli_lines_pull(cli_lines *l)
{
    ssize_t got = 1;
    // A worker that prints without end must not keep the launcher from signals
    // and from the other workers.
    for (int i = 0; i < READS && l->file >= 0 && got > 0; i++) {
        got = read(l->file, l->text + l->len, sizeof(l->text) - l->len);
        l->len += got > 0 ? (size_t)got : 0;
        pass_all(l);
    }
    if (got == 0) {
        cli_lines_close(l);
    }
}

void cli_lines_close(cli_lines *l)
{
    if (l->len > 0) {
        pass_line(l, l->text, l->len);
        l->len = 0;
    }
    if (l->file >= 0) {
        (void)close(l->file);
        l->file = -1;
    }
}
