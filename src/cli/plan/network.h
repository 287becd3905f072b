// SPDX-License-Identifier: MIT
// The time of an exchange on a network with fluid links.
#ifndef LACONIC_CLI_PLAN_NETWORK_H
#define LACONIC_CLI_PLAN_NETWORK_H

#include <laconic/laconic.h>

// What the messages of an exchange share.
typedef enum plan_network_kind {
    PLAN_STAR,   // a switch: each worker has one port
    PLAN_PAIRS,  // a link of its own for each pair of workers
    PLAN_SHARED, // one medium for all workers
} plan_network_kind;

typedef struct plan_network {
    plan_network_kind kind;
    double bandwidth; // bytes a second of a port, in each direction
    double latency;   // seconds, one way
} plan_network;

// plan_network_name returns "star", "pairs" or "shared".
const char *plan_network_name(plan_network_kind kind);

// Where a sequence of exchanges stands, in seconds since it began.
typedef struct plan_clock {
    double done; // the last exchange has returned
    double sent; // its messages have left the port
} plan_clock;

// plan_clock_start returns the clock before the first exchange.
plan_clock plan_clock_start(void);

// plan_clock_advance adds an exchange of `workers` workers, as often as it is
// repeated.
void plan_clock_advance(
    plan_clock *clock, const plan_network *n, const lac_exchange *e,
    uint32_t workers);

#endif
