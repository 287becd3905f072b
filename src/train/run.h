// SPDX-License-Identifier: MIT
// A training run: its settings, the callbacks it makes, and its result.
//
// Every worker has its own model. In every step it computes the gradient of its
// own batch. A *gradient* algorithm then gives all workers the same mean
// gradient, and all take the same step. With a *model* algorithm each worker
// takes its own step and the models are averaged with those of neighbours. The
// gossip reads the model before the step, so that it can overlap with the
// gradient computation, and the step is added to the gossiped model (dcd, ecd
// and outer get the step as well and add it themselves). With local steps the
// workers mix their models in some steps only, and once more after the last. An
// algorithm may also mix fragments of the model in turn, and use the results
// some steps later (stream.h).
//
// A run may have one hostile worker, to find out what an algorithm tolerates.
// It computes no gradients; before every round it replaces its model by huge
// finite values. All metrics but the traffic and the seconds are those of the
// other workers, and the averaged model is the mean of theirs.
#ifndef LACONIC_TRAIN_RUN_H
#define LACONIC_TRAIN_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

#include "data/dataset.h"
#include "data/split.h"
#include "train/local_steps.h"
#include "train/metrics.h"
#include "train/optimiser.h"
#include "train/schedule.h"

// An option of the command that all workers must pass with the same value.
typedef struct train_setting {
    const char *name; // without dashes
    const char *value;
} train_setting;

// When the models are tested, and on how many examples.
typedef struct train_tests {
    uint64_t every; // steps, or epochs; 0: only after the last step
    bool epochs;    // `every` counts epochs
    size_t sample;  // examples of a test; 0: all
    size_t final;   // the whole test set is tested after the last step unless
                    // it has more examples; 0: always
    bool objective; // compute the training objective of the averaged model
    bool spectra;   // record singular values (train/differences.c)
} train_tests;

// The settings of a run. Strings and pointers must outlive the run.
typedef struct train_plan {
    const char *model;
    const data_set *set;
    data_split_rule split;
    uint32_t batch; // examples per worker and step; of a text, rows
    uint32_t steps; // of a text, words per row and step
    bool augment;
    train_optimiser_options optimiser; // without the layout
    train_schedule schedule;           // with a rate of NaN, one is searched
    double usual_rate;                 // from which to search
    bool searches_rate; // the rate is searched, or was before a resume
    double clip;        // largest norm of a gradient; 0: no limit
    uint64_t epochs;
    train_local_steps local_steps; // of model algorithms
    train_tests tests;
    bool overlap;
    double step_time; // seconds of computation that are added to each step
    uint32_t hostile; // 1 + the worker that sends huge values; 0: none
    lac_algorithm_options algorithm; // without layout and transport
    const char *topology;            // as the user names it
    uint64_t seed;
    const char *folder;        // of metrics and checkpoints
    uint64_t checkpoint_every; // steps; 0: only at the end of an epoch
    bool resume;
    uint64_t run_id; // of the run in the folder; 0: none, or unknown
    const train_setting *settings; // compared between processes
    size_t setting_count;
} train_plan;

// Bytes that a worker needs, by purpose.
typedef struct train_memory {
    size_t parameters;
    size_t gradient;
    size_t optimiser;
    size_t activations;
    size_t algorithm;
} train_memory;

// A rate that was tried, and the mean loss at the end; infinite if it diverges.
typedef struct train_trial {
    double rate;
    double loss;
} train_trial;

enum { TRAIN_TRIALS_MAX = 6 };

// The rates that were tried, in their order.
typedef struct train_search {
    uint64_t count;
    train_trial trials[TRAIN_TRIALS_MAX];
} train_search;

// Known when all workers are ready.
typedef struct train_facts {
    size_t parameters;
    uint64_t epoch_steps;
    uint64_t first_step; // steps done before a resume; else 0
    uint64_t run_id;     // the same in all folders of a run, and not 0
    // The newest checkpoint of a resumed run, and a worker that has no file of
    // it: `first_step` is then smaller. Without one, UINT32_MAX.
    uint64_t newest_step;
    uint32_t lacking;
    lac_family family;
    double gamma;        // NaN if the algorithm has none
    double rate;         // given or found; NaN if a stop ended the search
    bool rate_found;     // by a search, now or before a resume
    train_search search; // that of now
    const char *warning; // or NULL
    train_memory memory;
} train_facts;

// The progress of a run.
typedef struct train_progress {
    uint64_t step, total; // in steps
    uint64_t epoch, epochs;
    double loss;              // mean since the last call, over all workers
    double labels_per_second; // of all workers
    uint64_t payload_bytes;
    uint64_t tests_done, tests; // batches of the test that goes on; else 0
    // Steps of the search for a rate that goes on, at most `trials`; else 0.
    uint64_t trials_done, trials;
    double trial_rate;
} train_progress;

// Callbacks, made in a worker's own thread. Any may be NULL. Workers that share
// a folder have one *owner*, the lowest of their ranks; so worker 0 owns its
// folder.
typedef struct train_hooks {
    void *context;
    // Called once by the owner of a folder, after all workers were opened and
    // before the folder is read, to lock it against other runs. A failure ends
    // the run.
    lac_status (*lock)(void *context);
    // Called once by the owner of a folder, before the first step, to record
    // the run there. A failure ends the run.
    lac_status (*record)(void *context, const train_facts *facts);
    // Called by worker 0 only. `ready` follows its `record`; a failure ends the
    // run.
    lac_status (*ready)(void *context, const train_facts *facts);
    void (*progress)(void *context, const train_progress *progress);
    void (*tested)(void *context, const train_metrics *metrics);
    // Called by the other workers if they are processes, after each test: the
    // epochs done, and the mean loss of this worker's batches since the epoch
    // began or the last test, NaN if there are none.
    void (*passed)(void *context, double epoch, double loss);
    const atomic_int *stop; // nonzero: write a checkpoint and end
} train_hooks;

// The result. Except for the first five, valid in the process of worker 0.
typedef struct train_result {
    bool here;        // worker 0 runs in this process
    bool owner;       // a worker of this process owns its folder
    bool interrupted; // ended before the last step
    uint32_t stop;    // then the number in the `stop` of a worker
    bool searching;   // then the search for a rate was not complete, and there
                      // is no checkpoint
    bool tested;      // `metrics` are those of the last step
    train_metrics metrics;
    train_facts facts;
    bool crowded; // some workers share processors: all seconds include those
                  // in which others had the processor
    double uncompressed_bytes; // the traffic without compression
    double seconds;            // of the whole run, before a resume too
    double seconds_before;     // of these, before the resume
} train_result;

typedef struct train_worker train_worker;

// A run, shared by all workers of a process.
typedef struct train_run {
    train_plan plan;
    train_hooks hooks;
    uint32_t world;
    uint64_t process;       // random, different in all processes
    uint64_t processor_set; // equal in processes that use the same processors
    uint64_t processors;    // in that set; 0: unknown
    train_worker **workers; // `world` entries, NULL at first
    train_result result;
} train_run;

// train_plan_facts writes what is known of a run without its workers:
// parameters, steps of an epoch, family and memory. It computes a few gradients
// and writes the seconds of the fastest to `*gradient_out`.
// Fails like the parts of a worker that it opens.
lac_status train_plan_facts(
    const train_run *run, train_facts *out, double *gradient_out);

// train_work runs one worker. train_release frees it after the transport was
// left.
// Fails like the parts it uses. A run that diverges fails with LAC_ERR_INVALID.
lac_status train_work(train_run *run, lac_transport *transport);
void train_release(train_run *run, uint32_t rank);

#endif
