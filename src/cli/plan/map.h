// SPDX-License-Identifier: MIT
// The map of bandwidths and latencies: which candidate is the fastest where.
#ifndef LACONIC_CLI_PLAN_MAP_H
#define LACONIC_CLI_PLAN_MAP_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include "cli/plan/plan.h"

enum {
    PLAN_MAP_COLUMNS = 61, // bandwidths, from 1 Mbit/s to 100 Gbit/s
    PLAN_MAP_ROWS = 17,    // latencies, from 10 us to 100 ms
};

// Every cell holds the index of a candidate, `winners` of which differ. The
// first is always the baseline, which wins where nothing gains 5 %.
typedef struct plan_map {
    const plan *plan;
    plan_network network; // the user's
    size_t winners[PLAN_CHOICES_MAX];
    size_t cells_won[PLAN_CHOICES_MAX];
    size_t winner_count;
    unsigned char cells[PLAN_MAP_ROWS][PLAN_MAP_COLUMNS]; // of `winners`
    bool twice[PLAN_MAP_ROWS][PLAN_MAP_COLUMNS]; // at least twice as fast as
                                                 // the baseline
} plan_map;

// plan_map_make computes the map around a network of the same kind. The plan
// must not be ranked again while the map is in use.
void plan_map_make(plan_map *m, const plan *p, const plan_network *n);

// plan_map_bandwidth and plan_map_latency return the values of a column and of
// a row; row 0 has the smallest latency.
double plan_map_bandwidth(size_t column);
double plan_map_latency(size_t row);

// plan_map_column and plan_map_row return where on the map a value is, as a
// fraction of columns or rows; outside the map, below 0 or above the last.
double plan_map_column(double bandwidth);
double plan_map_row(double latency);

// plan_map_mark returns the mark of a winner: a letter, a capital where a step
// is at least twice as fast; `.` for the baseline.
char plan_map_mark(size_t winner, bool twice);

// plan_map_print prints the map as text, a character a cell, with a legend;
// with `colours`, cells have a background.
void plan_map_print(const plan_map *m, bool colours, FILE *stream);

// plan_map_json returns the object "map" of --json.
cJSON *plan_map_json(const plan_map *m);

// plan_map_svg writes the map as a picture to `path`.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM, leaving nothing behind.
lac_status plan_map_svg(const plan_map *m, const char *title, const char *path);

#endif
