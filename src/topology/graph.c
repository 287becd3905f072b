// SPDX-License-Identifier: MIT
// Graphs as pairs in any order, and sorted into rows.
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "topology/topology.h"

enum { ROOM_MIN = 64 };

static lac_status graph_no_memory(const laci_graph *graph)
{
    return lac_fail(
        LAC_ERR_NOMEM, "%s: no memory for the edges of %u workers", graph->name,
        graph->workers);
}

lac_status laci_graph_reserve(laci_graph *graph, size_t count)
{
    if (count > LACI_EDGES_MAX) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %u workers have more than %d edges",
            graph->name, graph->workers, LACI_EDGES_MAX);
    }
    if (count <= graph->room) {
        return LAC_OK;
    }
    laci_pair *const pairs = laci_zalloc(count * sizeof(*pairs));
    if (pairs == NULL) {
        return graph_no_memory(graph);
    }
    if (graph->count > 0) {
        memcpy(pairs, graph->pairs, graph->count * sizeof(*pairs));
    }
    laci_free(graph->pairs);
    graph->pairs = pairs;
    graph->room = count;
    return LAC_OK;
}

lac_status laci_graph_add(laci_graph *graph, uint32_t a, uint32_t b)
{
    if (a >= graph->workers || b >= graph->workers || a == b) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: an edge joins %u and %u, expected two different workers below "
            "%u",
            graph->name, a, b, graph->workers);
    }
    if (graph->count == graph->room) {
        LAC_TRY(laci_graph_reserve(
            graph, graph->room < ROOM_MIN ? ROOM_MIN : 2 * graph->room));
    }
    graph->pairs[graph->count++] = (laci_pair){a, b};
    return LAC_OK;
}

void laci_graph_fini(laci_graph *graph)
{
    laci_free(graph->pairs);
    graph->pairs = NULL;
    graph->count = graph->room = 0;
}

// Writes both ends of every pair to the row of the other. `cursor` has a place
// for each worker.
static void scatter(
    const laci_graph *graph, const size_t *start, size_t *cursor, uint32_t *out)
{
    memcpy(cursor, start, graph->workers * sizeof(*cursor));
    for (size_t i = 0; i < graph->count; i++) {
        const laci_pair pair = graph->pairs[i];
        out[cursor[pair.a]++] = pair.b;
        out[cursor[pair.b]++] = pair.a;
    }
}

// Sorts all rows at once: workers are visited in ascending order, so each row
// receives its neighbours in ascending order.
static void transpose(
    const laci_rows *rows, size_t *cursor, const uint32_t *unsorted)
{
    memcpy(cursor, rows->start, rows->workers * sizeof(*cursor));
    for (uint32_t a = 0; a < rows->workers; a++) {
        for (size_t i = rows->start[a]; i < rows->start[a + 1]; i++) {
            rows->peer[cursor[unsorted[i]]++] = a;
        }
    }
}

static void merge_equals(laci_rows *rows, bool parallel)
{
    size_t kept = 0, from = 0;
    for (uint32_t a = 0; a < rows->workers; a++) {
        const size_t first = kept, end = rows->start[a + 1];
        for (size_t i = from; i < end; i++) {
            if (kept > first && rows->peer[kept - 1] == rows->peer[i]) {
                rows->count[kept - 1] += parallel;
            } else {
                rows->peer[kept] = rows->peer[i];
                rows->count[kept++] = 1;
            }
        }
        from = end;
        rows->start[a + 1] = kept;
    }
}

lac_status laci_rows_init(laci_rows *rows, const laci_graph *graph)
{
    const size_t n = graph->workers;
    const size_t ends = 2 * graph->count;
    size_t *const cursor =
        laci_zalloc(n * sizeof(*cursor) + ends * sizeof(uint32_t));
    size_t *const start =
        laci_zalloc((n + 1) * sizeof(*start) + 2 * ends * sizeof(uint32_t));
    *rows = (laci_rows){0};
    if (cursor == NULL || start == NULL) {
        laci_free(start);
        laci_free(cursor);
        return graph_no_memory(graph);
    }
    *rows = (laci_rows){
        .workers = graph->workers,
        .start = start,
        .peer = (uint32_t *)(start + n + 1),
        .count = (uint32_t *)(start + n + 1) + ends,
    };
    for (size_t i = 0; i < graph->count; i++) {
        start[graph->pairs[i].a + 1]++;
        start[graph->pairs[i].b + 1]++;
    }
    for (size_t i = 0; i < n; i++) {
        start[i + 1] += start[i];
    }
    uint32_t *const unsorted = (uint32_t *)(cursor + n);
    scatter(graph, start, cursor, unsorted);
    transpose(rows, cursor, unsorted);
    merge_equals(rows, graph->parallel);
    laci_free(cursor);
    return LAC_OK;
}

void laci_rows_fini(laci_rows *rows)
{
    laci_free(rows->start);
    *rows = (laci_rows){0};
}
