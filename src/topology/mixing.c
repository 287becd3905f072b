// SPDX-License-Identifier: MIT
// Decides whether a network has a spectral gap, from the graph and not from
// numbers.
//
// W has the eigenvalue 1 once for every component of the graph, and -1 once
// for every component that is bipartite and in which every self weight is 0. If
// no round has an eigenvalue -1, a round preserves the length of a vector only
// if the vector is constant on each component. A vector whose length every
// round of a period preserves is then constant on each component of the union
// of all rounds. So the product over a period has a gap if the union is
// connected. For a graph that does not vary this is necessary too.
#include "base/alloc.h"
#include "base/fail.h"
#include "topology/topology.h"

// A breadth-first search that colours neighbours 1 and 2 alternately; 0 is a
// worker that was not reached yet.
typedef struct walk {
    const laci_rows *rows;
    uint32_t *queue;
    uint8_t *color;
    uint32_t reached; // workers in the queue
    bool odd;         // an edge joins two workers of one colour
} walk;

static lac_status walk_init(walk *w, const laci_rows *rows, const char *name)
{
    const size_t n = rows->workers;
    uint32_t *const queue = laci_zalloc(n * (sizeof(*queue) + 1));
    if (queue == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for a walk over %zu workers", name,
            n);
    }
    *w = (walk){.rows = rows, .queue = queue, .color = (uint8_t *)(queue + n)};
    return LAC_OK;
}

// Visits the component of worker `from`, which then fills the queue.
static void walk_component(walk *w, uint32_t from)
{
    w->odd = false;
    w->reached = 1;
    w->queue[0] = from;
    w->color[from] = 1;
    for (uint32_t k = 0; k < w->reached; k++) {
        const uint32_t a = w->queue[k];
        for (size_t i = w->rows->start[a]; i < w->rows->start[a + 1]; i++) {
            const uint32_t b = w->rows->peer[i];
            if (w->color[b] == 0) {
                w->color[b] = (uint8_t)(3 - w->color[a]);
                w->queue[w->reached++] = b;
            }
            w->odd = w->odd || w->color[b] == w->color[a];
        }
    }
}

static bool is_connected(walk *w, const char *name)
{
    walk_component(w, 0);
    if (w->reached == w->rows->workers) {
        return true;
    }
    uint32_t stranger = 0;
    while (w->color[stranger] != 0) {
        stranger++;
    }
    (void)!lac_fail(
        LAC_ERR_INVALID,
        "%s: the graph is not connected: no path leads from worker 0 to "
        "worker %u, expected one",
        name, stranger);
    return false;
}

// Whether the component is bipartite and every self weight in it is 0.
static bool only_swaps(const walk *w, const double *self)
{
    for (uint32_t k = 0; k < w->reached; k++) {
        if (self[w->queue[k]] > 0) {
            return false;
        }
    }
    return !w->odd;
}

static bool has_gap(walk *w, const double *self, const char *name)
{
    for (uint32_t a = 0; a < w->rows->workers; a++) {
        if (w->color[a] != 0) {
            continue;
        }
        walk_component(w, a);
        if (only_swaps(w, self)) {
            (void)!lac_fail(
                LAC_ERR_INVALID,
                "%s: the gap is 0, because the graph is bipartite and every "
                "self weight is 0, expected weights=metropolis",
                name);
            return false;
        }
    }
    return true;
}

lac_status laci_topology_mixes(const lac_topology *t, bool *out)
{
    const char *const name = t->ops->plugin.name;
    walk w = {0};
    LAC_TRY(walk_init(&w, &t->peers, name));
    bool good = is_connected(&w, name);
    laci_free(w.queue);
    for (uint32_t r = 0; r < t->period && good; r++) {
        const laci_rows *const rows =
            t->varying == NULL ? &t->peers : &t->varying[r];
        LAC_TRY(walk_init(&w, rows, name));
        good = has_gap(&w, t->rounds[r].self, name);
        laci_free(w.queue);
    }
    *out = good;
    return LAC_OK;
}
