// SPDX-License-Identifier: MIT
// A training run: what it does, what it tells meanwhile, and what came out.
//
// Workers hold a model each. In every step a worker computes the gradient of
// its own batch. A *gradient* algorithm then gives all workers the same mean
// gradient, and each takes the same step. With a *model* algorithm each takes
// its own step, and the models are mixed: the gossip reads the model before the
// step, so that it can run beside the gradient's computation, and the step
// follows on the gossiped model (dcd and ecd take it along inside).
#ifndef LACONIC_TRAIN_RUN_H
#define LACONIC_TRAIN_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

#include "data/dataset.h"
#include "data/split.h"
#include "train/metrics.h"
#include "train/optimiser.h"
#include "train/schedule.h"

// What is to be done. Texts and pointers must outlive the run.
typedef struct train_plan {
    const char *model;
    const data_set *set;
    data_split_rule split;
    uint32_t batch; // examples a worker and step; of a text, rows
    uint32_t steps; // of a text, words of a row in a step
    bool augment;
    train_optimiser_options optimiser; // all but the layout
    train_schedule schedule;
    double clip; // largest norm of a gradient; 0 for no limit
    uint64_t epochs;
    bool overlap;
    lac_algorithm_options algorithm; // all but layout and transport
    uint64_t seed;
    const char *folder;        // for metrics and checkpoints
    uint64_t checkpoint_every; // steps; 0: at the end of every epoch only
    bool resume;
} train_plan;

// Bytes that a worker needs, by what they are for.
typedef struct train_memory {
    size_t parameters;
    size_t gradient;
    size_t optimiser;
    size_t activations;
    size_t algorithm;
} train_memory;

// What is known once the workers are ready.
typedef struct train_facts {
    size_t parameters;
    uint64_t epoch_steps;
    uint64_t first_step; // where a resumed run goes on
    lac_family family;
    double gamma;        // NaN where there is none
    const char *warning; // or NULL
    train_memory memory;
} train_facts;

// How far it is.
typedef struct train_progress {
    uint64_t step, total; // steps
    uint64_t epoch, epochs;
    double loss;            // of the steps since the last time, all workers
    double labels_a_second; // of all workers
    uint64_t payload_bytes;
    bool testing; // the models are being tested
} train_progress;

// What worker 0 calls, in its own thread. Any may be NULL.
typedef struct train_hooks {
    void *context;
    // Once, after all workers were opened and before the folder is changed: it
    // keeps other runs out of there. A failure ends the run.
    lac_status (*hold)(void *context);
    // Once, after that and before the first step. A failure ends the run.
    lac_status (*ready)(void *context, const train_facts *facts);
    void (*tell)(void *context, const train_progress *progress);
    void (*epoch)(void *context, const train_metrics *metrics);
    const atomic_int *stop; // not 0: end soon, with a checkpoint
} train_hooks;

// What came out, for worker 0's process.
typedef struct train_result {
    bool here;        // worker 0 is in this process
    bool interrupted; // before the last step
    bool tested;      // `metrics` are those of the last epoch
    train_metrics metrics;
    train_facts facts;
    double uncompressed_bytes; // that the run would have sent
    double seconds;            // of this part of the run
} train_result;

typedef struct train_worker train_worker;

// A run of all workers of a process.
typedef struct train_run {
    train_plan plan;
    train_hooks hooks;
    uint32_t world;
    train_worker **workers; // `world` times NULL
    train_result result;
} train_run;

// The work of one worker, and what releases it after it has left the
// transport. Errors are those of the parts; a run that diverges fails with
// LAC_ERR_INVALID and a sentence that says so.
lac_status train_work(train_run *run, lac_transport *transport);
void train_release(train_run *run, uint32_t rank);

#endif
