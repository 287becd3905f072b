// SPDX-License-Identifier: MIT
// Loops over the values of items, divided among the threads of a worker.
#include "algorithm/framework/round.h"

// A loop, its body, and the items it is for.
typedef struct split {
    laci_loop loop;
    laci_loop_body *body;
    size_t from;
    size_t to;
    size_t part;
} split;

void laci_loop_fail(laci_loop *loop, size_t i)
{
    size_t first = atomic_load(&loop->failed);
    while (i < first &&
           !atomic_compare_exchange_weak(&loop->failed, &first, i)) {
    }
}

// Where a share ends in an item of n values, if it ends after `at` of them.
static size_t whole_parts(const split *s, size_t at, size_t n)
{
    return at >= n ? n : at / s->part * s->part;
}

// Runs a share: the values [first, first + n) of all items, in their order. An
// item belongs to two shares if it has a part in each.
static void run_split(void *context, size_t first, size_t n)
{
    split *const s = context;
    size_t start = 0; // of the item
    for (size_t i = s->from; i < s->to && start < first + n; i++) {
        const size_t all = s->loop.round->items[i].n;
        size_t at = first > start ? whole_parts(s, first - start, all) : 0;
        const size_t end = whole_parts(s, first + n - start, all);
        while (at < end) {
            const size_t some = laci_part_values(all, at, s->part);
            s->body(&s->loop, i, at, some);
            at += some;
        }
        start += all;
    }
}

size_t laci_split(
    void *context, const laci_round *round, size_t from, size_t to, size_t part,
    laci_loop_body *body)
{
    split s = {
        .loop = {.context = context, .round = round, .failed = to},
        .body = body,
        .from = from,
        .to = to,
        .part = part,
    };
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        n += round->items[i].n;
    }
    // Payloads without parts are decoded in the scratch of their compressor,
    // which threads cannot share.
    if (part == SIZE_MAX) {
        run_split(&s, 0, n);
    } else {
        laci_pool_run(round->worker->pool, n, 1, run_split, &s);
    }
    return atomic_load(&s.loop.failed);
}
