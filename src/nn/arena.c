// SPDX-License-Identifier: MIT
// Largest first, each at the lowest offset where it meets none that is needed
// at the same time: not the least memory there is, but close to it.
#include "nn/arena.h"

#include <stdbool.h>

static size_t aligned(size_t size)
{
    return (size + NN_ALIGNMENT - 1) / NN_ALIGNMENT * NN_ALIGNMENT;
}

static bool in_the_way(const nn_span *placed, const nn_span *s)
{
    return placed->first <= s->last && s->first <= placed->last &&
           placed->offset < s->offset + aligned(s->size) &&
           s->offset < placed->offset + aligned(placed->size);
}

// Moves s behind what is in its way until nothing is.
static void place(
    nn_span *s, const nn_span *spans, const size_t *order, size_t placed)
{
    s->offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < placed; i++) {
            const nn_span *const p = &spans[order[i]];
            if (in_the_way(p, s)) {
                s->offset = p->offset + aligned(p->size);
                moved = true;
            }
        }
    }
}

size_t nn_arena_place(nn_span *spans, size_t count, size_t *order)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at > 0 && spans[order[at - 1]].size < spans[i].size; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    for (size_t i = 0; i < count; i++) {
        nn_span *const s = &spans[order[i]];
        place(s, spans, order, i);
        if (s->offset + aligned(s->size) > total) {
            total = s->offset + aligned(s->size);
        }
    }
    return total;
}
