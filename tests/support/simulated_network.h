// SPDX-License-Identifier: MIT
// A user-defined transport between threads, on a network with fluid links and a
// clock of its own: an event simulation. Time passes only while all workers
// wait, up to the next message that begins to move or has arrived, so results
// are exact and the same in every run.
//
// A message moves after one latency, at the bandwidth of the network divided
// among the messages that use the same place: a port of its sender or receiver
// (star), the link of its pair (pairs), or the medium (shared).
//
// Tests that include this are linked with --wrap=lac_transport_now.
#ifndef LACONIC_TESTS_SIMULATED_NETWORK_H
#define LACONIC_TESTS_SIMULATED_NETWORK_H

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <laconic/laconic.h>

#include "cli/plan/network.h"

enum { SIM_WORLD_MAX = 16, SIM_SHORT = 4096, SIM_LONG = 1 << 22 };

// Messages that are shorter than this many bytes have arrived.
#define SIM_CRUMB 1e-6

typedef struct sim_message {
    struct sim_message *next; // in the order in which they were sent
    uint32_t from, to, tag;
    size_t len;
    double moves; // when it begins to move
    double left;  // bytes that have not arrived
    double rate;
    bool arrived;
    uint8_t *copy; // of a short message; the bytes of a long one are not kept
} sim_message;

typedef struct sim_member {
    struct sim_network *network;
    uint32_t rank;
    bool waits;
    const lac_receive *receives;
    size_t receive_count;
    double deadline;
    sim_message *lent;
    unsigned exchanges;
    pthread_cond_t wake;
} sim_member;

typedef struct sim_network {
    plan_network links;
    uint32_t world;
    double slow;      // of worker 2: its port is so many times slower; 0: not
    bool paired;      // workers 2 i and 2 i + 1 are on one machine
    unsigned lost_at; // worker 1 is silent from this exchange on; 0: never
    pthread_mutex_t lock; // protects all that follows
    double now;
    uint32_t running;
    bool aborted;
    char why[512];
    sim_message *first;
    sim_member members[SIM_WORLD_MAX];
} sim_network;

// The network of the running test: there is one clock.
static sim_network *sim_current;

double __wrap_lac_transport_now(const lac_transport *t);

double __wrap_lac_transport_now(const lac_transport *t)
{
    (void)t;
    return sim_current->now; // does not change while a worker runs
}

static const uint8_t *sim_long_bytes(void)
{
    static uint8_t bytes[SIM_LONG];
    return bytes;
}

static inline bool sim_near(const sim_network *s, const sim_message *m)
{
    return s->paired && m->from / 2 == m->to / 2;
}

static inline bool sim_is_moving(const sim_network *s, const sim_message *m)
{
    return !m->arrived && m->moves <= s->now;
}

// Bytes a second of one direction of a worker's port.
static inline double sim_port(const sim_network *s, uint32_t rank)
{
    return s->links.bandwidth / (s->slow > 0 && rank == 2 ? s->slow : 1);
}

// The messages that move now.
typedef struct sim_load {
    double out[SIM_WORLD_MAX], in[SIM_WORLD_MAX];
    double link[SIM_WORLD_MAX][SIM_WORLD_MAX];
    double all;
} sim_load;

static inline sim_load sim_count(const sim_network *s)
{
    sim_load load = {.all = 0};
    for (const sim_message *m = s->first; m != NULL; m = m->next) {
        if (sim_is_moving(s, m) && !sim_near(s, m)) {
            load.out[m->from]++;
            load.in[m->to]++;
            load.link[m->from][m->to]++;
            load.all++;
        }
    }
    return load;
}

static inline double sim_rate(
    const sim_network *s, const sim_load *load, const sim_message *m)
{
    if (sim_near(s, m)) {
        return 100 * s->links.bandwidth;
    }
    switch (s->links.kind) {
    case PLAN_PAIRS:
        return s->links.bandwidth / load->link[m->from][m->to];
    case PLAN_SHARED:
        return s->links.bandwidth / load->all;
    default:
        return fmin(
            sim_port(s, m->from) / load->out[m->from],
            sim_port(s, m->to) / load->in[m->to]);
    }
}

// Sets the rates of all that moves, and returns when something happens next.
static inline double sim_next_event(sim_network *s)
{
    const sim_load load = sim_count(s);
    double next = HUGE_VAL;
    for (sim_message *m = s->first; m != NULL; m = m->next) {
        if (sim_is_moving(s, m)) {
            m->rate = sim_rate(s, &load, m);
            next = fmin(next, s->now + m->left / m->rate);
        } else if (!m->arrived) {
            next = fmin(next, m->moves);
        }
    }
    return next;
}

static inline void sim_move(sim_network *s, double until)
{
    for (sim_message *m = s->first; m != NULL; m = m->next) {
        if (sim_is_moving(s, m)) {
            m->left -= m->rate * (until - s->now);
            m->arrived = m->left <= SIM_CRUMB;
        }
    }
    s->now = until;
}

// Returns the message for receive i: the first of its peer and tag that the
// receives before it do not get.
static inline sim_message *sim_find(const sim_member *w, size_t i)
{
    const lac_receive *const r = &w->receives[i];
    size_t skip = 0;
    for (size_t k = 0; k < i; k++) {
        skip += w->receives[k].peer == r->peer && w->receives[k].tag == r->tag;
    }
    sim_message *m = w->network->first;
    for (; m != NULL; m = m->next) {
        if (m->from == r->peer && m->to == w->rank && m->tag == r->tag &&
            skip-- == 0) {
            return m;
        }
    }
    return NULL;
}

// Returns the first receive that has no message yet, or receive_count.
static inline size_t sim_missing(const sim_member *w)
{
    size_t i = 0;
    while (i < w->receive_count) {
        const sim_message *const m = sim_find(w, i);
        if (m == NULL || !m->arrived) {
            break;
        }
        i++;
    }
    return i;
}

static inline bool sim_is_ready(const sim_member *w)
{
    return w->network->aborted || w->network->now >= w->deadline ||
           sim_missing(w) == w->receive_count;
}

// Lets time pass until a worker can go on.
static inline void sim_advance(sim_network *s)
{
    while (s->running == 0) {
        double next = sim_next_event(s);
        for (uint32_t i = 0; i < s->world; i++) {
            next =
                s->members[i].waits ? fmin(next, s->members[i].deadline) : next;
        }
        if (next == HUGE_VAL) {
            return; // everybody has left or is lost
        }
        sim_move(s, next);
        for (uint32_t i = 0; i < s->world; i++) {
            sim_member *const w = &s->members[i];
            if (w->waits && sim_is_ready(w)) {
                w->waits = false;
                s->running++;
                (void)pthread_cond_signal(&w->wake);
            }
        }
    }
}

static inline void sim_stop_running(sim_network *s)
{
    s->running--;
    if (s->running == 0) {
        sim_advance(s);
    }
}

static inline lac_status sim_wait(sim_member *w)
{
    sim_network *const s = w->network;
    if (!sim_is_ready(w)) {
        w->waits = true;
        sim_stop_running(s);
        while (w->waits) {
            (void)pthread_cond_wait(&w->wake, &s->lock);
        }
    }
    if (s->aborted) {
        return lac_fail(LAC_ERR_PEER, "%s", s->why);
    }
    const size_t missing = sim_missing(w);
    return missing == w->receive_count
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_PEER, "worker %u was silent",
                     w->receives[missing].peer);
}

static inline void sim_send(sim_member *w, const lac_send *send)
{
    sim_network *const s = w->network;
    sim_message **at = &s->first;
    sim_message *const m = malloc(sizeof(*m));
    if (m == NULL || send->len > SIM_LONG) {
        abort();
    }
    *m = (sim_message){
        .from = w->rank,
        .to = send->peer,
        .tag = send->tag,
        .len = send->len,
        .left = (double)send->len,
    };
    m->moves = s->now + s->links.latency / (sim_near(s, m) ? 100 : 1);
    if (send->len <= SIM_SHORT) {
        m->copy = malloc(send->len + 1);
        if (m->copy == NULL) {
            abort();
        }
        memcpy(m->copy, send->data, send->len);
    }
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = m;
}

static inline void sim_free(sim_message *m)
{
    free(m->copy);
    free(m);
}

static inline void sim_end_loans(sim_member *w)
{
    while (w->lent != NULL) {
        sim_message *const m = w->lent;
        w->lent = m->next;
        sim_free(m);
    }
}

static inline void sim_take(sim_member *w, lac_receive *r, sim_message *m)
{
    sim_message **at = &w->network->first;
    while (*at != m) {
        at = &(*at)->next;
    }
    *at = m->next;
    m->next = w->lent;
    w->lent = m;
    r->len = m->len;
    r->data = m->copy != NULL ? m->copy : sim_long_bytes();
    if (r->buffer != NULL) {
        memcpy(r->buffer, r->data, r->len < r->cap ? r->len : r->cap);
    }
}

// A worker that is lost is silent until the others have given up.
static inline lac_status sim_vanish(sim_member *w)
{
    sim_network *const s = w->network;
    sim_stop_running(s);
    while (!s->aborted) {
        (void)pthread_cond_wait(&w->wake, &s->lock);
    }
    s->running++;
    return lac_fail(LAC_ERR_PEER, "%s", s->why);
}

static inline lac_status sim_exchange(
    void *context, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline)
{
    sim_member *const w = context;
    sim_network *const s = w->network;
    (void)pthread_mutex_lock(&s->lock);
    sim_end_loans(w);
    w->receives = receives;
    w->receive_count = receive_count;
    w->deadline = deadline;
    w->exchanges++;
    lac_status status;
    if (w->rank == 1 && w->exchanges == s->lost_at) {
        status = sim_vanish(w);
    } else {
        for (size_t i = 0; i < send_count; i++) {
            sim_send(w, &sends[i]);
        }
        status = sim_wait(w);
    }
    for (size_t i = 0; i < receive_count && status == LAC_OK; i++) {
        w->receive_count = receive_count - i;
        w->receives = &receives[i];
        sim_take(w, &receives[i], sim_find(w, 0));
    }
    (void)pthread_mutex_unlock(&s->lock);
    return status;
}

static inline void sim_abort(void *context, const char *why)
{
    const sim_member *const w = context;
    sim_network *const s = w->network;
    (void)pthread_mutex_lock(&s->lock);
    if (!s->aborted) {
        s->aborted = true;
        (void)snprintf(
            s->why, sizeof(s->why), "worker %u aborted: %s", w->rank, why);
    }
    for (uint32_t i = 0; i < s->world; i++) {
        s->running += s->members[i].waits;
        s->members[i].waits = false;
        (void)pthread_cond_signal(&s->members[i].wake);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

static inline void sim_leave(void *context)
{
    sim_member *const w = context;
    (void)pthread_mutex_lock(&w->network->lock);
    sim_end_loans(w);
    sim_stop_running(w->network);
    (void)pthread_mutex_unlock(&w->network->lock);
}

static const lac_transport_ops sim_ops = {
    .size = sizeof(lac_transport_ops),
    .exchange = sim_exchange,
    .abort = sim_abort,
    .leave = sim_leave,
};

// Prepares a network whose links and world are set.
static inline void sim_open(sim_network *s)
{
    (void)pthread_mutex_init(&s->lock, NULL);
    s->running = s->world;
    for (uint32_t rank = 0; rank < s->world; rank++) {
        s->members[rank].network = s;
        s->members[rank].rank = rank;
        (void)pthread_cond_init(&s->members[rank].wake, NULL);
    }
    sim_current = s;
}

static inline lac_status sim_join(
    sim_network *s, uint32_t rank, lac_transport **out)
{
    return lac_transport_join_with(
        out, &sim_ops, &s->members[rank], rank, s->world);
}

// All workers must have left.
static inline void sim_close(sim_network *s)
{
    while (s->first != NULL) {
        sim_message *const m = s->first;
        s->first = m->next;
        sim_free(m);
    }
    for (uint32_t rank = 0; rank < s->world; rank++) {
        (void)pthread_cond_destroy(&s->members[rank].wake);
    }
    (void)pthread_mutex_destroy(&s->lock);
}

#endif
