// SPDX-License-Identifier: MIT
// Drives the connections: waits for events and handles them, in the worker's
// calls or in the session's own thread.
//
// While the worker computes, its peers must still be able to send to it, and
// the rest of a long message must still leave. The thread does that once the
// worker has been away for a while; taking over at once would cost every short
// exchange two switches.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "transport/tcp/session.h"

// The thread takes over when the worker has been away so long.
#define AWAY_SECONDS 2e-3

enum { THREAD_WAIT_MS = 1000 };

static lac_status engine_fail(const laci_tcp_session *s, const char *what)
{
    return s->services->fail(
        LAC_ERR_NOMEM, "tcp: %s: %s", what, strerror(errno));
}

void laci_tcp_kick(laci_tcp_session *s)
{
    const uint64_t one = 1;
    const ssize_t written = write(s->kick, &one, sizeof(one));
    (void)written; // it fails only if a kick is already due
}

bool laci_tcp_watch(laci_tcp_session *s, laci_tcp_peer *p)
{
    struct epoll_event event = {
        .events = p->paused ? 0 : (uint32_t)EPOLLIN, .data.ptr = p};
    p->watched_events = event.events;
    p->watched =
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, p->connection->socket, &event) == 0;
    return p->watched;
}

void laci_tcp_rewatch(laci_tcp_session *s, laci_tcp_peer *p)
{
    const laci_tcp_connection *const c = p->connection;
    const bool sends = p->first_out != NULL || c->out_start < c->out_end;
    const bool reads = !p->paused && !p->unusable;
    struct epoll_event event = {
        .events =
            (reads ? (uint32_t)EPOLLIN : 0) | (sends ? (uint32_t)EPOLLOUT : 0),
        .data.ptr = p,
    };
    if (p->watched && event.events != p->watched_events &&
        epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->socket, &event) == 0) {
        p->watched_events = event.events;
    }
}

// Whether the running exchange waits for a message of `peer`.
static bool is_awaited(const laci_tcp_session *s, uint32_t peer)
{
    for (size_t i = 0; i < s->receive_count; i++) {
        const laci_tcp_message *const message = s->claims[i];
        const bool missing =
            message == NULL || message->got < message->head.len;
        if (missing && s->receives[i].peer == peer) {
            return true;
        }
    }
    return false;
}

// A peer can run ahead of this worker only so far: then nothing more is read
// from it, and TCP makes it wait. Messages that the running exchange waits for
// are always read. All workers make the same exchanges in the same order, so
// the one that is last waits only for messages that were sent, and goes on.
void laci_tcp_pause_those_ahead(laci_tcp_session *s)
{
    s->maybe_ahead = false;
    for (uint32_t peer = 0; peer < s->world; peer++) {
        laci_tcp_peer *const p = &s->peers[peer];
        const bool ahead = laci_tcp_early(p) > LACI_TCP_AHEAD_BYTES;
        const bool pause = ahead && !is_awaited(s, peer);
        s->maybe_ahead = s->maybe_ahead || ahead;
        if (p->connection != NULL && pause != p->paused) {
            p->paused = pause;
            laci_tcp_rewatch(s, p);
        }
    }
}

static void handle(
    laci_tcp_session *s, const struct epoll_event *events, int count)
{
    if (s->maybe_ahead) {
        laci_tcp_pause_those_ahead(s);
    }
    for (int i = 0; i < count; i++) {
        laci_tcp_peer *const p = events[i].data.ptr;
        if (p == NULL) {
            uint64_t kicks;
            const ssize_t got = read(s->kick, &kicks, sizeof(kicks));
            (void)got;
            continue;
        }
        if (p->connection != NULL && (events[i].events & EPOLLOUT) != 0) {
            laci_tcp_push(s, p);
        }
        // Of a peer that is not read, only an end is reported.
        if (p->connection != NULL &&
            (events[i].events & ~(uint32_t)EPOLLOUT) != 0) {
            laci_tcp_pull(s, p);
        }
    }
}

void laci_tcp_progress(laci_tcp_session *s, int wait_ms)
{
    struct epoll_event events[LACI_TCP_EVENTS];
    handle(s, events, epoll_wait(s->epoll, events, LACI_TCP_EVENTS, wait_ms));
}

// Sleeps until the worker may have been away for long enough.
static void rest(laci_tcp_session *s)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(AWAY_SECONDS * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&s->rest, &s->engine, &until);
}

static void *thread_main(void *raw)
{
    laci_tcp_session *const s = raw;
    struct epoll_event events[LACI_TCP_EVENTS];
    (void)pthread_mutex_lock(&s->engine);
    while (!atomic_load(&s->quit)) {
        if (atomic_load(&s->driven) ||
            s->services->now() - s->last_drive < AWAY_SECONDS) {
            rest(s);
            continue;
        }
        if (atomic_load(&s->aborted)) {
            laci_tcp_announce_abort(s);
        }
        atomic_store(&s->in_thread, true);
        (void)pthread_mutex_unlock(&s->engine);
        const int count =
            epoll_wait(s->epoll, events, LACI_TCP_EVENTS, THREAD_WAIT_MS);
        (void)pthread_mutex_lock(&s->engine);
        atomic_store(&s->in_thread, false);
        if (atomic_load(&s->driven)) {
            continue; // the worker sees the same events
        }
        handle(s, events, count);
    }
    (void)pthread_mutex_unlock(&s->engine);
    return NULL;
}

void laci_tcp_take(laci_tcp_session *s)
{
    atomic_store(&s->driven, true);
    if (atomic_load(&s->in_thread)) {
        laci_tcp_kick(s);
    }
    (void)pthread_mutex_lock(&s->engine);
}

void laci_tcp_give(laci_tcp_session *s)
{
    s->last_drive = s->services->now();
    atomic_store(&s->driven, false);
    (void)pthread_mutex_unlock(&s->engine);
}

static bool init_sync(laci_tcp_session *s)
{
    pthread_condattr_t clock;
    if (pthread_mutex_init(&s->lock, NULL) != 0) {
        return false;
    }
    if (pthread_mutex_init(&s->engine, NULL) != 0) {
        (void)pthread_mutex_destroy(&s->lock);
        return false;
    }
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    const bool made = pthread_cond_init(&s->rest, &clock) == 0;
    (void)pthread_condattr_destroy(&clock);
    if (!made) {
        (void)pthread_mutex_destroy(&s->engine);
        (void)pthread_mutex_destroy(&s->lock);
    }
    return made;
}

lac_status laci_tcp_engine_open(laci_tcp_session *s)
{
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (s->epoll < 0 || s->kick < 0 ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->kick, &event) != 0 ||
        !init_sync(s)) {
        const lac_status status = engine_fail(s, "cannot watch connections");
        (void)close(s->epoll);
        (void)close(s->kick);
        return status;
    }
    return LAC_OK;
}

void laci_tcp_engine_close(laci_tcp_session *s)
{
    (void)close(s->epoll);
    (void)close(s->kick);
    (void)pthread_cond_destroy(&s->rest);
    (void)pthread_mutex_destroy(&s->engine);
    (void)pthread_mutex_destroy(&s->lock);
}

lac_status laci_tcp_engine_start(laci_tcp_session *s)
{
    s->last_drive = s->services->now();
    sigset_t all, before;
    (void)sigfillset(&all); // signals are for the threads of the program
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(&s->thread, NULL, thread_main, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        errno = code;
        return engine_fail(s, "cannot create a thread");
    }
    s->threaded = true;
    return LAC_OK;
}

void laci_tcp_engine_stop(laci_tcp_session *s)
{
    laci_tcp_take(s);
    atomic_store(&s->quit, true);
    (void)pthread_cond_signal(&s->rest);
    laci_tcp_kick(s);
    laci_tcp_give(s);
    if (s->threaded) {
        (void)pthread_join(s->thread, NULL);
        s->threaded = false;
    }
}
