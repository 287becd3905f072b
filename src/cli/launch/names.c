// SPDX-License-Identifier: MIT
// Reads the first words of the lines of a peers file, "name address:port key".
// Blank lines and those that begin with # do not count.
#include "cli/launch/names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/launch/launch.h"
#include "cli/options/spec.h"
#include "data/dataset.h"
#include "data/file.h"

static const char numbered[] = "worker ";

// Copies a name; what is not plain text becomes '?'.
static void copy_name(const char *word, size_t len, char out[CLI_NAME_SIZE])
{
    size_t i = 0;
    for (; i < len && i + 1 < CLI_NAME_SIZE; i++) {
        out[i] = (char)(word[i] >= ' ' && word[i] <= '~' ? word[i] : '?');
    }
    out[i] = '\0';
}

static void add_line(cli_names *names, const char *line, size_t len)
{
    size_t begin = 0;
    while (begin < len && isspace((unsigned char)line[begin])) {
        begin++;
    }
    size_t end = begin;
    while (end < len && !isspace((unsigned char)line[end])) {
        end++;
    }
    if (end > begin && line[begin] != '#' && names->count < CLI_WORKERS_MAX) {
        copy_name(line + begin, end - begin, names->items[names->count++]);
    }
}

void cli_names_read(cli_names *names, const char *spec)
{
    char path[DATA_PATH_SIZE];
    data_bytes bytes = {0};
    *names = (cli_names){0};
    if (!cli_spec_names(spec, "tcp") ||
        !cli_spec_text(spec, "peers", path, sizeof(path)) ||
        !data_is_file(path) || data_file_read(path, &bytes) != LAC_OK) {
        return;
    }
    const char *at = (const char *)bytes.data;
    const char *const end = at + bytes.len;
    names->items = calloc(CLI_WORKERS_MAX, sizeof(*names->items));
    while (names->items != NULL && at < end) {
        const char *const feed = memchr(at, '\n', (size_t)(end - at));
        const char *const line_end = feed == NULL ? end : feed;
        add_line(names, at, (size_t)(line_end - at));
        at = line_end + 1;
    }
    data_bytes_free(&bytes);
}

void cli_names_clear(cli_names *names)
{
    free(names->items);
    *names = (cli_names){0};
}

const char *cli_names_of(const cli_names *names, uint32_t rank)
{
    return rank < names->count ? names->items[rank] : NULL;
}

// Returns the length of "worker 12" if `at` begins with it, and the name of
// that worker; else 0.
static size_t numbered_worker(
    const cli_names *names, const char *at, const char **name_out)
{
    const size_t word = sizeof(numbered) - 1;
    const size_t digits =
        strncmp(at, numbered, word) == 0 ? strspn(at + word, "0123456789") : 0;
    if (digits == 0 || digits > 9) {
        return 0;
    }
    *name_out = cli_names_of(names, (uint32_t)strtoul(at + word, NULL, 10));
    return *name_out == NULL ? 0 : word + digits;
}

void cli_names_insert(
    const cli_names *names, const char *message, char *out, size_t cap)
{
    size_t used = 0;
    for (const char *at = message; *at != '\0' && used + 1 < cap;) {
        const char *name = NULL;
        const bool begins = at == message || !isalnum((unsigned char)at[-1]);
        const size_t len = begins ? numbered_worker(names, at, &name) : 0;
        const int written =
            len == 0
                ? snprintf(out + used, cap - used, "%c", *at)
                : snprintf(
                      out + used, cap - used, "%.*s (%s)", (int)len, at, name);
        used += written < 0 ? 0 : (size_t)written;
        at += len == 0 ? 1 : len;
    }
    out[used < cap ? used : cap - 1] = '\0';
}
