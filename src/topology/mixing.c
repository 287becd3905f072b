// SPDX-License-Identifier: MIT
// Whether disagreement shrinks, decided on the graph and not on numbers.
//
// W has the eigenvalue 1 once for every component of the graph, and -1 once
// for every component that is bipartite and where no worker keeps anything of
// its own value. If no round has an eigenvalue -1, a round leaves the length
// of a vector as it was only if the vector is the same all over each of its
// components. A vector that no round of a period shortens is then the same all
// over each component of the union of all rounds; so the product over a period
// has a gap if the union is connected. For a graph that does not vary this is
// necessary too.
#include "base/alloc.h"
#include "base/fail.h"
#include "topology/topology.h"

// A walk through a graph that colours workers 1 and 2 by turns; 0 is a worker
// that was not reached yet.
typedef struct walk {
    const laci_rows *rows;
    uint32_t *queue;
    uint8_t *color;
    uint32_t reached; // workers in the queue
    bool odd;         // an edge between two workers of one colour was met
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
        "%s: the graph is not connected, there is no way from worker 0 to "
        "worker %u",
        name, stranger);
    return false;
}

// Tells whether a component without an odd cycle keeps nothing at all.
static bool only_swaps(const walk *w, const double *self)
{
    for (uint32_t k = 0; k < w->reached; k++) {
        if (self[w->queue[k]] > 0) {
            return false;
        }
    }
    return !w->odd;
}

static bool settles(walk *w, const double *self, const char *name)
{
    for (uint32_t a = 0; a < w->rows->workers; a++) {
        if (w->color[a] != 0) {
            continue;
        }
        walk_component(w, a);
        if (only_swaps(w, self)) {
            (void)!lac_fail(
                LAC_ERR_INVALID,
                "%s: the gap is 0, for the graph is bipartite and no worker "
                "keeps a share of its own value, expected weights=metropolis",
                name);
            return false;
        }
    }
    return true;
}

lac_status laci_topology_mixes(const lac_topology *t, bool *out)
{
    const char *const name = t->ops->plugin.name;
    walk w;
    LAC_TRY(walk_init(&w, &t->peers, name));
    bool good = is_connected(&w, name);
    laci_free(w.queue);
    for (uint32_t r = 0; r < t->period && good; r++) {
        const laci_rows *const rows =
            t->varying == NULL ? &t->peers : &t->varying[r];
        LAC_TRY(walk_init(&w, rows, name));
        good = settles(&w, t->rounds[r].self, name);
        laci_free(w.queue);
    }
    *out = good;
    return LAC_OK;
}
