// SPDX-License-Identifier: MIT
// How a group makes its sums, from their size and the transport. The sums
// themselves and the list of their exchanges follow the same rules.
#ifndef LACONIC_COLLECTIVE_RULES_H
#define LACONIC_COLLECTIVE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collective/group.h"

enum {
    // Sums up to this size use recursive doubling, which has the fewest steps.
    LACI_SUM_SMALL = 16 * 1024,

    // Larger ones are cut in pieces that stay in the cache, and each piece in
    // shares of the workers, unless a share would be too small for a message.
    LACI_SUM_PIECE = 1024 * 1024,
    LACI_SUM_SHARE = 2 * 1024,
};

typedef struct laci_sum_rules {
    uint32_t world;
    size_t piece; // bytes of a sum or broadcast at once
    bool ahead;   // pieces are sent before the last ones arrive
    bool native;  // the transport's own all-reduce sums many floats
} laci_sum_rules;

// laci_sum_rules_make returns the rules of a group with these options. Without
// a transport it assumes `like`.
laci_sum_rules laci_sum_rules_make(
    const laci_group_options *options, uint32_t world);

// laci_sum_core returns the number of workers that take part in recursive
// doubling: the largest power of two that is not above the world.
static inline uint32_t laci_sum_core(uint32_t world)
{
    uint32_t core = 1;
    while (core <= world / 2) {
        core *= 2;
    }
    return core;
}

// laci_has_shares returns whether shares of a piece of `size` bytes are large
// enough for messages.
static inline bool laci_has_shares(const laci_sum_rules *r, size_t size)
{
    return size > LACI_SUM_SMALL && size / r->world >= LACI_SUM_SHARE;
}

// laci_ahead_from returns the bytes of a sum above which it is sent ahead, in
// pieces of at most r->piece bytes. Thus one large piece is too: its time is
// measured, and the next sum may have several small ones.
static inline size_t laci_ahead_from(const laci_sum_rules *r)
{
    return r->piece < LACI_SUM_PIECE ? r->piece : LACI_SUM_PIECE;
}

// laci_goes_ahead returns whether pieces of a sum of n numbers of `size` bytes
// are sent ahead.
static inline bool laci_goes_ahead(
    const laci_sum_rules *r, size_t size, size_t n)
{
    return r->ahead && n > laci_ahead_from(r) / size &&
           laci_has_shares(r, r->piece);
}

// laci_is_native returns whether the transport's own all-reduce sums n floats.
static inline bool laci_is_native(const laci_sum_rules *r, size_t n)
{
    return r->native && n * sizeof(float) > LACI_SUM_SMALL;
}

// laci_share_start returns where the share of worker k begins in n numbers,
// laci_share_count how many it has.
static inline size_t laci_share_start(
    const laci_sum_rules *r, uint32_t k, size_t n)
{
    return (size_t)((uint64_t)n * k / r->world);
}

static inline size_t laci_share_count(
    const laci_sum_rules *r, uint32_t k, size_t n)
{
    return laci_share_start(r, k + 1, n) - laci_share_start(r, k, n);
}

#endif
