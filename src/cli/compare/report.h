// SPDX-License-Identifier: MIT
// The output of `laconic compare`, as a table and as JSON.
#ifndef LACONIC_CLI_COMPARE_REPORT_H
#define LACONIC_CLI_COMPARE_REPORT_H

#include <stdio.h>

#include "cli/compare/runs.h"

// compare_report_json returns the object.
cJSON *compare_report_json(const compare_set *s);

// compare_report_print prints tables of at most 80 columns.
void compare_report_print(const compare_set *s, FILE *stream);

// compare_report_folder prints the table of the runs in a folder. If these are
// one row, whose bytes can be compared with no other, they are compared with
// `uncompressed`, those of a run without compression.
// Fails like compare_set_add.
lac_status compare_report_folder(
    const char *folder, double uncompressed, FILE *stream);

#endif
