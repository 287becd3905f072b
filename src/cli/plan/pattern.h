// SPDX-License-Identifier: MIT
// The exchanges of a step of an algorithm, and their time on a network.
#ifndef LACONIC_CLI_PLAN_PATTERN_H
#define LACONIC_CLI_PLAN_PATTERN_H

#include "cli/plan/network.h"

// The exchanges of one call of the algorithm over a period of rounds.
typedef struct plan_call {
    double ready; // the part of the computation after which it can begin
    uint32_t period;
    lac_exchange *exchanges;
    size_t count;
} plan_call;

// The calls of a step: one with all tensors, or one a bucket; or those of a
// round: one a fragment, each at its own time.
typedef struct plan_pattern {
    uint32_t workers;
    bool overlap;
    bool apart;     // the calls are those of fragments
    uint32_t delay; // steps that then hide a call
    plan_call *calls;
    size_t count;
} plan_pattern;

// plan_pattern_open lists the exchanges of an algorithm of `family`. With
// `overlap` a model algorithm exchanges beside the computation where it can; a
// gradient algorithm is called for each bucket of tensors as soon as their
// gradients are ready. An algorithm with fragments, or with a delay, is called
// for each fragment, and with `overlap` the steps of the delay hide the call.
// `options->workers` must be set.
// Fails like lac_algorithm_exchanges; the pattern is then empty.
lac_status plan_pattern_open(
    plan_pattern *out, const lac_algorithm_options *options, lac_family family,
    bool overlap);

// plan_pattern_close releases what the pattern has allocated.
void plan_pattern_close(plan_pattern *p);

// The seconds of a step's exchanges, mean over a period.
typedef struct plan_wait {
    double network; // of all exchanges
    double exposed; // that remain when the overlap with computation is removed
} plan_wait;

// plan_pattern_wait returns the seconds on the network `n` in a step that
// computes for `compute` seconds.
plan_wait plan_pattern_wait(
    const plan_pattern *p, const plan_network *n, double compute);

#endif
