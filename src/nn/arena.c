// SPDX-License-Identifier: MIT
// Places the largest span first, each at the lowest offset where it overlaps no
// span that is live at the same time. The total is near the minimum.
#include "nn/arena.h"

#include <stdbool.h>

static size_t span_size(size_t size)
{
    return (size + NN_ALIGNMENT - 1) / NN_ALIGNMENT * NN_ALIGNMENT;
}

static bool overlaps(const nn_span *placed, const nn_span *s)
{
    return placed->first <= s->last && s->first <= placed->last &&
           placed->offset < s->offset + span_size(s->size) &&
           s->offset < placed->offset + span_size(placed->size);
}

// Moves s behind every span it overlaps until there is none.
static void place_span(
    nn_span *s, const nn_span *spans, const size_t *order, size_t placed)
{
    s->offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < placed; i++) {
            const nn_span *const p = &spans[order[i]];
            if (overlaps(p, s)) {
                s->offset = p->offset + span_size(p->size);
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
        place_span(s, spans, order, i);
        if (s->offset + span_size(s->size) > total) {
            total = s->offset + span_size(s->size);
        }
    }
    return total;
}
