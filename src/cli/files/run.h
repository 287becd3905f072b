// SPDX-License-Identifier: MIT
// The folder of a run of `laconic train`: its manifest and its metrics. Both
// may have members that this version does not know.
#ifndef LACONIC_CLI_FILES_RUN_H
#define LACONIC_CLI_FILES_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include <laconic/laconic.h>

#include "data/dataset.h"

// The numbers of a test, usually after an epoch. Bytes are of all workers and
// seconds of a mean worker, both since the first step.
typedef enum cli_metric {
    CLI_METRIC_TRAIN_LOSS,
    CLI_METRIC_TEST_LOSS,
    CLI_METRIC_TEST_ACCURACY, // a fraction
    CLI_METRIC_WORST_ACCURACY,
    CLI_METRIC_AVERAGED_ACCURACY,
    CLI_METRIC_TEST_PERPLEXITY,
    CLI_METRIC_AVERAGED_PERPLEXITY,
    CLI_METRIC_TEST_EXAMPLES,
    CLI_METRIC_FINAL_LOSS, // and the next ones: on the whole test set, after
                           // the last step
    CLI_METRIC_FINAL_ACCURACY,
    CLI_METRIC_FINAL_WORST_ACCURACY,
    CLI_METRIC_FINAL_AVERAGED_ACCURACY,
    CLI_METRIC_FINAL_PERPLEXITY,
    CLI_METRIC_FINAL_AVERAGED_PERPLEXITY,
    CLI_METRIC_FINAL_EXAMPLES,
    CLI_METRIC_PAYLOAD_BYTES,
    CLI_METRIC_CONSENSUS,
    CLI_METRIC_COMPUTE_SECONDS,
    CLI_METRIC_COMPRESS_SECONDS,
    CLI_METRIC_WAIT_SECONDS,
    CLI_METRIC_TEST_SECONDS,
    CLI_METRIC_SECONDS, // the sum of those four, unless it was recorded
    CLI_METRICS,
} cli_metric;

// cli_metric_key returns the name of a metric in the files.
const char *cli_metric_key(cli_metric metric);

// A missing number is NaN.
typedef struct cli_run_epoch {
    double epoch; // epochs done
    uint64_t step;
    double values[CLI_METRICS];
} cli_run_epoch;

typedef struct cli_run {
    char folder[DATA_PATH_SIZE];
    cJSON *manifest; // owns the texts below
    const cJSON *settings;
    const char *model, *data, *algorithm, *topology;
    const char *compressor; // NULL: none
    uint32_t workers;
    uint64_t seed;
    uint64_t planned; // epochs that the run was to have
    double parameters;
    bool overlap;
    bool text;     // the epochs have a perplexity
    bool gradient; // the algorithm averages gradients, over all workers
    cli_run_epoch *epochs;
    size_t count;
} cli_run;

// cli_run_open reads the folder of a run. A run that has just begun has no
// epoch. A last line of metrics that was not written to its end is ignored.
// Fails with LAC_ERR_INVALID, LAC_ERR_CORRUPT or LAC_ERR_NOMEM; the message
// names the file. Close it in either case.
lac_status cli_run_open(cli_run *run, const char *folder);
void cli_run_close(cli_run *run);

// cli_run_last returns a metric of the last epoch, NaN if there is none.
double cli_run_last(const cli_run *run, cli_metric metric);

// cli_run_end returns it as well, but what a test shows of the models on the
// whole test set. A run that has stopped, or is of an older version, has been
// tested on a sample only: cli_run_is_sampled. That is then returned.
double cli_run_end(const cli_run *run, cli_metric metric);
bool cli_run_is_sampled(const cli_run *run);

// cli_run_done returns the epochs that a run has done, and cli_run_steps the
// steps.
double cli_run_done(const cli_run *run);
uint64_t cli_run_steps(const cli_run *run);

// cli_run_file writes the path of a file of the folder, which must exist.
// Fails with LAC_ERR_INVALID.
lac_status cli_run_file(
    const char *folder, const char *name, char path[DATA_PATH_SIZE]);

#endif
