// SPDX-License-Identifier: MIT
// Threads of one process as workers over a user-defined transport: one list of
// messages and one lock. It borrows as long as it may: the bytes of a message
// are copied when it is received, or at the end of the sender's next exchange.
// With a rendezvous it borrows as briefly as it may instead, and an exchange
// waits until its messages are received. Needs POSIX 2008.
#ifndef LACONIC_TESTS_USER_GROUP_H
#define LACONIC_TESTS_USER_GROUP_H

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <laconic/laconic.h>

enum { USER_GROUP_MAX = 64, USER_TEXT = 400 };

typedef struct user_message {
    struct user_message *next;
    uint32_t from;
    uint32_t to;
    uint32_t tag;
    bool claimed;
    uint64_t serial; // the exchange of the sender
    const void *data;
    void *copy; // NULL: data is borrowed
    size_t len;
} user_message;

typedef struct user_member {
    struct user_group *group;
    uint32_t rank;
    uint64_t serial;
    user_message *lent; // to this worker, by its last exchange
    float *x;           // of a running sum
    int left;           // calls of leave
} user_member;

typedef struct user_group {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    uint32_t world;
    bool rendezvous;
    user_message *first;
    uint32_t cause; // 1 + the first worker that aborted, or 0
    char why[USER_TEXT];
    uint32_t summing; // workers in the running sum
    uint64_t sums;    // that were done
    user_member members[USER_GROUP_MAX];
} user_group;

static inline void user_detach(user_message *m)
{
    if (m->copy == NULL) {
        m->copy = malloc(m->len + 1);
        if (m->copy == NULL) {
            abort();
        }
        if (m->len > 0) {
            memcpy(m->copy, m->data, m->len);
        }
        m->data = m->copy;
    }
}

static inline void user_free(user_message *m)
{
    free(m->copy);
    free(m);
}

static inline void user_end_loans(user_member *w)
{
    while (w->lent != NULL) {
        user_message *const m = w->lent;
        w->lent = m->next;
        user_free(m);
    }
}

static inline void user_unlink(user_group *g, user_message *m)
{
    user_message **at = &g->first;
    while (*at != m) {
        at = &(*at)->next;
    }
    *at = m->next;
}

// Detaches what `w` sent before its exchange `serial`.
static inline void user_detach_sent(const user_member *w, uint64_t serial)
{
    for (user_message *m = w->group->first; m != NULL; m = m->next) {
        if (m->from == w->rank && m->serial < serial) {
            user_detach(m);
        }
    }
}

static inline void user_post(user_member *w, const lac_send *send)
{
    user_message **at = &w->group->first;
    user_message *const m = malloc(sizeof(*m));
    if (m == NULL) {
        abort();
    }
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *m = (user_message){
        .from = w->rank,
        .to = send->peer,
        .tag = send->tag,
        .serial = w->serial,
        .data = send->data,
        .len = send->len,
    };
    *at = m;
}

static inline user_message *user_find(
    const user_member *w, const lac_receive *receive)
{
    user_message *m = w->group->first;
    while (m != NULL && (m->claimed || m->to != w->rank ||
                         m->from != receive->peer || m->tag != receive->tag)) {
        m = m->next;
    }
    return m;
}

// An aborted worker itself fails without a message: the library has one.
static inline lac_status user_check_cause(const user_member *w)
{
    const user_group *const g = w->group;
    if (g->cause == w->rank + 1) {
        return LAC_ERR_PEER;
    }
    return g->cause == 0 ? LAC_OK
                         : lac_fail(
                               LAC_ERR_PEER, "worker %u aborted: %s",
                               g->cause - 1, g->why);
}

static inline void user_wait(user_group *g, double deadline)
{
    const double most = fmin(deadline, lac_transport_now(NULL) + 1e6);
    const struct timespec until = {
        .tv_sec = (time_t)most,
        .tv_nsec = (long)(1e9 * (most - floor(most))),
    };
    (void)pthread_cond_timedwait(&g->wake, &g->lock, &until);
}

// Claims the message of one receive. Waits for it until the deadline.
static inline lac_status user_claim(
    user_member *w, const lac_receive *receive, double deadline,
    user_message **out)
{
    const double begun = lac_transport_now(NULL);
    while ((*out = user_find(w, receive)) == NULL) {
        LAC_TRY(user_check_cause(w));
        if (w->group->members[receive->peer].left > 0) {
            return lac_fail(
                LAC_ERR_PEER,
                "worker %u has left, but worker %u waits for its message",
                receive->peer, w->rank);
        }
        if (lac_transport_now(NULL) >= deadline) {
            return lac_fail(
                LAC_ERR_PEER,
                "worker %u was silent for %.1f seconds in an exchange of "
                "worker %u",
                receive->peer, lac_transport_now(NULL) - begun, w->rank);
        }
        user_wait(w->group, deadline);
    }
    (*out)->claimed = true;
    return LAC_OK;
}

// A message that is too long for a receive without a buffer is left to the
// library.
static inline lac_status user_deliver(
    user_member *w, lac_receive *receive, user_message *m)
{
    receive->len = m->len;
    user_unlink(w->group, m);
    if (receive->buffer == NULL) {
        user_detach(m);
        receive->data = m->len == 0 ? NULL : m->data;
        m->next = w->lent;
        w->lent = m;
        return LAC_OK;
    }
    const bool fits = m->len <= receive->cap;
    if (fits && m->len > 0) {
        memcpy(receive->buffer, m->data, m->len);
    }
    const size_t len = m->len;
    user_free(m);
    return fits ? LAC_OK
                : lac_fail(
                      LAC_ERR_SPACE, "a message has %zu bytes, expected %zu",
                      len, receive->cap);
}

static inline lac_status user_run(
    user_member *w, lac_receive *receives, size_t count, double deadline)
{
    for (size_t i = 0; i < count; i++) {
        user_message *m = NULL;
        LAC_TRY(user_claim(w, &receives[i], deadline, &m));
        LAC_TRY(user_deliver(w, &receives[i], m));
    }
    return LAC_OK;
}

static inline bool user_has_sent(const user_member *w)
{
    const user_message *m = w->group->first;
    while (m != NULL && m->from != w->rank) {
        m = m->next;
    }
    return m != NULL;
}

static inline lac_status user_rendezvous(user_member *w, double deadline)
{
    (void)pthread_cond_broadcast(&w->group->wake);
    while (user_has_sent(w)) {
        LAC_TRY(user_check_cause(w));
        if (lac_transport_now(NULL) >= deadline) {
            return lac_fail(
                LAC_ERR_PEER, "a message of worker %u was not received",
                w->rank);
        }
        user_wait(w->group, deadline);
    }
    return LAC_OK;
}

static inline lac_status user_group_exchange(
    void *context, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline)
{
    user_member *const w = context;
    user_group *const g = w->group;
    lac_status status = LAC_OK;
    (void)pthread_mutex_lock(&g->lock);
    user_end_loans(w);
    w->serial++;
    for (size_t i = 0; i < send_count && status == LAC_OK; i++) {
        if (g->members[sends[i].peer].left > 0) {
            status = user_check_cause(w);
            status = status != LAC_OK
                         ? status
                         : lac_fail(
                               LAC_ERR_PEER,
                               "worker %u has left, but worker %u sends to it",
                               sends[i].peer, w->rank);
        } else {
            user_post(w, &sends[i]);
        }
    }
    (void)pthread_cond_broadcast(&g->wake);
    if (status == LAC_OK) {
        status = user_run(w, receives, receive_count, deadline);
    }
    if (status == LAC_OK && g->rendezvous) {
        status = user_rendezvous(w, deadline);
    }
    user_detach_sent(w, w->serial);
    (void)pthread_mutex_unlock(&g->lock);
    return status;
}

static inline void user_group_abort(void *context, const char *why)
{
    const user_member *const w = context;
    user_group *const g = w->group;
    (void)pthread_mutex_lock(&g->lock);
    if (g->cause == 0) {
        g->cause = w->rank + 1;
        (void)snprintf(g->why, sizeof(g->why), "%s", why);
    }
    (void)pthread_cond_broadcast(&g->wake);
    (void)pthread_mutex_unlock(&g->lock);
}

static inline void user_group_leave(void *context)
{
    user_member *const w = context;
    user_group *const g = w->group;
    (void)pthread_mutex_lock(&g->lock);
    w->left++;
    user_end_loans(w);
    user_detach_sent(w, UINT64_MAX);
    (void)pthread_cond_broadcast(&g->wake);
    (void)pthread_mutex_unlock(&g->lock);
}

// The sum of each value, in the order of the workers.
static inline void user_add(user_group *g, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float sum = 0;
        for (uint32_t rank = 0; rank < g->world; rank++) {
            sum += g->members[rank].x[i];
        }
        for (uint32_t rank = 0; rank < g->world; rank++) {
            g->members[rank].x[i] = sum;
        }
    }
}

static inline lac_status user_await_sum(
    user_member *w, uint64_t number, double deadline)
{
    const double begun = lac_transport_now(NULL);
    while (w->group->sums < number) {
        LAC_TRY(user_check_cause(w));
        if (lac_transport_now(NULL) >= deadline) {
            return lac_fail(
                LAC_ERR_PEER, "a sum was not done after %.1f seconds",
                lac_transport_now(NULL) - begun);
        }
        user_wait(w->group, deadline);
    }
    return LAC_OK;
}

static inline lac_status user_group_sum(
    void *context, float *x, size_t n, double deadline)
{
    user_member *const w = context;
    user_group *const g = w->group;
    (void)pthread_mutex_lock(&g->lock);
    const uint64_t number = g->sums + 1;
    w->x = x;
    if (++g->summing == g->world) {
        user_add(g, n);
        g->summing = 0;
        g->sums++;
        (void)pthread_cond_broadcast(&g->wake);
    }
    const lac_status status = user_await_sum(w, number, deadline);
    (void)pthread_mutex_unlock(&g->lock);
    return status;
}

static const lac_transport_ops user_group_ops = {
    .size = sizeof(lac_transport_ops),
    .exchange = user_group_exchange,
    .abort = user_group_abort,
    .leave = user_group_leave,
    .allreduce_sum = user_group_sum,
};

static inline void user_group_open(
    user_group *g, uint32_t world, bool rendezvous)
{
    pthread_condattr_t attributes;
    if (world > USER_GROUP_MAX || pthread_condattr_init(&attributes) != 0) {
        abort();
    }
    *g = (user_group){.world = world, .rendezvous = rendezvous};
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&g->lock, NULL);
    (void)pthread_cond_init(&g->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    for (uint32_t rank = 0; rank < world; rank++) {
        g->members[rank].group = g;
        g->members[rank].rank = rank;
    }
}

static inline lac_status user_group_join(
    user_group *g, uint32_t rank, lac_transport **out)
{
    return lac_transport_join_with(
        out, &user_group_ops, &g->members[rank], rank, g->world);
}

// All workers must have left.
static inline void user_group_close(user_group *g)
{
    while (g->first != NULL) {
        user_message *const m = g->first;
        g->first = m->next;
        user_free(m);
    }
    (void)pthread_cond_destroy(&g->wake);
    (void)pthread_mutex_destroy(&g->lock);
}

#endif
