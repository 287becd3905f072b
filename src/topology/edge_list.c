// SPDX-License-Identifier: MIT
// Edge lists as text, from memory: the bytes may be anything.
#include <string.h>

#include "base/fail.h"
#include "topology/topology.h"

enum { DIGITS_MAX = 10, SHOWN_MAX = 40 };

// A stretch of text, not ended by a NUL.
typedef struct span {
    const char *start;
    size_t len;
} span;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == ',';
}

static span next_line(const char **cursor, const char *end)
{
    const char *const start = *cursor;
    const char *const newline = memchr(start, '\n', (size_t)(end - start));
    const char *const stop = newline == NULL ? end : newline;
    *cursor = newline == NULL ? end : newline + 1;
    const char *const comment = memchr(start, '#', (size_t)(stop - start));
    return (span){start, (size_t)((comment == NULL ? stop : comment) - start)};
}

static span next_word(span *line)
{
    while (line->len > 0 && is_blank(line->start[0])) {
        line->start++;
        line->len--;
    }
    span word = {line->start, 0};
    while (word.len < line->len && !is_blank(word.start[word.len])) {
        word.len++;
    }
    line->start += word.len;
    line->len -= word.len;
    return word;
}

static bool read_rank(span word, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < word.len; i++) {
        if (word.start[i] < '0' || word.start[i] > '9' || i >= DIGITS_MAX) {
            return false;
        }
        value = 10 * value + (uint64_t)(word.start[i] - '0');
    }
    *out = value;
    return word.len > 0;
}

// Shows what stands in a line, without bytes that a terminal might obey.
static lac_status wrong_line(const char *name, size_t number, span line)
{
    char shown[SHOWN_MAX + 1] = "";
    for (size_t i = 0; i < line.len && i < SHOWN_MAX; i++) {
        const char c = line.start[i];
        shown[i] = c >= ' ' && c <= '~' ? c : '?';
    }
    return lac_fail(
        LAC_ERR_INVALID,
        "%s: line %zu is \"%s\", expected two workers such as \"0 1\"", name,
        number, shown);
}

static lac_status read_edge(span line, size_t number, laci_graph *graph)
{
    const span whole = line;
    uint64_t ends[2];
    for (int i = 0; i < 2; i++) {
        if (!read_rank(next_word(&line), &ends[i])) {
            return wrong_line(graph->name, number, whole);
        }
    }
    if (next_word(&line).len > 0) {
        return wrong_line(graph->name, number, whole);
    }
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= graph->workers) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: line %zu names worker %llu, expected 0 to %u", graph->name,
                number, (unsigned long long)ends[i], graph->workers - 1);
        }
    }
    if (ends[0] == ends[1]) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: line %zu connects worker %u with itself, expected two workers",
            graph->name, number, (unsigned)ends[0]);
    }
    return laci_graph_add(graph, (uint32_t)ends[0], (uint32_t)ends[1]);
}

lac_status laci_edge_list_parse(const char *text, size_t len, laci_graph *graph)
{
    const char *const end = text + len;
    size_t number = 0;
    for (const char *cursor = text; cursor < end;) {
        const span line = next_line(&cursor, end);
        span probe = line;
        number++;
        if (next_word(&probe).len > 0) {
            LAC_TRY(read_edge(line, number, graph));
        }
    }
    return LAC_OK;
}
