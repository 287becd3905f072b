// SPDX-License-Identifier: MIT
// A few threads that share loops over indices with the thread that owns them.
// They sleep between loops. How a loop is divided depends on its length and on
// the number of threads alone; which thread runs which part is left to chance.
// Bodies must give the same result for any division.
#ifndef LACONIC_BASE_POOL_H
#define LACONIC_BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/status.h>

typedef struct laci_pool laci_pool;

enum { LACI_POOL_THREADS_MAX = 256 };

// laci_pool_open starts threads - 1 threads, from 1 to LACI_POOL_THREADS_MAX.
// `*out` is NULL for one thread, and after a failure.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
__attribute__((warn_unused_result)) lac_status laci_pool_open(
    laci_pool **out, uint32_t threads);

// laci_pool_close ends the threads. NULL is allowed.
void laci_pool_close(laci_pool *p);

// A body of a loop: the indices [first, first + n). It must not fail, and must
// not run another loop of the same pool.
typedef void laci_pool_body(void *context, size_t first, size_t n);

// laci_pool_run calls `body` for all indices below n, at least once for each
// share; a call begins at a multiple of `unit`. Loops that are too short to
// share, and those without a pool, are one call in this thread.
void laci_pool_run(
    laci_pool *p, size_t n, size_t unit, laci_pool_body *body, void *context);

// laci_pool_shares returns how many threads may take part in that.
size_t laci_pool_shares(const laci_pool *p, size_t n, size_t unit);

#endif
