// SPDX-License-Identifier: MIT
// The output of `laconic plan`.
#ifndef LACONIC_CLI_PLAN_REPORT_H
#define LACONIC_CLI_PLAN_REPORT_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include "cli/plan/map.h"
#include "cli/plan/plan.h"

// A ranked plan and what it assumes. All pointers are borrowed.
typedef struct plan_report {
    const plan *plan;
    plan_network network;
    const char *model;  // a spec, or NULL
    const char *layout; // a file, or NULL
    const char *topology;
    const char *network_source;     // where the network comes from, or NULL
    const char *compression_source; // where compression times come from
    double break_even;              // bytes a second, by plan_break_even
    const plan_map *map;            // NULL: not asked for
} plan_report;

// plan_network_json returns a network; `source`, where it comes from, may be
// NULL.
cJSON *plan_network_json(const plan_network *n, const char *source);

// plan_report_json returns the object of --json.
cJSON *plan_report_json(const plan_report *r);

// plan_report_print prints the report for people, at most 80 columns wide.
void plan_report_print(const plan_report *r, FILE *stream);

#endif
