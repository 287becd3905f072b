// SPDX-License-Identifier: MIT
// A random graph in which every pair of workers is connected with probability
// p, independently (Erdos and Renyi, "On random graphs I", 1959; Gilbert).
//
// The pairs (0,1), (0,2), (1,2), (0,3), ... are visited in order. With
// q = 1 - p, exactly G of them are skipped before the next edge with
// probability p q^G. The binary digits of such a G are independent: digit k is
// 1 with probability s / (1 + s), s = q^(2^k). So the time is proportional to
// the edges, not to the pairs, and no logarithm is needed, which would not be
// the same number on every machine.
#include "base/fail.h"
#include "topology/topology.h"

enum { DIGITS_MAX = 40 }; // 2^40 pairs are more than there can be

typedef struct erdos_renyi {
    laci_weighting weighting;
    double probability;
} erdos_renyi;

static const lac_param params[] = {
    {.name = "probability",
     .type = LAC_PARAM_F64,
     .offset = offsetof(erdos_renyi, probability),
     .default_value = "0.5",
     .min = 0,
     .max = 1,
     .above_min = true,
     .help = "of an edge between two workers"},
    LACI_WEIGHTS_PARAM,
    {0},
};

// For each binary digit of G: the threshold below which a draw makes it 1.
typedef struct gaps {
    uint32_t digits;
    uint64_t threshold[DIGITS_MAX];
} gaps;

static gaps gaps_make(double probability)
{
    gaps g = {0};
    double s = 1 - probability;
    while (g.digits < DIGITS_MAX && s > 0x1p-40) {
        g.threshold[g.digits++] = (uint64_t)(0x1p32 * (s / (1 + s)));
        s *= s;
    }
    return g;
}

static uint64_t draw_gap(const gaps *g, laci_dice *dice)
{
    uint64_t gap = 0;
    for (uint32_t k = 0; k < g->digits; k++) {
        const uint64_t draw = lac_key_draw(&dice->key, dice->next++);
        gap |= (uint64_t)(draw < g->threshold[k]) << k;
    }
    return gap;
}

static lac_status erdos_renyi_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)round;
    const erdos_renyi *const e = state;
    const gaps g = gaps_make(e->probability);
    // (low, high) is the current pair; a row `high` has `high` pairs.
    uint64_t low = draw_gap(&g, dice), high = 1;
    for (;;) {
        while (high < graph->workers && low >= high) {
            low -= high++;
        }
        if (high >= graph->workers) {
            return LAC_OK;
        }
        LAC_TRY(laci_graph_add(graph, (uint32_t)low, (uint32_t)high));
        low += 1 + draw_gap(&g, dice);
    }
}

const laci_topology_ops laci_erdos_renyi_topology = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "erdos-renyi",
    .plugin.summary = "a random graph: every pair talks with a probability",
    .plugin.params = params,
    .plugin.state_size = sizeof(erdos_renyi),
    .random = true,
    .build = erdos_renyi_build,
};
