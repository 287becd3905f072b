// SPDX-License-Identifier: MIT
// The networks of a worker, run in its own thread or in one beside it, so that
// the worker can talk to others meanwhile.
//
//     train_compute_start(c, &job);
//     lac_algorithm_begin(...);            // beside the job, or before it
//     train_compute_finish(c, &score);
#ifndef LACONIC_TRAIN_COMPUTE_H
#define LACONIC_TRAIN_COMPUTE_H

#include <stdbool.h>
#include <stddef.h>

#include <laconic/laconic.h>

#include "nn/network.h"

typedef struct train_compute_options {
    nn_options learning;
    nn_options testing;
    bool aside; // in a thread of its own
} train_compute_options;

// One call of a network. What it points to must stay until it is finished.
typedef struct train_job {
    nn_state state;
    nn_batch batch;
    lac_key noise;
    float *gradient; // NULL: evaluate
} train_job;

typedef struct train_compute train_compute;

// train_compute_open plans the networks. Fails like nn_network_open, or with
// LAC_ERR_NOMEM if there is no room for a thread; `*out` is then NULL.
lac_status train_compute_open(
    train_compute **out, const train_compute_options *options);
void train_compute_close(train_compute *c);

// train_compute_learner returns the network that gives gradients, to ask it
// about its vectors.
const nn_network *train_compute_learner(const train_compute *c);

// train_compute_memory returns the bytes of activations of both networks.
size_t train_compute_memory(const train_compute *c);

// train_compute_start begins a job; the one before it must be finished.
void train_compute_start(train_compute *c, const train_job *job);

// train_compute_finish waits for it. Fails like the networks.
lac_status train_compute_finish(train_compute *c, nn_score *out);

// train_compute_seconds returns the time that gradients took so far.
double train_compute_seconds(const train_compute *c);

#endif
