// SPDX-License-Identifier: MIT
// What the patterns of a group send, from sizes alone. Each laci_list_* call
// lists the exchanges that the call of the group with the same name makes, and
// stands beside it: in exchange.c, sum.c and shares.c.
#ifndef LACONIC_COLLECTIVE_LISTING_H
#define LACONIC_COLLECTIVE_LISTING_H

#include <laconic/exchange.h>
#include <laconic/topology.h>

#include "collective/group.h"
#include "collective/rules.h"

// A list of exchanges that is being written.
typedef struct laci_listing {
    laci_sum_rules rules;
    uint32_t round;    // in the period
    uint32_t flags;    // of all exchanges that follow
    size_t times;      // that they are repeated; 0 counts as 1
    lac_exchange *out; // the first `cap` are stored
    size_t cap;
    size_t count; // of all of them
} laci_listing;

// laci_listing_add lists one exchange, with the round of the listing, the flags
// of both, and the product of their times.
void laci_listing_add(laci_listing *l, lac_exchange exchange);

// laci_listed_product returns a product of bytes, the largest number where it
// overflows.
static inline uint64_t laci_listed_product(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

// The bodies of messages, one for each worker.
typedef struct laci_bodies {
    size_t largest;
    size_t least;
    size_t total;
} laci_bodies;

// laci_bodies_equal returns those of `world` messages of the same size.
// laci_bodies_include adds one message to bodies whose `least` began as
// SIZE_MAX.
laci_bodies laci_bodies_equal(size_t body, uint32_t world);
void laci_bodies_include(laci_bodies *bodies, size_t body);

// laci_list_exchange lists an exchange between the neighbours of a round.
// `body` returns the size of the message from a worker to its neighbour.
typedef size_t laci_body(const void *context, uint32_t worker, uint32_t peer);
void laci_list_exchange(
    laci_listing *l, const lac_topology *topology, laci_body *body,
    const void *context);

// laci_list_gather lists a gather of one message of each worker,
// laci_list_scatter a scatter in which all workers send the same sizes: one
// message for each worker.
void laci_list_gather(laci_listing *l, const laci_bodies *bodies);
void laci_list_scatter(laci_listing *l, const laci_bodies *bodies);

// laci_list_sum lists a sum of n floats, notes included. laci_list_streams is
// laci_group_streams for floats; laci_list_sum_stream lists a sum of the n
// floats of a stream and of a note.
void laci_list_sum(laci_listing *l, size_t n);
bool laci_list_streams(const laci_listing *l, size_t n);
void laci_list_sum_stream(laci_listing *l, size_t n);

// laci_list_numbers lists laci_group_sum_numbers, and laci_group_max of n
// numbers, notes included.
void laci_list_numbers(laci_listing *l, const laci_number *type, size_t n);

// Parts of these lists: laci_list_shares lists the sum of a piece of n numbers
// of `size` bytes in shares, laci_list_ahead a sum in pieces that are sent
// ahead, with a note or without.
void laci_list_shares(laci_listing *l, size_t size, size_t n);
void laci_list_ahead(laci_listing *l, size_t size, size_t n, bool note);

#endif
