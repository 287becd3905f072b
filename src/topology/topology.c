// SPDX-License-Identifier: MIT
// Topologies by name: the registry, open and close, and the properties of a
// handle.
#include "topology/topology.h"

#include <string.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/settings.h"

#define LAC_TOPOLOGY(name)                                                     \
    extern const laci_topology_ops laci_##name##_topology;
#include "topology/topologies.def"
#undef LAC_TOPOLOGY

static const lac_plugin *const plugins[] = {
#define LAC_TOPOLOGY(name) &laci_##name##_topology.plugin,
#include "topology/topologies.def"
#undef LAC_TOPOLOGY
};

enum { PLUGIN_COUNT = sizeof(plugins) / sizeof(plugins[0]) };

static const laci_registry registry = {
    .kind = "topology",
    .plugins = plugins,
    .plugin_count = PLUGIN_COUNT,
};

const lac_plugin *const *lac_topologies(size_t *count_out)
{
    *count_out = PLUGIN_COUNT;
    return plugins;
}

// The random numbers of one attempt to build a network.
typedef struct attempt {
    uint64_t seed;
    uint32_t number;
} attempt;

// Builds the rows of one round. A random graph that has to be drawn again gets
// another key.
static lac_status build_rows(
    const lac_topology *t, const attempt *a, uint64_t round, laci_rows *rows)
{
    const char *const name = t->ops->plugin.name;
    laci_graph graph = {.name = name, .workers = t->workers};
    laci_dice dice = {
        .key = lac_key_make(
            a->seed, LAC_PURPOSE_TOPOLOGY, round, lac_scope_shared(),
            lac_name_hash(name) + a->number),
    };
    lac_status status = t->ops->build(t->state, round, &dice, &graph);
    if (status == LAC_OK) {
        status = laci_rows_init(rows, &graph);
    }
    laci_graph_fini(&graph);
    return status;
}

// Makes the union of the rows of all rounds.
static lac_status unite(lac_topology *t)
{
    laci_graph graph = {.name = t->ops->plugin.name, .workers = t->workers};
    lac_status status = LAC_OK;
    for (uint32_t r = 0; r < t->period; r++) {
        const laci_rows *const rows = &t->varying[r];
        for (uint32_t a = 0; a < t->workers; a++) {
            size_t i = rows->start[a];
            for (; i < rows->start[a + 1] && status == LAC_OK; i++) {
                if (a < rows->peer[i]) {
                    status = laci_graph_add(&graph, a, rows->peer[i]);
                }
            }
        }
    }
    if (status == LAC_OK) {
        status = laci_rows_init(&t->peers, &graph);
    }
    laci_graph_fini(&graph);
    return status;
}

static void raise_max_degree(lac_topology *t, const laci_rows *rows)
{
    for (uint32_t a = 0; a < t->workers; a++) {
        const uint32_t degree = (uint32_t)(rows->start[a + 1] - rows->start[a]);
        t->max_degree = degree > t->max_degree ? degree : t->max_degree;
    }
}

// Releases the result of an attempt, so that another can follow.
static void topology_clear(lac_topology *t)
{
    for (uint32_t r = 0; r < t->period; r++) {
        if (t->rounds != NULL) {
            laci_round_graph_fini(&t->rounds[r]);
        }
        if (t->varying != NULL) {
            laci_rows_fini(&t->varying[r]);
        }
    }
    laci_rows_fini(&t->peers);
    t->max_degree = 0;
}

// Refuses a period that would have too many edges if all its rounds were like
// this one: the first round shows it before the memory is taken.
static lac_status check_period(const lac_topology *t, const laci_rows *rows)
{
    const size_t edges = rows->start[t->workers] / 2;
    if (edges == 0 || t->period <= LACI_EDGES_MAX / edges) {
        return LAC_OK;
    }
    return lac_fail(
        LAC_ERR_INVALID,
        "%s: %u rounds of %zu edges each have %zu edges, expected at most %d, "
        "which are %zu rounds",
        t->ops->plugin.name, t->period, edges, t->period * edges,
        LACI_EDGES_MAX, LACI_EDGES_MAX / edges);
}

static lac_status build_rounds(lac_topology *t, const attempt *a)
{
    const laci_weighting *const weighting = t->state;
    for (uint32_t r = 0; r < t->period; r++) {
        laci_rows *const rows = t->varying == NULL ? &t->peers : &t->varying[r];
        LAC_TRY(build_rows(t, a, r, rows));
        LAC_TRY(check_period(t, rows));
        LAC_TRY(laci_round_graph_init(
            &t->rounds[r], rows, (laci_weights)weighting->kind,
            t->ops->plugin.name));
        raise_max_degree(t, rows);
    }
    return t->varying == NULL ? LAC_OK : unite(t);
}

// Builds the network; a random one until it is connected.
static lac_status build_connected(lac_topology *t, uint64_t seed)
{
    attempt a = {.seed = seed};
    size_t drawn = 0;
    do {
        bool mixes = false;
        topology_clear(t);
        LAC_TRY(build_rounds(t, &a));
        LAC_TRY(laci_topology_mixes(t, &mixes));
        if (mixes) {
            return LAC_OK;
        }
        if (!t->ops->random) {
            return LAC_ERR_INVALID; // with the message of the last call
        }
        drawn += t->workers + lac_topology_edge_count(t);
        a.number++;
    } while (a.number < LACI_ATTEMPTS_MAX && drawn < LACI_ATTEMPTS_SIZE);
    return lac_fail(
        LAC_ERR_INVALID,
        "%s: none of %u random graphs of %u workers is connected with a gap "
        "above 0, expected settings that give more edges",
        t->ops->plugin.name, a.number, t->workers);
}

static lac_status allocate_rounds(lac_topology *t)
{
    t->period =
        t->ops->period == NULL ? 1 : t->ops->period(t->state, t->workers);
    t->rounds = laci_zalloc(t->period * sizeof(*t->rounds));
    if (t->period > 1) {
        t->varying = laci_zalloc(t->period * sizeof(*t->varying));
    }
    if (t->rounds == NULL || (t->period > 1 && t->varying == NULL)) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for %u rounds", t->ops->plugin.name,
            t->period);
    }
    return LAC_OK;
}

// Each edge is hashed with the hash so far.
static uint64_t topology_hash_of(const lac_topology *t)
{
    uint64_t hash = t->workers;
    for (uint32_t round = 0; round < t->period; round++) {
        for (uint32_t rank = 0; rank < t->workers; rank++) {
            const lac_edge *edges;
            const uint32_t count = lac_topology_edges(t, rank, round, &edges);
            for (uint32_t k = 0; k < count; k++) {
                uint64_t weight;
                uint8_t item[24];
                memcpy(&weight, &edges[k].weight, sizeof(weight));
                laci_put_u64(item, hash);
                laci_put_u32(item + 8, rank);
                laci_put_u32(item + 12, edges[k].peer);
                laci_put_u64(item + 16, weight);
                hash = XXH3_64bits(item, sizeof(item));
            }
        }
    }
    return hash;
}

static lac_status open_spec(
    lac_topology **out, const laci_spec *spec, uint32_t workers, uint64_t seed)
{
    const laci_topology_ops *const ops = (const void *)spec->plugin;
    if (workers == 0 || workers > LACI_WORKERS_MAX) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %u workers, expected 1 to %d", spec->name,
            workers, LACI_WORKERS_MAX);
    }
    void *handle, *state;
    LAC_TRY(laci_handle_make(spec, sizeof(lac_topology), &handle, &state));
    lac_topology *const t = handle;
    t->ops = ops;
    t->workers = workers;
    t->state = state;
    lac_status status = allocate_rounds(t);
    if (status == LAC_OK) {
        status = build_connected(t, seed);
    }
    if (status != LAC_OK) {
        lac_topology_close(t);
        return status;
    }
    t->hash = topology_hash_of(t);
    *out = t;
    return LAC_OK;
}

lac_status lac_topology_open(
    lac_topology **out, const char *spec, uint32_t workers, uint64_t seed)
{
    *out = NULL;
    laci_spec parts = {0};
    if (spec == NULL) {
        return lac_fail(LAC_ERR_INVALID, "topology: its spec is NULL");
    }
    LAC_TRY(laci_spec_find(&registry, spec, strlen(spec), &parts));
    return open_spec(out, &parts, workers, seed);
}

lac_status laci_topology_open_with(
    lac_topology **out, const laci_topology_ops *ops, const char *params,
    uint32_t workers, uint64_t seed)
{
    *out = NULL;
    const laci_spec spec = {
        .plugin = &ops->plugin,
        .name = ops->plugin.name,
        .preset = "",
        .params = params,
        .params_len = strlen(params),
    };
    return open_spec(out, &spec, workers, seed);
}

uint64_t lac_topology_hash(const lac_topology *t)
{
    return t->hash;
}

void lac_topology_close(lac_topology *t)
{
    if (t != NULL) {
        topology_clear(t);
        laci_free(t->varying);
        laci_free(t->rounds);
        laci_free_aligned(t);
    }
}

uint32_t lac_topology_workers(const lac_topology *t)
{
    return t->workers;
}

uint32_t lac_topology_period(const lac_topology *t)
{
    return t->period;
}

uint32_t lac_topology_edges(
    const lac_topology *t, uint32_t rank, uint64_t round,
    const lac_edge **edges_out)
{
    const laci_round_graph *const r = &t->rounds[round % t->period];
    *edges_out = r->edges + r->start[rank];
    return (uint32_t)(r->start[rank + 1] - r->start[rank]);
}

double lac_topology_self_weight(
    const lac_topology *t, uint32_t rank, uint64_t round)
{
    return t->rounds[round % t->period].self[rank];
}

uint32_t lac_topology_peers(
    const lac_topology *t, uint32_t rank, const uint32_t **peers_out)
{
    const size_t *const start = t->peers.start + rank;
    *peers_out = t->peers.peer + start[0];
    return (uint32_t)(start[1] - start[0]);
}

size_t lac_topology_edge_count(const lac_topology *t)
{
    return t->peers.start[t->workers] / 2;
}

uint32_t lac_topology_max_degree(const lac_topology *t)
{
    return t->max_degree;
}

double laci_topology_mean_gap(const lac_topology *t)
{
    return t->ops->mean_gap == NULL || t->workers < 2
               ? 0
               : t->ops->mean_gap(t->state, t->workers);
}

bool lac_topology_is_drawn(const lac_topology *t)
{
    return t->ops->mean_gap != NULL;
}

void lac_topology_matrix(const lac_topology *t, uint64_t round, double *w)
{
    const size_t n = t->workers;
    memset(w, 0, n * n * sizeof(*w));
    for (uint32_t a = 0; a < n; a++) {
        const lac_edge *edges;
        const uint32_t count = lac_topology_edges(t, a, round, &edges);
        double *const row = w + a * n;
        row[a] = lac_topology_self_weight(t, a, round);
        for (uint32_t k = 0; k < count; k++) {
            row[edges[k].peer] = edges[k].weight;
        }
    }
}

lac_status lac_topology_spectrum(const lac_topology *t, lac_spectrum *out)
{
    const double gap = laci_topology_mean_gap(t);
    if (gap > 0) { // all eigenvalues but one are the same
        *out = (lac_spectrum){
            .lambda2 = 1 - gap, .lambdan = 1 - gap, .gap = gap, .beta = gap};
        return LAC_OK;
    }
    return laci_spectrum(t, out);
}
