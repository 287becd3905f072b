// SPDX-License-Identifier: MIT
// The output of `laconic average` after worker 0 has finished a run.
#ifndef LACONIC_CLI_AVERAGE_REPORT_H
#define LACONIC_CLI_AVERAGE_REPORT_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include "cli/average/worker.h"

// cli_average_json returns the object of --json.
cJSON *cli_average_json(const cli_average *a);

// cli_average_table prints the table for people.
void cli_average_table(const cli_average *a, FILE *stream);

#endif
