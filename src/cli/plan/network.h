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

// plan_exchange_seconds returns the time of one exchange of `workers` workers.
double plan_exchange_seconds(
    const plan_network *n, const lac_exchange *e, uint32_t workers);

#endif
