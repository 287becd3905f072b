// SPDX-License-Identifier: MIT
// Arbitrary text as the edges of a network: the first byte is the number of
// workers. What parses stays within them, and sorts into symmetric rows.
#include <stdlib.h>

#include "fuzz.h"
#include "topology/topology.h"

static void look_at(const laci_graph *graph)
{
    laci_rows rows;
    fuzz_require(laci_rows_init(&rows, graph) == LAC_OK, "rows fail");
    for (uint32_t a = 0; a < graph->workers; a++) {
        for (size_t i = rows.start[a]; i < rows.start[a + 1]; i++) {
            fuzz_require(
                rows.peer[i] < graph->workers && rows.peer[i] != a,
                "a neighbour is out of range");
            fuzz_require(
                i == rows.start[a] || rows.peer[i - 1] < rows.peer[i],
                "a row is not in order");
        }
    }
    laci_rows_fini(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    char *const text = fuzz_copy(data + 1, size - 1);
    laci_graph graph = {.name = "file", .workers = data[0] + 1u};
    if (laci_edge_list_parse(text, size - 1, &graph) == LAC_OK) {
        look_at(&graph);
    } else {
        fuzz_require(lac_error_message()[0] != '\0', "no message");
    }
    laci_graph_fini(&graph);
    free(text);
    return 0;
}
