// SPDX-License-Identifier: MIT
// The networks of a worker. They run in the worker's thread or in one of their
// own, so that the worker can communicate meanwhile.
//
//     train_compute_start(c, &job);
//     lac_algorithm_begin(...);         // overlaps with the job if it has a
//     train_compute_finish(c, &score);  // thread; else the job runs here
#ifndef LACONIC_TRAIN_COMPUTE_H
#define LACONIC_TRAIN_COMPUTE_H

#include <stdbool.h>
#include <stddef.h>

#include <laconic/laconic.h>

#include "nn/network.h"

typedef struct train_compute_options {
    nn_options learning;
    nn_options testing;
    bool own_thread;
    double step_time; // seconds that each gradient takes in addition
} train_compute_options;

// One call of a network. Its pointers must stay valid until it is finished.
typedef struct train_job {
    nn_state state;
    nn_batch batch;
    lac_key noise;
    float *gradient; // NULL: evaluate
} train_job;

typedef struct train_compute train_compute;

// train_compute_open plans the networks.
// Fails like nn_network_open, or with LAC_ERR_NOMEM if the thread cannot be
// created; `*out` is then NULL.
lac_status train_compute_open(
    train_compute **out, const train_compute_options *options);
void train_compute_close(train_compute *c);

// train_compute_learner returns the network that computes gradients, whose
// layouts describe the vectors.
const nn_network *train_compute_learner(const train_compute *c);

// train_compute_memory returns the bytes of both networks' activations.
size_t train_compute_memory(const train_compute *c);

// train_compute_start starts a job; the previous one must be finished.
void train_compute_start(train_compute *c, const train_job *job);

// train_compute_finish waits for the job and writes its score to `*out`.
// Fails like nn_network_gradient and nn_network_evaluate.
lac_status train_compute_finish(train_compute *c, nn_score *out);

// train_compute_start_task starts a function in the thread of the networks,
// which must have one of their own. Jobs that the function starts and finishes
// run in it; until train_compute_finish_task nobody else may start one. That
// waits for the function and forwards its status and message.
typedef lac_status train_task(void *context);
void train_compute_start_task(
    train_compute *c, train_task *task, void *context);
lac_status train_compute_finish_task(train_compute *c);

// train_compute_seconds returns the seconds spent on gradients so far.
double train_compute_seconds(const train_compute *c);

#endif
