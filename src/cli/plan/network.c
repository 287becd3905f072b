// SPDX-License-Identifier: MIT
// An exchange takes one latency and the transmission of its bytes,
//
//     alpha + m / B
//
// where m is what passes the narrowest place: on a star the bytes of the
// busiest port, between pairs the largest message, on a shared medium the bytes
// of all workers. Pieces of a large sum are sent ahead: an exchange waits for
// the messages of the one before it, so that two are under way at a time. With
// S for when the port has sent the messages of exchange t, and R for when the
// exchange returns,
//
//     S_t = max(S_(t-1), R_(t-1)) + m_t / B
//     R_t = max(R_(t-1), S_(t-1) + alpha)
//
// and R_t = S_t + alpha for exchanges that wait for their own messages.
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

plan_clock plan_clock_start(void)
{
    return (plan_clock){.done = 0, .sent = (double)-INFINITY};
}

static void advance_once(
    plan_clock *c, const plan_network *n, const lac_exchange *e)
{
    const double before = c->sent;
    c->sent =
        fmax(c->sent, c->done) + narrowest_bytes(n->kind, e) / n->bandwidth;
    c->done = (e->flags & LAC_EXCHANGE_AHEAD) != 0
                  ? fmax(c->done, before + n->latency)
                  : c->sent + n->latency;
}

// After some repetitions every pair of exchanges takes the same time.
static void advance_repeated(
    plan_clock *c, const plan_network *n, const lac_exchange *e)
{
    enum { TRIED = 64 };
    const uint32_t first = e->times < TRIED ? e->times : TRIED;
    const uint32_t pairs = (e->times - first) / 2;
    for (uint32_t i = 0; i < e->times - 2 * pairs; i++) {
        advance_once(c, n, e);
    }
    if (pairs > 0) {
        plan_clock after = *c;
        advance_once(&after, n, e);
        advance_once(&after, n, e);
        c->done += pairs * (after.done - c->done);
        c->sent += pairs * (after.sent - c->sent);
    }
}

void plan_clock_advance(
    plan_clock *c, const plan_network *n, const lac_exchange *e,
    uint32_t workers)
{
    if ((e->flags & LAC_EXCHANGE_ALLREDUCE) != 0) {
        const double once = allreduce_seconds(n, (double)e->bytes, workers);
        *c = (plan_clock){c->done + e->times * once, (double)-INFINITY};
        return;
    }
    advance_repeated(c, n, e);
}
