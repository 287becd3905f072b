// SPDX-License-Identifier: MIT
// A loop is cut into pieces, which threads take one after the other until none
// is left. A thread that wakes late takes fewer of them: to wake a sleeping one
// may take 50 us, as long as to encode some hundred thousand values. The owner
// takes pieces too, and waits only for threads that have joined the loop.
//
// Loops of a round follow each other closely. A thread therefore looks for the
// next loop for some microseconds before it sleeps, and the owner for the end
// of this one. Both yield the processor meanwhile, so that a machine with fewer
// cores than threads loses little. A fork of the process has no threads but its
// own: there, loops are not shared.
#define _POSIX_C_SOURCE 200809L // pthread_sigmask
#include "base/pool.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"

enum {
    WORTH = 1 << 16, // indices that are worth a thread
    PIECE = 1 << 15, // the fewest of a piece, unless a thread gets one only
    PIECES = 8,      // the most for each thread
    YIELDS = 64,     // before a thread sleeps
};

typedef struct loop {
    laci_pool_body *body;
    void *context;
    size_t n;
    size_t unit;
    size_t pieces;
    fenv_t mode; // of floating-point operations, that of the owner
} loop;

struct laci_pool {
    pid_t process; // whose threads these are
    pthread_mutex_t lock;
    pthread_cond_t announced;
    pthread_cond_t finished;
    atomic_uint_fast64_t number; // of the current loop; changes under the lock
    atomic_size_t joined;        // threads in it; likewise
    atomic_size_t next;          // the piece that is taken next
    size_t sleeping;             // threads that wait for `announced`
    bool open;                   // whether threads may join
    bool ended;
    loop loop;
    size_t count;
    pthread_t threads[];
};

// Where a piece begins, in whole units.
static size_t piece_start(const loop *l, size_t piece)
{
    const size_t units = l->n / l->unit + (l->n % l->unit != 0);
    const size_t start =
        (units / l->pieces * piece +
         (piece < units % l->pieces ? piece : units % l->pieces)) *
        l->unit;
    return start < l->n ? start : l->n;
}

static void run_pieces(laci_pool *p, const loop *l)
{
    size_t piece = atomic_fetch_add(&p->next, 1);
    for (; piece < l->pieces; piece = atomic_fetch_add(&p->next, 1)) {
        const size_t first = piece_start(l, piece);
        const size_t stop = piece_start(l, piece + 1);
        if (stop > first) {
            l->body(l->context, first, stop - first);
        }
    }
}

// Looks for a loop after number `seen`, for a short while.
static void await_loop(laci_pool *p, uint64_t seen)
{
    for (int i = 0; i < YIELDS && atomic_load(&p->number) == seen; i++) {
        (void)sched_yield();
    }
}

// Takes part in the current loop, under the lock.
static void join_loop(laci_pool *p)
{
    const loop l = p->loop;
    atomic_fetch_add(&p->joined, 1);
    (void)pthread_mutex_unlock(&p->lock);
    (void)fesetenv(&l.mode);
    run_pieces(p, &l);
    (void)pthread_mutex_lock(&p->lock);
    if (atomic_fetch_sub(&p->joined, 1) == 1) {
        (void)pthread_cond_signal(&p->finished);
    }
}

static void *pool_serve(void *argument)
{
    laci_pool *const p = argument;
    uint64_t seen = 0;
    (void)pthread_mutex_lock(&p->lock);
    while (!p->ended) {
        if (atomic_load(&p->number) == seen) {
            p->sleeping++;
            (void)pthread_cond_wait(&p->announced, &p->lock);
            p->sleeping--;
            continue;
        }
        seen = atomic_load(&p->number);
        if (p->open) {
            join_loop(p);
        }
        (void)pthread_mutex_unlock(&p->lock);
        await_loop(p, seen);
        (void)pthread_mutex_lock(&p->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

static bool pool_start_thread(laci_pool *p, pthread_t *thread)
{
    // Signals are for the threads of the program, except those of a fault in
    // this one, which end the process if they are blocked.
    static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE,
                                 SIGILL,  SIGTRAP, SIGSYS};
    sigset_t all, before;
    (void)sigfillset(&all);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        (void)sigdelset(&all, faults[i]);
    }
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(thread, NULL, pool_serve, p);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code == 0;
}

lac_status laci_pool_open(laci_pool **out, uint32_t threads)
{
    *out = NULL;
    if (threads < 1 || threads > LACI_POOL_THREADS_MAX) {
        return lac_fail(
            LAC_ERR_INVALID, "threads are %u, expected from 1 to %d", threads,
            LACI_POOL_THREADS_MAX);
    }
    if (threads == 1) {
        return LAC_OK;
    }
    laci_pool *const p =
        laci_zalloc(sizeof(*p) + (threads - 1) * sizeof(p->threads[0]));
    if (p == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for %u threads", threads);
    }
    p->process = getpid();
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->announced, NULL);
    (void)pthread_cond_init(&p->finished, NULL);
    for (; p->count < threads - 1; p->count++) {
        if (!pool_start_thread(p, &p->threads[p->count])) {
            laci_pool_close(p);
            return lac_fail(
                LAC_ERR_NOMEM, "the system does not start %u threads", threads);
        }
    }
    *out = p;
    return LAC_OK;
}

void laci_pool_close(laci_pool *p)
{
    if (p == NULL) {
        return;
    }
    if (p->process != getpid()) {
        laci_free(p);
        return;
    }
    (void)pthread_mutex_lock(&p->lock);
    p->ended = true;
    (void)pthread_cond_broadcast(&p->announced);
    (void)pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->count; i++) {
        (void)pthread_join(p->threads[i], NULL);
    }
    (void)pthread_cond_destroy(&p->finished);
    (void)pthread_cond_destroy(&p->announced);
    (void)pthread_mutex_destroy(&p->lock);
    laci_free(p);
}

size_t laci_pool_shares(const laci_pool *p, size_t n, size_t unit)
{
    // An early return. With `shared ? p->count + 1 : 1`, where `shared` is a
    // stored bool, gcc 14.2 reads p->count even if p is NULL.
    if (p == NULL || p->process != getpid()) {
        return 1;
    }
    const size_t threads = p->count + 1;
    const size_t units = n / unit + (n % unit != 0);
    const size_t worth = n / WORTH;
    const size_t most = units < worth ? units : worth;
    return most < 1 ? 1 : most < threads ? most : threads;
}

static size_t pieces_of(size_t n, size_t unit, size_t shares)
{
    const size_t units = n / unit + (n % unit != 0);
    const size_t worth = n / PIECE < units ? n / PIECE : units;
    const size_t most = worth < PIECES * shares ? worth : PIECES * shares;
    return most > shares ? most : shares;
}

static void announce(laci_pool *p, const loop *l)
{
    (void)pthread_mutex_lock(&p->lock);
    p->loop = *l;
    p->open = true;
    atomic_store(&p->next, 0);
    atomic_fetch_add(&p->number, 1);
    if (p->sleeping > 0) {
        (void)pthread_cond_broadcast(&p->announced);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

// Waits for the threads that have joined. All pieces are taken.
static void await_end(laci_pool *p)
{
    for (int i = 0; i < YIELDS && atomic_load(&p->joined) > 0; i++) {
        (void)sched_yield();
    }
    (void)pthread_mutex_lock(&p->lock);
    p->open = false;
    while (atomic_load(&p->joined) > 0) {
        (void)pthread_cond_wait(&p->finished, &p->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

void laci_pool_run(
    laci_pool *p, size_t n, size_t unit, laci_pool_body *body, void *context)
{
    const size_t shares = n == 0 ? 1 : laci_pool_shares(p, n, unit);
    if (shares == 1) {
        body(context, 0, n);
        return;
    }
    loop l = {
        .body = body,
        .context = context,
        .n = n,
        .unit = unit,
        .pieces = pieces_of(n, unit, shares),
    };
    (void)fegetenv(&l.mode);
    announce(p, &l);
    run_pieces(p, &l);
    await_end(p);
}
