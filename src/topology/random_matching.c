// SPDX-License-Identifier: MIT
// In every round the workers are paired at random and each is connected to its
// partner only, with weight 1/2: one message a worker and round, as in NoLoCo
// (Kolehmainen et al., arXiv:2506.10911). If their number is odd, one worker
// has no partner in a round and keeps its value.
//
// A round is drawn from the seed and its number, so all workers know all pairs.
// `rounds` of them are drawn; then they repeat. All perfect matchings are
// equally likely, up to 2^-32 of a draw.
//
// With W the matrix of a round, I - W is the projection on the differences
// within the pairs. Two given workers are a pair with the probability 1/(n - 1)
// if n is even, and 1/n if it is odd, so
//
//     E[W] = (1 - p) I + p/n 11',   p = n/(2 (n - 1)), or 1/2 if n is odd.
#include "base/alloc.h"
#include "base/fail.h"
#include "topology/topology.h"

enum { ROUNDS_MAX = 1 << 16 };

typedef struct matching {
    laci_weighting weighting;
    uint32_t rounds;
} matching;

static const lac_param params[] = {
    {.name = "rounds",
     .type = LAC_PARAM_U32,
     .offset = offsetof(matching, rounds),
     .default_value = "256",
     .min = 1,
     .max = ROUNDS_MAX,
     .help = "rounds that are drawn before they repeat"},
    LACI_WEIGHTS_PARAM,
    {0},
};

// Two workers have only one partner to draw.
static uint32_t random_matching_period(const void *state, uint32_t workers)
{
    const matching *const settings = state;
    return workers <= 2 ? 1 : settings->rounds;
}

static void shuffle_workers(uint32_t *order, uint32_t n, laci_dice *dice)
{
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t k = laci_dice_draw(dice, i);
        const uint32_t last = order[i - 1];
        order[i - 1] = order[k];
        order[k] = last;
    }
}

static lac_status random_matching_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)round;
    const matching *const settings = state;
    const uint32_t n = graph->workers;
    if (settings->weighting.kind == LACI_WEIGHTS_MAX_DEGREE && n > 1) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: weights are max-degree, with which partners swap their "
            "values, expected metropolis",
            graph->name);
    }
    uint32_t *const order = laci_zalloc(n * sizeof(*order));
    if (order == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for an order of %u workers",
            graph->name, n);
    }
    shuffle_workers(order, n, dice);
    lac_status status = laci_graph_reserve(graph, n / 2);
    for (uint32_t i = 0; i + 1 < n && status == LAC_OK; i += 2) {
        status = laci_graph_add(graph, order[i], order[i + 1]);
    }
    laci_free(order);
    return status;
}

static double random_matching_mean_gap(const void *state, uint32_t workers)
{
    (void)state;
    return workers % 2 == 1 ? 0.5 : workers / (2.0 * (workers - 1.0));
}

const laci_topology_ops laci_random_matching_topology = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "random-matching",
    .plugin.summary = "one neighbour a round, drawn anew for every round",
    .plugin.params = params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(matching),
    .random = true,
    .period = random_matching_period,
    .build = random_matching_build,
    .mean_gap = random_matching_mean_gap,
};
