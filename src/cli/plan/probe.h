// SPDX-License-Identifier: MIT
// Measures the network between the workers of a job, over any transport.
//
//     plan_probe_open(&probe, &options);
//     plan_probe_run(probe, &result);      // the same on all workers
//     lac_transport_leave(transport);
//     plan_probe_close(probe);
#ifndef LACONIC_CLI_PLAN_PROBE_H
#define LACONIC_CLI_PLAN_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

#include "cli/plan/network.h"

typedef struct plan_probe plan_probe;

typedef struct plan_probe_options {
    lac_transport *transport;
    const lac_topology *topology;  // whose neighbours of round 0 exchange
    double budget;                 // seconds, about
    double timeout;                // seconds that a worker may be silent
    const plan_network_kind *kind; // NULL: the probe finds it
} plan_probe_options;

typedef struct plan_probe_result {
    plan_network network; // on which an exchange takes as long as measured
    double pair_rate;     // bytes a second between two workers alone
    double load_rate;     // of the busiest worker while all exchange
    double spread;        // time of the slowest pair over that of the median
    uint32_t slowest[2];  // that pair
    unsigned messages;
    double seconds;
} plan_probe_result;

// plan_probe_open allocates the messages of this worker, which transports
// borrow: close it after the transport was left.
// Fails with LAC_ERR_INVALID if there is one worker only, or LAC_ERR_NOMEM;
// `*out` is then NULL.
lac_status plan_probe_open(plan_probe **out, const plan_probe_options *options);

// plan_probe_close releases `p`. NULL is allowed.
void plan_probe_close(plan_probe *p);

// plan_probe_run measures. All workers call it, once.
// Fails with LAC_ERR_PEER if a worker is lost, or LAC_ERR_NOMEM.
lac_status plan_probe_run(plan_probe *p, plan_probe_result *out);

// plan_probe_describe writes one line on how sure the result is.
void plan_probe_describe(const plan_probe_result *r, char *out, size_t size);

#endif
