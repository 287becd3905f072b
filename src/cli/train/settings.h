// SPDX-License-Identifier: MIT
// The settings of `laconic train`, and the plan of the run that they define.
#ifndef LACONIC_CLI_TRAIN_SETTINGS_H
#define LACONIC_CLI_TRAIN_SETTINGS_H

#include <cjson/cJSON.h>

#include "cli/launch/launch.h"
#include "cli/options/option.h"
#include "train/run.h"

// The words of options whose default depends on the run. Only --lr has `auto`.
enum { CLI_TRAIN_DEFAULT, CLI_TRAIN_AUTO };

typedef struct cli_train_settings {
    const char *model;
    const char *data;
    const char *data_dir;
    const char *algorithm;
    const char *compressor;
    const char *topology;
    uint64_t epochs;
    uint64_t batch;
    uint64_t bptt;
    uint32_t optimizer;
    lac_number_or_word lr;
    lac_number_or_word momentum;
    uint32_t momentum_kind;
    uint32_t nesterov;
    double weight_decay;
    double clip;
    const char *local_steps;
    const char *schedule;
    lac_number_or_word warmup;
    const char *milestones;
    const char *split;
    bool augment;
    uint64_t limit;
    const char *test_every;
    const char *test_limit;
    bool train_objective;
    bool differences;
    uint64_t checkpoint_every;
    bool overlap;
    const char *hostile;
    const char *step_time;
    const char *out;
    bool resume;
    const char *config;
    bool dry_run;
    bool quiet;
    const char *seeds;
    uint64_t seed;
    cli_launch_options launch;
    bool json;
    double usual_rate; // no option: that of the table
    uint64_t given;    // bit i: option i was given
} cli_train_settings;

// The options that fill the settings.
extern const cli_option cli_train_options[];

// cli_train_shared writes the settings that all workers must have in common to
// `*out`, and their number to `*count_out`. The caller frees the array; the
// strings are those of `all`, an object of cli_manifest_settings.
// Fails with LAC_ERR_NOMEM.
lac_status cli_train_shared(
    const cJSON *all, train_setting **out, size_t *count_out);

// cli_train_plan writes the plan of a run on `set`, with settings whose
// defaults were applied (cli/train/defaults.h), by workers that `topology`
// connects, of a model with the layout `layout`.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOTFOUND if a word is unknown or
// settings contradict each other.
lac_status cli_train_plan(
    const cli_train_settings *s, const data_set *set,
    const lac_topology *topology, const lac_layout *layout, train_plan *out);

#endif
