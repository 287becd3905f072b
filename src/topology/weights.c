// SPDX-License-Identifier: MIT
// The weights of the edges, after Metropolis and Hastings. With d the number of
// edges at a worker, parallel ones included,
//
//     metropolis   w_ij = 1 / (1 + max(d_i, d_j))
//     max-degree   w_ij = 1 / max(d_i, d_j)
//
// and the self weight is 1 minus their sum. Both ends have the same weight, so
// W is symmetric, and its columns sum to 1 as its rows do. Parallel edges add
// up. With max-degree, a worker whose neighbours have no more edges than itself
// has a self weight of exactly 0. This must not depend on rounding, because it
// decides whether a graph has a spectral gap.
#include "base/alloc.h"
#include "base/fail.h"
#include "topology/topology.h"

const lac_param laci_weights_params[] = {
    LACI_WEIGHTS_PARAM,
    {0},
};

static void count_degrees(const laci_rows *rows, uint32_t *degree)
{
    for (uint32_t a = 0; a < rows->workers; a++) {
        degree[a] = 0;
        for (size_t i = rows->start[a]; i < rows->start[a + 1]; i++) {
            degree[a] += rows->count[i];
        }
    }
}

// Fills the edges of one worker and returns its self weight.
static double weigh(
    const laci_rows *rows, const uint32_t *degree, uint32_t rank,
    uint32_t extra, lac_edge *edges)
{
    const uint32_t own = degree[rank] + extra;
    uint32_t largest = own;
    double given = 0;
    for (size_t i = rows->start[rank]; i < rows->start[rank + 1]; i++) {
        const uint32_t peer = rows->peer[i];
        const uint32_t other = degree[peer] + extra;
        const uint32_t larger = own > other ? own : other;
        const double weight = rows->count[i] * (1.0 / larger);
        edges[i] = (lac_edge){peer, weight};
        given += weight;
        largest = largest > other ? largest : other;
    }
    const bool all = extra == 0 && largest == own && own > 0;
    return all ? 0 : 1 - given;
}

lac_status laci_round_graph_init(
    laci_round_graph *round, const laci_rows *rows, laci_weights weights,
    const char *name)
{
    const uint32_t n = rows->workers;
    const size_t edges = rows->start[n];
    uint32_t *const degree = laci_zalloc(n * sizeof(*degree));
    double *const self =
        laci_zalloc(n * sizeof(*self) + edges * sizeof(lac_edge));
    *round = (laci_round_graph){0};
    if (degree == NULL || self == NULL) {
        laci_free(self);
        laci_free(degree);
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for the weights of %zu edges", name,
            edges / 2);
    }
    *round =
        (laci_round_graph){rows->start, (lac_edge *)(void *)(self + n), self};
    count_degrees(rows, degree);
    const uint32_t extra = weights == LACI_WEIGHTS_METROPOLIS;
    for (uint32_t a = 0; a < n; a++) {
        self[a] = weigh(rows, degree, a, extra, round->edges);
    }
    laci_free(degree);
    return LAC_OK;
}

void laci_round_graph_fini(laci_round_graph *round)
{
    laci_free(round->self);
    *round = (laci_round_graph){0};
}
