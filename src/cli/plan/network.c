// SPDX-License-Identifier: MIT
// An exchange takes one latency and the transmission of its bytes,
//
//     alpha + m / B
//
// where m is what passes the narrowest place: on a star the bytes of the
// busiest port, between pairs the largest message, on a shared medium the bytes
// of all workers. Messages that were sent one exchange before overlap with the
// latency: max(alpha, m / B).
//
// The transport's own all-reduce of m bytes is Rabenseifner's: recursive
// halving, then recursive doubling, by P workers, P the largest power of two
// that is at most N:
//
//     2 log2(P) alpha + 2 (P - 1)/P m / B
//
// The remaining N - P workers send their vector to a partner before and receive
// the result afterwards: 2 alpha + 2 m / B more.
//
// References: Rabenseifner, Optimization of Collective Reduction Operations
// (ICCS 2004); Thakur, Rabenseifner and Gropp, Optimization of Collective
// Communication Operations in MPICH (IJHPCA 2005).
#include "cli/plan/network.h"

#include <math.h>

const char *plan_network_name(plan_network_kind kind)
{
    static const char *const names[] = {
        [PLAN_STAR] = "star",
        [PLAN_PAIRS] = "pairs",
        [PLAN_SHARED] = "shared",
    };
    return names[kind];
}

static double allreduce_seconds(
    const plan_network *n, double bytes, uint32_t workers)
{
    uint32_t core = 1;
    double exchanges = 0;
    for (; core <= workers / 2; core *= 2) {
        exchanges += 2;
    }
    const bool shared = n->kind == PLAN_SHARED;
    const uint32_t rest = workers - core;
    // The bytes of one worker of the core, or of all of them.
    double moved = 2 * (core - 1.0) / core * bytes * (shared ? core : 1);
    if (rest > 0) {
        exchanges += 2;
        moved += 2 * bytes * (shared ? rest : 1);
    }
    return exchanges * n->latency + moved / n->bandwidth;
}

static double narrowest_bytes(
    plan_network_kind kind, const lac_exchange *exchange)
{
    switch (kind) {
    case PLAN_PAIRS:
        return (double)exchange->largest;
    case PLAN_SHARED:
        return (double)exchange->total;
    default:
        return (double)exchange->bytes;
    }
}

double plan_exchange_seconds(
    const plan_network *n, const lac_exchange *e, uint32_t workers)
{
    if ((e->flags & LAC_EXCHANGE_ALLREDUCE) != 0) {
        return allreduce_seconds(n, (double)e->bytes, workers);
    }
    if (e->messages == 0) {
        return 0;
    }
    const double transmission = narrowest_bytes(n->kind, e) / n->bandwidth;
    return (e->flags & LAC_EXCHANGE_AHEAD) != 0 ? fmax(n->latency, transmission)
                                                : n->latency + transmission;
}
