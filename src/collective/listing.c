// SPDX-License-Identifier: MIT
#include "collective/listing.h"

void laci_listing_add(laci_listing *l, lac_exchange exchange)
{
    exchange.round = l->round;
    exchange.flags |= l->flags;
    const size_t inner = exchange.times == 0 ? 1 : exchange.times;
    const size_t times = inner * (l->times == 0 ? 1 : l->times);
    exchange.times = times < UINT32_MAX ? (uint32_t)times : UINT32_MAX;
    if (l->count < l->cap) {
        l->out[l->count] = exchange;
    }
    l->count++;
}

laci_bodies laci_bodies_equal(size_t body, uint32_t world)
{
    return (laci_bodies){body, body, body * world};
}

void laci_bodies_include(laci_bodies *bodies, size_t body)
{
    bodies->largest = body > bodies->largest ? body : bodies->largest;
    bodies->least = body < bodies->least ? body : bodies->least;
    bodies->total += body;
}
