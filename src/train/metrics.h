// SPDX-License-Identifier: MIT
// How a run went: an object an epoch in DIR/metrics.jsonl.
#ifndef LACONIC_TRAIN_METRICS_H
#define LACONIC_TRAIN_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include <laconic/laconic.h>

// What was used so far.
typedef struct train_usage {
    lac_traffic traffic;
    double compute_seconds;
    double compress_seconds;
    double wait_seconds;
} train_usage;

// One epoch. Numbers that there are none of are NaN.
typedef struct train_metrics {
    uint64_t epoch; // from 1
    uint64_t step;
    bool text;                // perplexities mean something
    double train_loss;        // mean over the epoch and all workers
    double test_loss;         // mean of the workers' own models
    double test_accuracy;     // likewise
    double averaged_loss;     // of the averaged model
    double averaged_accuracy; // likewise
    double consensus;
    train_usage usage; // traffic of all workers, seconds of a mean worker
} train_metrics;

// train_metrics_json makes the object; NULL if there is no memory.
cJSON *train_metrics_json(const train_metrics *m);

// train_metrics_append adds a line to folder/metrics.jsonl and flushes it.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status train_metrics_append(const char *folder, const train_metrics *m);

// train_metrics_cut takes away every line after `step`, and one that was only
// half written. A file that is not there is fine.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM, leaving the file as it was.
lac_status train_metrics_cut(const char *folder, uint64_t step);

#endif
