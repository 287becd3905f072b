// SPDX-License-Identifier: MIT
// Parses edge lists from memory. The bytes may be anything.
#include <string.h>

#include "base/fail.h"
#include "base/words.h"
#include "topology/topology.h"

enum { DIGITS_MAX = 10, SHOWN_MAX = 40 };

// Copies a line for a message, without bytes that a terminal might interpret.
static lac_status wrong_line(const char *name, size_t number, laci_words line)
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

static lac_status read_edge(laci_words line, size_t number, laci_graph *graph)
{
    const laci_words whole = line;
    uint64_t ends[2];
    for (int i = 0; i < 2; i++) {
        if (!laci_read_whole(laci_next_word(&line), DIGITS_MAX, &ends[i])) {
            return wrong_line(graph->name, number, whole);
        }
    }
    if (laci_next_word(&line).len > 0) {
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
        const laci_words line = laci_next_line(&cursor, end);
        laci_words probe = line;
        number++;
        if (laci_next_word(&probe).len > 0) {
            LAC_TRY(read_edge(line, number, graph));
        }
    }
    return LAC_OK;
}
