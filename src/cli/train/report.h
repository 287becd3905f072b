// SPDX-License-Identifier: MIT
// The output of `laconic train` at the end of a run.
#ifndef LACONIC_CLI_TRAIN_REPORT_H
#define LACONIC_CLI_TRAIN_REPORT_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include "train/run.h"

// cli_train_memory returns the bytes that a worker needs.
double cli_train_memory(const train_facts *facts);

// cli_train_facts returns an object of the facts known before the first step.
cJSON *cli_train_facts(const train_facts *facts);

// cli_train_print_search prints the rates that were tried and the one that was
// chosen.
void cli_train_print_search(const train_facts *facts, FILE *stream);

// cli_train_judge prints a line if a complete run has learned nothing.
void cli_train_judge(const train_run *run, FILE *stream);

// cli_train_json and cli_train_table report a run that is complete.
cJSON *cli_train_json(const train_run *run);
void cli_train_table(const train_run *run, const char *topology, FILE *stream);

#endif
