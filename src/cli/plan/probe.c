// SPDX-License-Identifier: MIT
// The probe, in three stages. Worker 0 orders every train of messages and
// gathers the times. Single messages slip: only trains are timed, without the
// first message of each, which also waits for workers that begin late.
//
// 1. All pairs of workers, in rounds of disjoint pairs as of a tournament, send
//    a message to and fro. With many workers these are samples. The slowest
//    pair stands for the network: neighbours on one machine do not.
// 2. That pair alone sends messages of growing size to and fro. The slope of
//    the line through the long ones is 1 / pair_rate.
// 3. All workers exchange with their neighbours in the topology. The short
//    messages give the latency. The slope of the line through the long ones, in
//    units of 1 / pair_rate, is the number of messages that pass the narrowest
//    place one after the other: those of the busiest worker behind a switch,
//    one between pairs with links of their own, those of all workers on a
//    shared medium. The kind of the network is the nearest of these, and its
//    bandwidth follows from the slope.
//
// The result is therefore the network on which the formula of network.c gives
// the times that these exchanges took.
#include "cli/plan/probe.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "train/sync.h"

enum {
    TAG_PROBE = 5, // after those of train_sync
    SIZES = 9,
    FIRST_LONG = 3,  // of the sizes
    ROUNDS_MAX = 15, // all pairs of 16 workers
    TRAIN_MIN = 2,   // messages
    TRAIN_MAX = 500,
    PAIR_SHORT = 1024,  // bytes, to find the slowest pair
    PAIR_LONG = 1 << 16 // bytes
};

static const size_t sizes[SIZES] = {16,      1 << 10, 1 << 14, 1 << 17, 1 << 18,
                                    1 << 19, 1 << 20, 1 << 21, 1 << 22};

// The longest transmission of a message, in seconds.
#define LONGEST 0.3

// A message that takes longer is not followed by PAIR_LONG.
#define SLOW_SHORT 0.1

// A clock may be too coarse for memory: the fastest network, in bytes a second.
#define FASTEST 1e12

// Slower pairs than this are worth a word.
#define SPREAD_NOTED 1.5

typedef enum stage { STAGE_ROUND, STAGE_PAIR, STAGE_LOAD, STAGE_DONE } stage;

// What worker 0 broadcasts. Sent as it lies in memory.
typedef struct order {
    stage stage;
    uint32_t round;   // of the tournament
    uint32_t pair[2]; // the workers of STAGE_PAIR
    uint32_t count;   // messages of the train that are timed
    uint64_t size;    // bytes of a message
    plan_probe_result result;
} order;

struct plan_probe {
    plan_probe_options options;
    train_sync *sync;
    uint32_t rank, world;
    uint8_t *bytes; // of the longest message, never written
    // The neighbours of this worker, and its messages under load.
    const lac_edge *edges;
    uint32_t degree;
    lac_send *sends;
    lac_receive *receives;
    // Messages of an exchange: of the busiest worker, and of all.
    double busiest, total;
    // Worker 0 only: seconds by worker, below 0 if it did not lead a train.
    const double *times;
    unsigned messages;
};

// The seconds of messages of growing size.
typedef struct ladder {
    double seconds[SIZES];
    size_t used;
    double slope; // seconds a byte, of the long ones
} ladder;

// The pairs of the tournament.
typedef struct pair_times {
    double *seconds;
    size_t count;
    double slowest_seconds;
    uint32_t slowest[2];
} pair_times;

static bool probe_allocate(plan_probe *p)
{
    const train_sync_options options = {
        .transport = p->options.transport,
        .report_size = sizeof(double),
        .decision_size = sizeof(order),
        .timeout = p->options.timeout,
    };
    p->bytes = calloc(1, sizes[SIZES - 1]);
    p->sends = calloc(p->degree + 1u, sizeof(*p->sends));
    p->receives = calloc(p->degree + 1u, sizeof(*p->receives));
    return p->bytes != NULL && p->sends != NULL && p->receives != NULL &&
           train_sync_open(&p->sync, &options) == LAC_OK;
}

static void count_messages(plan_probe *p)
{
    for (uint32_t rank = 0; rank < p->world; rank++) {
        const lac_edge *edges;
        const double degree =
            lac_topology_edges(p->options.topology, rank, 0, &edges);
        p->busiest = fmax(p->busiest, degree);
        p->total += degree;
    }
}

lac_status plan_probe_open(plan_probe **out, const plan_probe_options *options)
{
    *out = NULL;
    const uint32_t world = lac_transport_world(options->transport);
    if (world < 2) {
        return lac_fail(
            LAC_ERR_INVALID, "a probe of %u worker, expected at least 2",
            world);
    }
    plan_probe *const p = calloc(1, sizeof(*p));
    if (p != NULL) {
        p->options = *options;
        p->rank = lac_transport_rank(options->transport);
        p->world = world;
        p->degree =
            lac_topology_edges(options->topology, p->rank, 0, &p->edges);
        count_messages(p);
    }
    if (p == NULL || !probe_allocate(p)) {
        plan_probe_close(p);
        return lac_fail(LAC_ERR_NOMEM, "no memory to probe %u workers", world);
    }
    *out = p;
    return LAC_OK;
}

void plan_probe_close(plan_probe *p)
{
    if (p != NULL) {
        train_sync_close(p->sync);
        free(p->bytes);
        free(p->sends);
        free(p->receives);
        free(p);
    }
}

static double probe_now(const plan_probe *p)
{
    return lac_transport_now(p->options.transport);
}

// --- trains of messages ------------------------------------------------------

static lac_status probe_exchange(plan_probe *p, size_t sends, size_t receives)
{
    return lac_transport_exchange(
        p->options.transport, p->sends, sends, p->receives, receives,
        probe_now(p) + p->options.timeout);
}

static void set_messages(plan_probe *p, size_t i, uint32_t peer, size_t size)
{
    p->sends[i] = (lac_send){
        .peer = peer, .tag = TAG_PROBE, .data = p->bytes, .len = size};
    p->receives[i] = (lac_receive){.peer = peer, .tag = TAG_PROBE, .cap = size};
}

// Sends messages to and fro and returns the seconds of one way.
static lac_status train_of_pair(
    plan_probe *p, const order *o, uint32_t peer, double *out)
{
    const bool leads = p->rank < peer;
    double begun = 0;
    set_messages(p, 0, peer, o->size);
    for (uint32_t i = 0; i <= o->count; i++) {
        begun = i == 1 ? probe_now(p) : begun;
        LAC_TRY(probe_exchange(p, leads, !leads));
        LAC_TRY(probe_exchange(p, !leads, leads));
    }
    *out = leads ? (probe_now(p) - begun) / (2.0 * o->count) : -1;
    return LAC_OK;
}

// Exchanges with all neighbours and returns the seconds of one exchange.
static lac_status train_under_load(plan_probe *p, const order *o, double *out)
{
    double begun = 0;
    for (uint32_t k = 0; k < p->degree; k++) {
        set_messages(p, k, p->edges[k].peer, o->size);
    }
    for (uint32_t i = 0; i <= o->count; i++) {
        begun = i == 1 ? probe_now(p) : begun;
        LAC_TRY(probe_exchange(p, p->degree, p->degree));
    }
    *out = (probe_now(p) - begun) / o->count;
    return LAC_OK;
}

// The rounds of a tournament in which every pair meets once.
static uint32_t tournament_rounds(uint32_t world)
{
    return world % 2 == 0 ? world - 1 : world;
}

// Returns whom a worker meets in a round: the sum of their ranks is twice the
// round, modulo the number of rounds. The one that would meet itself meets the
// last worker, or rests and gets its own rank.
static uint32_t opponent(uint32_t world, uint32_t round, uint32_t rank)
{
    const uint32_t rounds = tournament_rounds(world);
    if (rank == rounds) {
        return round;
    }
    const uint32_t other = (2 * round + rounds - rank) % rounds;
    return other != rank ? other : rounds < world ? rounds : rank;
}

static uint32_t peer_of(const plan_probe *p, const order *o)
{
    if (o->stage == STAGE_ROUND) {
        return opponent(p->world, o->round, p->rank);
    }
    return p->rank == o->pair[0]   ? o->pair[1]
           : p->rank == o->pair[1] ? o->pair[0]
                                   : p->rank;
}

// Runs the train that was ordered. Seconds are below 0 for workers that take no
// part or whose peer reports them.
static lac_status run_train(plan_probe *p, const order *o, double *out)
{
    *out = -1;
    if (o->stage == STAGE_LOAD) {
        return train_under_load(p, o, out);
    }
    const uint32_t peer = peer_of(p, o);
    return peer == p->rank ? LAC_OK : train_of_pair(p, o, peer, out);
}

// --- worker 0 ----------------------------------------------------------------

static void count_train(plan_probe *p, const order *o)
{
    const double pairs = o->stage == STAGE_ROUND ? p->world / 2 : 1;
    const double messages = o->stage == STAGE_LOAD ? p->total : 2 * pairs;
    p->messages += (unsigned)((o->count + 1) * messages);
}

// Runs a train of `count` messages on all workers and returns the seconds of
// the slowest.
static lac_status order_train(
    plan_probe *p, order *o, uint32_t count, double *out)
{
    double own = -1;
    const void *reports = NULL;
    const float *const *rows = NULL;
    o->count = count;
    LAC_TRY(train_sync_broadcast(p->sync, o, NULL, 0));
    LAC_TRY(run_train(p, o, &own));
    LAC_TRY(train_sync_gather(p->sync, &own, NULL, 0, &reports, &rows));
    count_train(p, o);
    p->times = reports;
    *out = 0;
    for (uint32_t rank = 0; rank < p->world; rank++) {
        *out = fmax(*out, p->times[rank]);
    }
    return LAC_OK;
}

// Measures messages of one size. A first train determines how many messages
// fit into `share` seconds. Their number is even: a worker that began early has
// a long exchange and a short one in turn.
static lac_status measure(plan_probe *p, order *o, double share, double *out)
{
    LAC_TRY(order_train(p, o, TRAIN_MIN, out));
    const double pairs = fmin(share / (4 * *out), TRAIN_MAX / 2);
    const uint32_t count = 2 * (uint32_t)pairs;
    return count <= TRAIN_MIN ? LAC_OK : order_train(p, o, count, out);
}

// The slope of the line through the last points. Relative errors count alike.
static double fit_slope(const ladder *l, size_t first)
{
    double s = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t i = first; i < l->used; i++) {
        const double x = (double)sizes[i], y = l->seconds[i];
        const double weight = 1 / fmax(y * y, 1e-18);
        s += weight;
        sx += weight * x;
        sy += weight * y;
        sxx += weight * x * x;
        sxy += weight * x * y;
    }
    return (s * sxy - sx * sy) / (s * sxx - sx * sx);
}

// Measures messages of growing size, in about `seconds`.
static lac_status climb(plan_probe *p, order *o, double seconds, ladder *l)
{
    const double begun = probe_now(p);
    double longer = 0; // how long the next size will take to transmit
    for (l->used = 0; l->used < SIZES && longer <= LONGEST;) {
        const size_t i = l->used++;
        o->size = sizes[i];
        LAC_TRY(measure(p, o, seconds / SIZES, &l->seconds[i]));
        if (l->used > FIRST_LONG && probe_now(p) - begun > seconds) {
            break;
        }
        if (i > 0 && l->used < SIZES) {
            longer = (l->seconds[i] - l->seconds[0]) * (double)sizes[l->used] /
                     (double)sizes[i];
        }
    }
    const size_t first = l->used >= FIRST_LONG + 2 ? FIRST_LONG : l->used - 2;
    l->slope = fmax(fit_slope(l, first), 1 / FASTEST);
    return LAC_OK;
}

static void note_pairs(const plan_probe *p, pair_times *found, uint32_t round)
{
    for (uint32_t rank = 0; rank < p->world; rank++) {
        const double seconds = p->times[rank];
        if (seconds < 0) {
            continue;
        }
        found->seconds[found->count++] = seconds;
        if (found->count == 1 || seconds > found->slowest_seconds) {
            found->slowest_seconds = seconds;
            found->slowest[0] = rank;
            found->slowest[1] = opponent(p->world, round, rank);
        }
    }
}

static lac_status probe_pairs(plan_probe *p, order *o, pair_times *found)
{
    const double until = probe_now(p) + p->options.budget / 4;
    const uint32_t all = tournament_rounds(p->world);
    const uint32_t rounds = all < ROUNDS_MAX ? all : ROUNDS_MAX;
    double seconds = 0;
    o->stage = STAGE_ROUND;
    o->size = PAIR_SHORT;
    LAC_TRY(order_train(p, o, TRAIN_MIN, &seconds));
    o->size = seconds < SLOW_SHORT ? PAIR_LONG : PAIR_SHORT;
    for (uint32_t i = 0; i < rounds && (i == 0 || probe_now(p) < until); i++) {
        o->round = (uint32_t)((uint64_t)i * all / rounds);
        LAC_TRY(
            measure(p, o, p->options.budget / (4.0 * ROUNDS_MAX), &seconds));
        note_pairs(p, found, o->round);
    }
    return LAC_OK;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarise_pairs(pair_times *found, plan_probe_result *r)
{
    qsort(found->seconds, found->count, sizeof(double), ascending);
    const double median = found->seconds[found->count / 2];
    r->slowest[0] = found->slowest[0];
    r->slowest[1] = found->slowest[1];
    r->spread = median > 0 ? found->slowest_seconds / median : 1;
}

// How many messages pass the narrowest place of a network one after the other.
static double messages_in_turn(const plan_probe *p, plan_network_kind kind)
{
    return kind == PLAN_SHARED ? p->total : kind == PLAN_PAIRS ? 1 : p->busiest;
}

static plan_network_kind nearest_kind(const plan_probe *p, double in_turn)
{
    static const plan_network_kind kinds[] = {
        PLAN_STAR, PLAN_PAIRS, PLAN_SHARED};
    plan_network_kind nearest = PLAN_STAR;
    double least = HUGE_VAL;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const double distance =
            fabs(log(in_turn / messages_in_turn(p, kinds[i])));
        if (distance < least) {
            least = distance;
            nearest = kinds[i];
        }
    }
    return nearest;
}

static void conclude(
    const plan_probe *p, const ladder *pair, const ladder *load,
    plan_probe_result *r)
{
    const plan_network_kind kind =
        p->options.kind != NULL ? *p->options.kind
                                : nearest_kind(p, load->slope / pair->slope);
    const double latency = load->seconds[0] - load->slope * (double)sizes[0];
    r->network = (plan_network){
        .kind = kind,
        .bandwidth = fmin(messages_in_turn(p, kind) / load->slope, FASTEST),
        .latency = fmax(latency, 0),
    };
    r->pair_rate = 1 / pair->slope;
    r->load_rate = p->busiest / load->slope;
    r->messages = p->messages;
}

static lac_status lead(plan_probe *p, pair_times *found, order *o)
{
    const double begun = probe_now(p);
    ladder pair = {.used = 0}, load = {.used = 0};
    LAC_TRY(probe_pairs(p, o, found));
    summarise_pairs(found, &o->result);
    o->stage = STAGE_PAIR;
    o->pair[0] = found->slowest[0];
    o->pair[1] = found->slowest[1];
    LAC_TRY(climb(p, o, p->options.budget / 4, &pair));
    o->stage = STAGE_LOAD;
    LAC_TRY(climb(p, o, p->options.budget / 2, &load));
    conclude(p, &pair, &load, &o->result);
    o->result.seconds = probe_now(p) - begun;
    o->stage = STAGE_DONE;
    return train_sync_broadcast(p->sync, o, NULL, 0);
}

static lac_status lead_with_memory(plan_probe *p, order *o)
{
    const size_t most = (size_t)ROUNDS_MAX * (p->world / 2);
    pair_times found = {.seconds = calloc(most, sizeof(double))};
    if (found.seconds == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for %zu pairs", most);
    }
    const lac_status status = lead(p, &found, o);
    free(found.seconds);
    return status;
}

// --- the others --------------------------------------------------------------

static lac_status follow(plan_probe *p, order *o)
{
    for (;;) {
        double own = -1;
        const void *reports = NULL;
        const float *const *rows = NULL;
        LAC_TRY(train_sync_broadcast(p->sync, o, NULL, 0));
        if (o->stage == STAGE_DONE) {
            return LAC_OK;
        }
        LAC_TRY(run_train(p, o, &own));
        LAC_TRY(train_sync_gather(p->sync, &own, NULL, 0, &reports, &rows));
    }
}

lac_status plan_probe_run(plan_probe *p, plan_probe_result *out)
{
    order o = {.stage = STAGE_ROUND};
    LAC_TRY(p->rank == 0 ? lead_with_memory(p, &o) : follow(p, &o));
    *out = o.result;
    return LAC_OK;
}

void plan_probe_describe(const plan_probe_result *r, char *out, size_t size)
{
    const int len = snprintf(
        out, size, "measured by %u messages in %.1f s", r->messages,
        r->seconds);
    if (len > 0 && (size_t)len < size && r->spread >= SPREAD_NOTED) {
        (void)snprintf(
            out + len, size - (size_t)len,
            "; messages between workers %u and %u take %.1f times the median",
            r->slowest[0], r->slowest[1], r->spread);
    }
}
