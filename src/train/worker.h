// SPDX-License-Identifier: MIT
// The state of a worker, shared by the files of the training loop.
#ifndef LACONIC_TRAIN_WORKER_H
#define LACONIC_TRAIN_WORKER_H

#include "train/checkpoint.h"
#include "train/compute.h"
#include "train/feed.h"
#include "train/learned.h"
#include "train/mark.h"
#include "train/run.h"
#include "train/stream.h"
#include "train/sync.h"

// What a worker finds in a test. Without own statistics equal models share the
// score of the averaged one; `own` is then empty.
typedef struct train_scores {
    nn_score own;      // of its own model on all examples of the test
    nn_score averaged; // of the averaged model on its share of them
} train_scores;

// What a worker sends to worker 0 when they synchronise.
typedef struct train_report {
    uint64_t step; // steps done
    double loss;   // sum since the epoch began or the last test
    uint64_t labels;
    train_scores test;  // on the sample
    train_scores final; // on the whole test set
    nn_score training;  // of the averaged model on a share of the training set
    train_trace trace;
    train_usage usage;
    uint32_t stop;   // the signal that asked it to end, or 0
    uint32_t failed; // it could not write its checkpoint
} train_report;

// What worker 0 broadcasts.
typedef struct train_decision {
    uint64_t next;     // the step after which to synchronise again
    uint32_t stop;     // write a checkpoint and end; the signal
    uint32_t failed;   // 1 + the worker whose checkpoint failed
    uint32_t diverged; // a model has no finite loss on the test set
    double loss;       // in the search for a rate: sum over all workers
    uint64_t labels;   // likewise
} train_decision;

// What a worker sends to worker 0 before the first step.
typedef struct train_claim {
    uint64_t process;
    uint64_t processor_set;
    uint64_t processors;
    uint64_t run_id;                // of the run in its folder; 0: none
    uint64_t latest;                // step of the latest set there
    uint64_t steps[TRAIN_SETS_MAX]; // that it has files of, the newest first
    uint32_t step_count;
    uint32_t has_latest;
} train_claim;

// What worker 0 broadcasts then.
typedef struct train_origin {
    uint64_t start;        // random, of this start of the run
    uint64_t settings_len; // bytes of its settings
    uint64_t run_id;
    uint64_t step;       // to continue from
    uint64_t newest;     // step that some workers have files of
    uint32_t lacking;    // a worker that has no file of it, or UINT32_MAX
    uint32_t resumed;    // there is a checkpoint to continue from
    uint32_t apart;      // the workers are different processes
    uint32_t untested;   // the test after the step that was loaded is missing
    double rate;         // the learning rate; NaN: to be found
    train_search search; // if it was found now
} train_origin;

struct train_worker {
    train_run *run;
    lac_transport *transport;
    uint32_t rank, world;

    train_compute *compute;
    train_feed *feed;
    train_optimiser *optimiser;
    lac_algorithm *algorithm;
    train_stream *stream; // NULL without fragments and delay
    train_sync *sync;

    train_sync *start_sync; // before the first step
    train_origin origin;
    char *settings; // of worker 0
    train_mark mark;
    bool owner; // of the folder; see train_hooks

    size_t n;          // parameters
    size_t statistics; // values of batch norms
    size_t tensors;
    float *x;        // the model
    float *gradient; // then the step; at the end of an epoch the averaged model
    float *running;  // statistics of batch norms
    float *mean_running;
    float *carry;
    float *test_carry;
    lac_slice *model_slices;    // of x
    lac_slice *gradient_slices; // of the gradient
    const float **updates;      // of the gradient too
    uint8_t *state;             // room for the saved state of the algorithm
    size_t state_len;

    train_schedule schedule; // that of the plan, with the rate in use
    uint64_t epoch_steps, total_steps;
    uint64_t test_every; // steps; 0: only after the last one
    uint64_t step;       // steps done
    bool untested;       // a stop ended the test that is due after this step
    double loss;         // sum since the epoch began or the last test
    uint64_t labels;
    train_trace trace;        // of all steps
    uint64_t first_steps;     // of the trace
    double started;           // time of the first step, or of the resume
    double elapsed_before;    // seconds up to the checkpoint that was resumed
    double test_seconds;      // since the start or the resume
    double search_seconds;    // before the first step
    double algorithm_seconds; // spent in the algorithm, waiting included
    double waited_before;     // seconds of waiting before the first step
    train_usage usage_before; // up to the checkpoint that was resumed
    train_usage searched;     // while a rate was searched; does not count
    train_decision decision;  // the last one

    // Worker 0 only.
    double last_time;     // of the last synchronisation
    double last_loss;     // at the last synchronisation
    uint64_t last_labels; // likewise
    uint64_t last_step;   // likewise
};

// train_worker_open allocates and opens all parts of a worker. Workers in
// different processes first compare their settings and their data.
// Fails like the parts it opens, or with LAC_ERR_INVALID if settings differ.
lac_status train_worker_open(train_worker *w);
void train_worker_close(train_worker *w);

// train_worker_compare compares the settings and the data of this worker with
// those of worker 0 if the workers are different processes.
// Fails with LAC_ERR_INVALID; the message names the worker and the setting.
lac_status train_worker_compare(train_worker *w);

// train_worker_start locks the folder of the run and loads the model of the
// first step: the initial one, or that of the newest checkpoint that all
// workers have. If a stop ends the search for a rate, only the settings of the
// run are recorded, and w->origin.rate is NaN.
// Fails with LAC_ERR_INVALID if only some workers have one, or like the parts
// that it uses.
lac_status train_worker_start(train_worker *w);

// train_worker_claim sends a claim to worker 0, which gets all of them; the
// others get NULL. train_worker_origin then sets w->origin to that of worker 0.
lac_status train_worker_claim(
    train_worker *w, const train_claim *claim, const train_claim **claims_out);
lac_status train_worker_origin(train_worker *w);

// train_worker_find_rate tries a few rates from the initial model, and sets
// that of w->schedule and w->origin. The worker is then again at the first
// step. When a worker is asked to end, all end the search and set
// w->decision.stop; the rate remains NaN. Fails like train_worker_step.
lac_status train_worker_find_rate(train_worker *w);

// train_worker_facts writes what is known before the first step.
void train_worker_facts(const train_worker *w, train_facts *out);

// train_worker_usage returns the traffic and the seconds of the worker so far.
train_usage train_worker_usage(const train_worker *w);

// train_worker_elapsed returns the seconds of the run so far, those before a
// resume included.
double train_worker_elapsed(const train_worker *w);

// train_worker_step makes one step, or with --overlap those that an exchange
// can hide behind, but none after `until` steps are done.
// train_worker_last_round, after the last one of a run with local steps, ends
// the rounds that were begun and mixes once more the tensors that have steps
// which are not averaged.
lac_status train_worker_step(train_worker *w, uint64_t until);
lac_status train_worker_last_round(train_worker *w);

// train_copies_fragments returns whether fragments are copied, so that steps
// can be made while they are exchanged.
bool train_copies_fragments(const train_plan *p);

// train_worker_gather sends this report to worker 0 after adding the step, loss
// and usage of the worker. On worker 0 it points `*reports_out` at all reports,
// elsewhere it writes NULL. train_worker_broadcast then sets w->decision to
// that of worker 0.
lac_status train_worker_gather(
    train_worker *w, train_report *report, const train_report **reports_out);
lac_status train_worker_broadcast(train_worker *w);

// train_worker_check synchronises the workers. It sets w->decision.stop if one
// of them was asked to end, and loss and labels of w->decision to the sums over
// all workers.
lac_status train_worker_check(train_worker *w);

// train_worker_testing reports the progress of a test on worker 0, and
// train_worker_searching that of the search for a rate.
void train_worker_testing(train_worker *w, uint64_t done, uint64_t total);
void train_worker_searching(
    train_worker *w, double rate, uint64_t done, uint64_t total);

// train_worker_test evaluates all models and the averaged one, which it leaves
// in w->gradient. On worker 0 it fills `out` except for epoch and step. When a
// worker is asked to end, all end the test and set w->decision.stop and
// w->untested; `out` then has no meaning.
lac_status train_worker_test(train_worker *w, train_metrics *out);

// train_worker_differences adds a line to differences.jsonl (differences.c).
// train_differences_cut removes its lines after `step`.
lac_status train_worker_differences(train_worker *w);
lac_status train_differences_cut(const char *folder, uint64_t step);

// train_worker_save writes a checkpoint of all workers. train_worker_load loads
// that of step w->origin.step.
lac_status train_worker_save(train_worker *w);
lac_status train_worker_load(train_worker *w);

// train_worker_export writes the averaged model, which is in w->gradient.
lac_status train_worker_export(train_worker *w);

#endif
