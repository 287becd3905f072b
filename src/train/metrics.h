// SPDX-License-Identifier: MIT
// The metrics of a run: one JSON object for each test in DIR/metrics.jsonl.
#ifndef LACONIC_TRAIN_METRICS_H
#define LACONIC_TRAIN_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include <laconic/laconic.h>

// Traffic and time since the first step.
typedef struct train_usage {
    lac_traffic traffic;
    double compute_seconds;
    double compress_seconds;
    double wait_seconds;
    double test_seconds;
    double search_seconds; // for a rate, before the first step
} train_usage;

// What a run is, in every line of its metrics. All NULL: not written.
typedef struct train_identity {
    const char *model, *data, *algorithm;
    const char *compressor, *topology; // or NULL
    uint32_t workers;
    uint64_t seed;
} train_identity;

// What a test shows of the workers' own models and of the averaged model. All
// zero: there was no such test.
typedef struct train_quality {
    double loss;              // mean of the workers' own models
    double accuracy;          // likewise
    double worst_accuracy;    // of the worst of them
    uint64_t examples;        // that each of them was evaluated on
    double averaged_loss;     // of the averaged model
    double averaged_accuracy; // likewise
} train_quality;

// The metrics of one test. A missing number is NaN.
typedef struct train_metrics {
    train_identity identity;
    double epoch; // epochs done
    uint64_t step;
    double rate;            // of the last step
    bool text;              // the model has a perplexity
    double train_loss;      // mean over all workers, since the epoch or the
                            // last test, whichever is later
    double first_loss;      // likewise, of the first steps (learned.h)
    double loss_luck;       // by which it may fall without learning
    train_quality test;     // on a sample of the test set, which is the same
                            // in all tests of a run
    train_quality final;    // after the last step: on the whole test set
    bool has_objective;     // the next number was computed
    double train_objective; // of the averaged model: mean loss on the whole
                            // training set, plus the penalty of weight decay
    double consensus;
    train_usage usage; // traffic of all workers, mean seconds of a worker
} train_metrics;

// train_metrics_quality returns that on the whole test set if it is known, else
// that on the sample.
const train_quality *train_metrics_quality(const train_metrics *m);

// train_metrics_json returns the object, or NULL if there is no memory.
cJSON *train_metrics_json(const train_metrics *m);

// train_metrics_append adds a line to folder/metrics.jsonl and flushes it. The
// line also has the rate, as lr; at the end of a run that is the one given.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status train_metrics_append(const char *folder, const train_metrics *m);

// train_metrics_cut removes every line after `step`, and a last line that was
// not written to its end. A missing file is not an error.
// Fails with LAC_ERR_CORRUPT if any other line is damaged (the message has its
// number), LAC_ERR_INVALID or LAC_ERR_NOMEM, leaving the file as it was.
lac_status train_metrics_cut(const char *folder, uint64_t step);

#endif
