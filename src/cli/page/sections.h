// SPDX-License-Identifier: MIT
// The sections of a report. Each prints its heading and content, or nothing if
// the inputs have nothing for it.
#ifndef LACONIC_CLI_PAGE_SECTIONS_H
#define LACONIC_CLI_PAGE_SECTIONS_H

#include <stdio.h>

#include "cli/page/inputs.h"

// A section about a group of runs, or about traces and plans.
// Fails with LAC_ERR_NOMEM.
typedef lac_status page_runs_section(FILE *f, const compare_runs *c);
typedef lac_status page_section(FILE *f, const page_inputs *in);

page_runs_section page_results;   // the best of the runs, and a table of them
page_runs_section page_training;  // curves of accuracy, perplexity and loss
page_runs_section page_consensus; // the distance of the workers' models
page_runs_section page_time;      // how the time of a run splits
page_runs_section page_graphs;    // the networks of gossip and their spectra
page_runs_section page_settings;  // those that differ, and those that do not
page_section page_traces;         // curves of traces
page_section page_plans; // candidates of plans, and runs on their networks

// page_heading prints the heading of a section that can be linked to, and
// page_runs_heading that of a section about a group of runs.
void page_heading(FILE *f, const char *id, const char *text);
void page_runs_heading(
    FILE *f, const compare_runs *c, const char *id, const char *text);

// A table: page_table, any number of page_column, page_table_body, rows of
// page_cell between <tr> and </tr>, page_table_end. Numbers are aligned to the
// right.
void page_table(FILE *f);
void page_column(FILE *f, bool number, const char *text);
void page_table_body(FILE *f);
void page_cell(FILE *f, bool number, const char *text);
void page_table_end(FILE *f);

#endif
