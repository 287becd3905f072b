// SPDX-License-Identifier: MIT
// The types and functions that the files of the layer share. A network has
// three forms: a graph (pairs in any order), rows (the sorted neighbours of
// each worker) and a round (rows with weights). A plug-in builds the graph; the
// framework does the rest.
#ifndef LACONIC_TOPOLOGY_TOPOLOGY_H
#define LACONIC_TOPOLOGY_TOPOLOGY_H

#include <laconic/random.h>
#include <laconic/topology.h>

enum {
    LACI_WORKERS_MAX = 1 << 20, // a path of so many still has a gap of 1e-12
    // Of all rounds of a period: about 4 GB while the graph is made, twice as
    // much if there are several rounds.
    LACI_EDGES_MAX = 1 << 26,
    // The limits on redrawing a random graph that is not connected: attempts,
    // and workers and edges in all, which take some seconds.
    LACI_ATTEMPTS_MAX = 100,
    LACI_ATTEMPTS_SIZE = 1 << 25,
};

// Two workers that are connected.
typedef struct laci_pair {
    uint32_t a;
    uint32_t b;
} laci_pair;

// Pairs of workers in any order.
typedef struct laci_graph {
    const char *name; // of the topology, for messages
    uint32_t workers;
    bool parallel; // pairs that are added twice count twice, otherwise once
    size_t count;
    size_t room;
    laci_pair *pairs;
} laci_graph;

// laci_graph_reserve makes room for `count` pairs in all. A plug-in that knows
// their number calls it first, so that a graph that is too large is refused
// early. Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status laci_graph_reserve(laci_graph *graph, size_t count);

// laci_graph_add connects two different workers, in either order. Fails with
// LAC_ERR_INVALID (no such pair of workers, too many pairs) or LAC_ERR_NOMEM.
lac_status laci_graph_add(laci_graph *graph, uint32_t a, uint32_t b);

void laci_graph_fini(laci_graph *graph);

// The neighbours of every worker: those of worker i are
// peer[start[i]..start[i + 1]) in ascending order, each with the number of
// parallel edges that lead to it.
typedef struct laci_rows {
    uint32_t workers;
    size_t *start;
    uint32_t *peer;
    uint32_t *count;
} laci_rows;

// laci_rows_init sorts a graph. Fails with LAC_ERR_NOMEM; `rows` is then empty.
lac_status laci_rows_init(laci_rows *rows, const laci_graph *graph);
void laci_rows_fini(laci_rows *rows);

// The first member of the state of every topology. Its setting is the last in
// the table.
typedef struct laci_weighting {
    uint32_t kind; // a laci_weights
} laci_weighting;

typedef enum laci_weights {
    LACI_WEIGHTS_METROPOLIS = 0, // 1 / (1 + larger degree of the two ends)
    LACI_WEIGHTS_MAX_DEGREE = 1, // 1 / larger degree of the two ends
} laci_weights;

// The setting `weights`, for tables of settings.
#define LACI_WEIGHTS_PARAM                                                     \
    {                                                                          \
        .name = "weights", .type = LAC_PARAM_CHOICE, .offset = 0,              \
        .default_value = "metropolis", .choices = "metropolis|max-degree",     \
        .help = "1/(1 + larger degree of the two ends), or 1/larger degree",   \
    }

// A table with this setting only.
extern const lac_param laci_weights_params[];

// One round: the edges of worker i are edges[start[i]..start[i + 1]).
typedef struct laci_round_graph {
    const size_t *start;
    lac_edge *edges;
    double *self;
} laci_round_graph;

// laci_round_graph_init computes the weights of rows. `round` owns one block of
// memory, which begins with `self`. Fails with LAC_ERR_NOMEM; `round` is then
// empty.
lac_status laci_round_graph_init(
    laci_round_graph *round, const laci_rows *rows, laci_weights weights,
    const char *name);
void laci_round_graph_fini(laci_round_graph *round);

// A sequence of random numbers for a plug-in.
typedef struct laci_dice {
    lac_key key;
    uint32_t next;
} laci_dice;

// laci_dice_draw returns a number in [0, bound).
static inline uint32_t laci_dice_draw(laci_dice *dice, uint32_t bound)
{
    const uint64_t draw = lac_key_draw(&dice->key, dice->next++);
    return (uint32_t)(draw * bound >> 32);
}

// The table of a topology. The state holds the settings and begins with a
// laci_weighting.
typedef struct laci_topology_ops {
    lac_plugin plugin;
    // The graph is random. It is drawn again if it is not connected.
    bool random;
    // After how many rounds the graph repeats, at least 1. It may assume
    // nothing about `workers`. NULL for 1.
    uint32_t (*period)(const void *state, uint32_t workers);
    // Adds the pairs of `round`, which is below the period, to an empty graph.
    // Only random graphs use the dice. Decisions must come from integers and
    // + - * / alone: all workers build the same graph, each on its machine.
    // Fails with LAC_ERR_INVALID, with a message that describes what does not
    // fit, or forwards the failure of an add.
    lac_status (*build)(
        const void *state, uint64_t round, laci_dice *dice, laci_graph *graph);
    // Optional, for rounds that are drawn independently and with all workers
    // alike: the mean of W over all draws is (1 - p) I + p/n 11', and this
    // returns p, for at least 2 workers.
    double (*mean_gap)(const void *state, uint32_t workers);
} laci_topology_ops;

struct lac_topology {
    const laci_topology_ops *ops;
    uint32_t workers;
    uint32_t period;
    uint32_t max_degree;
    uint64_t hash;
    laci_rows peers;    // over all rounds
    laci_rows *varying; // the rows of each round if there are several
    laci_round_graph *rounds;
    void *state; // the settings, in the same block as this struct
};

// laci_topology_open_with opens a topology that is not in the list.
lac_status laci_topology_open_with(
    lac_topology **out, const laci_topology_ops *ops, const char *params,
    uint32_t workers, uint64_t seed);

// laci_topology_mean_gap returns the p of mean_gap, or 0 if rounds are not
// drawn.
double laci_topology_mean_gap(const lac_topology *t);

// laci_topology_mixes writes to `*out` whether the network has a spectral gap:
// the union of all rounds is connected and no round has an eigenvalue -1. If
// not, lac_error_message returns the reason. Fails with LAC_ERR_NOMEM.
lac_status laci_topology_mixes(const lac_topology *t, bool *out);

// laci_spectrum is lac_topology_spectrum of a network whose rounds are not
// drawn.
lac_status laci_spectrum(const lac_topology *t, lac_spectrum *out);

// laci_edge_list_parse adds the edges in text[0..len) to a graph. Each line is
// an edge: the ranks of two workers, separated by blanks or a comma. A # begins
// a comment; empty lines are skipped. An edge may occur twice, in either order.
// Fails with LAC_ERR_INVALID (the message names the line).
lac_status laci_edge_list_parse(
    const char *text, size_t len, laci_graph *graph);

#endif
