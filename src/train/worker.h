// SPDX-License-Identifier: MIT
// A worker of a training run from the inside, for the files that make it work.
#ifndef LACONIC_TRAIN_WORKER_H
#define LACONIC_TRAIN_WORKER_H

#include "train/compute.h"
#include "train/feed.h"
#include "train/meeting.h"
#include "train/run.h"

// What a worker says at a meeting.
typedef struct train_report {
    uint64_t step; // that it has made
    double loss;   // sum since the epoch began
    uint64_t labels;
    nn_score own;      // of its own model on the test set
    nn_score averaged; // of the averaged model, on its share of the test set
    train_usage usage;
    uint32_t stop;   // it was asked to end
    uint32_t failed; // it could not write its checkpoint
} train_report;

// What worker 0 decides.
typedef struct train_verdict {
    uint64_t next;     // meet again after this step
    uint32_t stop;     // end, after a checkpoint
    uint32_t failed;   // 1 + the worker whose checkpoint failed
    uint32_t diverged; // the test has shown it
} train_verdict;

struct train_worker {
    train_run *run;
    lac_transport *transport;
    uint32_t rank, world;

    train_compute *compute;
    train_feed *feed;
    train_optimiser *optimiser;
    lac_algorithm *algorithm;
    train_meeting *meeting;

    size_t n;          // parameters
    size_t statistics; // numbers of batch norms
    size_t tensors;
    float *x;        // the model
    float *gradient; // then the step; at the end of an epoch the averaged model
    float *running;  // statistics
    float *mean_running;
    float *carry;
    float *test_carry;
    lac_slice *model_slices;    // of x
    lac_slice *gradient_slices; // of the gradient
    const float **updates;      // of the gradient too
    uint8_t *state;             // room for what the algorithm saves
    size_t state_len;

    uint64_t epoch_steps, total_steps;
    uint64_t step; // done so far
    double loss;   // sum since the epoch began
    uint64_t labels;
    double talked;        // seconds spent in the algorithm
    double waited_before; // seconds of waiting before the first step
    train_usage past;     // before the run was resumed
    train_verdict agreed; // the last verdict

    // Worker 0 only.
    double begun;         // when the first step of this part was made
    double last_time;     // of the last meeting
    double last_loss;     // at the last meeting
    uint64_t last_labels; // likewise
    uint64_t last_step;
};

// train_worker_open makes everything a worker needs, and brings it to its first
// step: the initial model, or what a checkpoint says.
lac_status train_worker_open(train_worker *w);
void train_worker_close(train_worker *w);

// train_worker_usage returns what the worker used so far.
train_usage train_worker_usage(const train_worker *w);

// train_worker_step makes one step.
lac_status train_worker_step(train_worker *w);

// train_worker_meet makes a meeting with this report, to which loss and usage
// are added. On worker 0 `*reports_out` has the reports of all, elsewhere NULL.
// train_worker_agree ends it: w->agreed becomes that of worker 0.
lac_status train_worker_meet(
    train_worker *w, train_report *report, const train_report **reports_out);
lac_status train_worker_agree(train_worker *w);

// train_worker_test measures all models and the averaged one, which is then in
// w->gradient, and on worker 0 fills `out`, all but the epoch's numbers.
lac_status train_worker_test(train_worker *w, train_metrics *out);

// train_worker_save makes a checkpoint of all workers; train_worker_load takes
// up the latest one, and tells if there was one.
lac_status train_worker_save(train_worker *w);
lac_status train_worker_load(train_worker *w, bool *found_out);

// train_worker_export writes the averaged model, which is in w->gradient.
lac_status train_worker_export(train_worker *w);

#endif
