// SPDX-License-Identifier: MIT
// A loop is announced under a mutex, with a number that is one higher than that
// of the last. A thread that sees a new number runs its share; the last one
// wakes the owner, which has run a share of its own. A fork of the process has
// no threads but its own: there, loops are not shared.
#define _POSIX_C_SOURCE 200809L // pthread_sigmask
#include "base/pool.h"

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"

// Indices that are worth a thread: to wake one takes as long as a pass over
// some ten thousand values.
enum { WORTH = 1 << 16 };

typedef struct loop {
    laci_pool_body *body;
    void *context;
    size_t n;
    size_t unit;
    size_t shares;
    fenv_t mode; // of floating-point operations, that of the owner
} loop;

typedef struct member {
    laci_pool *pool;
    size_t share;
    pthread_t thread;
} member;

struct laci_pool {
    pid_t process; // whose threads these are
    pthread_mutex_t lock;
    pthread_cond_t announced;
    pthread_cond_t finished;
    uint64_t number; // of the current loop
    size_t running;  // threads that have not finished it
    bool ended;
    loop loop;
    size_t count; // of members
    member members[];
};

// Where a share begins, in whole units.
static size_t share_start(const loop *l, size_t share)
{
    const size_t units = l->n / l->unit + (l->n % l->unit != 0);
    const size_t start =
        (units / l->shares * share +
         (share < units % l->shares ? share : units % l->shares)) *
        l->unit;
    return start < l->n ? start : l->n;
}

static void run_share(const loop *l, size_t share)
{
    const size_t first = share_start(l, share);
    const size_t stop = share_start(l, share + 1);
    if (stop > first) {
        l->body(l->context, first, stop - first);
    }
}

static void *pool_serve(void *argument)
{
    const member *const m = argument;
    laci_pool *const p = m->pool;
    uint64_t seen = 0;
    (void)pthread_mutex_lock(&p->lock);
    while (!p->ended) {
        if (p->number == seen) {
            (void)pthread_cond_wait(&p->announced, &p->lock);
            continue;
        }
        seen = p->number;
        const loop l = p->loop;
        (void)pthread_mutex_unlock(&p->lock);
        if (m->share < l.shares) {
            (void)fesetenv(&l.mode);
            run_share(&l, m->share);
        }
        (void)pthread_mutex_lock(&p->lock);
        p->running--;
        if (p->running == 0) {
            (void)pthread_cond_signal(&p->finished);
        }
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

static bool start_member(member *m)
{
    sigset_t all, before;
    (void)sigfillset(&all); // signals are for the threads of the program
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(&m->thread, NULL, pool_serve, m);
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
        laci_zalloc(sizeof(*p) + (threads - 1) * sizeof(p->members[0]));
    if (p == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for %u threads", threads);
    }
    p->process = getpid();
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->announced, NULL);
    (void)pthread_cond_init(&p->finished, NULL);
    for (; p->count < threads - 1; p->count++) {
        member *const m = &p->members[p->count];
        *m = (member){.pool = p, .share = p->count + 1};
        if (!start_member(m)) {
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
        (void)pthread_join(p->members[i].thread, NULL);
    }
    (void)pthread_cond_destroy(&p->finished);
    (void)pthread_cond_destroy(&p->announced);
    (void)pthread_mutex_destroy(&p->lock);
    laci_free(p);
}

size_t laci_pool_shares(const laci_pool *p, size_t n, size_t unit)
{
    const bool shared = p != NULL && p->process == getpid();
    const size_t threads = shared ? p->count + 1 : 1;
    const size_t units = n / unit + (n % unit != 0);
    const size_t worth = n / WORTH;
    const size_t most = units < worth ? units : worth;
    return most < 1 ? 1 : most < threads ? most : threads;
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
        .shares = shares,
    };
    (void)fegetenv(&l.mode);
    (void)pthread_mutex_lock(&p->lock);
    p->loop = l;
    p->number++;
    p->running = p->count;
    (void)pthread_cond_broadcast(&p->announced);
    (void)pthread_mutex_unlock(&p->lock);
    run_share(&l, 0);
    (void)pthread_mutex_lock(&p->lock);
    while (p->running > 0) {
        (void)pthread_cond_wait(&p->finished, &p->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
}
