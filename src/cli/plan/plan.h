// SPDX-License-Identifier: MIT
// The step times of all candidates on a network, and the advice from them.
#ifndef LACONIC_CLI_PLAN_PLAN_H
#define LACONIC_CLI_PLAN_PLAN_H

#include "cli/plan/candidates.h"
#include "cli/plan/compression.h"
#include "cli/plan/losses.h"
#include "cli/plan/pattern.h"

// A candidate must make a step this many times faster to be worth a change.
#define PLAN_GAIN 1.05

// What is planned. All pointers are borrowed.
typedef struct plan_task {
    const lac_layout *layout;
    const lac_topology *topology; // of model algorithms; 0 is 1
    const char *transport;        // the name of a transport
    uint32_t workers;
    uint64_t seed;
    double compute;     // seconds of a step without communication
    bool overlap;       // of communication and computation
    bool gradients;     // only algorithms that average gradients
    double local_steps; // from one round to the next, of model algorithms
    plan_near near;     // of what was measured
} plan_task;

// One algorithm with its compressor. The first members do not depend on the
// network.
typedef struct plan_candidate {
    plan_choice choice;
    lac_family family;
    plan_pattern pattern;
    double every;    // steps from one round to the next
    double compress; // seconds, of a step
    double payload;  // bytes that a worker sends in a step
    // On the network of plan_rank:
    double step;    // seconds: computation, compression, visible exchanges
    double network; // seconds of all exchanges
    double hidden;  // seconds of them behind the computation
} plan_candidate;

// A choice that the library refuses for this model and topology.
typedef struct plan_refusal {
    plan_choice choice;
    char why[192];
} plan_refusal;

// The streaming choices: exact, and with 4 bits of a value.
enum { PLAN_STREAMING = 2 };

// Do not move it: choices point into it.
typedef struct plan {
    plan_task task;
    char streaming[PLAN_STREAMING][PLAN_STREAMING_SIZE];
    plan_candidate candidates[PLAN_CHOICES_MAX]; // by plan_rank: fastest first
    size_t count;
    plan_refusal refusals[PLAN_CHOICES_MAX];
    size_t refusal_count;
} plan;

// plan_candidate_open fills in the members of a choice that do not depend on
// the network. Its pattern must be closed.
// Fails like lac_algorithm_cost, with an empty pattern.
lac_status plan_candidate_open(
    const plan_task *task, plan_speed *speed, plan_candidate *c);

// plan_open fills `p`, which may be large, with all candidates for a task.
// Fails with LAC_ERR_NOMEM, or with LAC_ERR_INVALID if not even allreduce is
// possible. Close it in either case.
lac_status plan_open(plan *p, const plan_task *task, plan_speed *speed);

// plan_close releases the candidates.
void plan_close(plan *p);

// plan_step returns the seconds of a step on a network.
double plan_step(const plan *p, const plan_candidate *c, const plan_network *n);

// plan_baseline returns the candidate that all others are compared with:
// allreduce.
const plan_candidate *plan_baseline(const plan *p);

// plan_winner returns the fastest candidate on a network if it gains 5 %, else
// the baseline.
const plan_candidate *plan_winner(const plan *p, const plan_network *n);

// plan_candidate_loss returns what was measured of a candidate on the nearest
// network, or NULL. Nothing was with local steps, which lose accuracy too.
const plan_loss *plan_candidate_loss(const plan *p, const plan_candidate *c);

// plan_advised returns the candidate to use, after plan_rank: of those whose
// step is at most 5 % longer than the fastest, within the error of a plan, the
// one that has lost least: on the network that is nearest to the model, then of
// those measured on others of its kind, then on any; those that were not
// measured come last. It is the baseline if the fastest does not gain 5 %.
const plan_candidate *plan_advised(const plan *p);

// plan_rank computes the times on a network and sorts the candidates.
void plan_rank(plan *p, const plan_network *n);

// plan_break_even returns the bandwidth, in bytes a second, above which no
// candidate gains 5 %, with the latency of `n`: INFINITY if one gains on
// arbitrarily fast links, 0 if none ever gains.
double plan_break_even(const plan *p, const plan_network *n);

// plan_effective_bandwidth writes the bandwidth at which a step with allreduce
// takes `seconds`, with the latency of `n`.
// Fails with LAC_ERR_INVALID if no bandwidth explains the time.
lac_status plan_effective_bandwidth(
    const plan *p, const plan_network *n, double seconds, double *out);

#endif
