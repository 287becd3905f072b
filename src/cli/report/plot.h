// SPDX-License-Identifier: MIT
// Plots as text: marks between two axes, within 80 columns.
#ifndef LACONIC_CLI_REPORT_PLOT_H
#define LACONIC_CLI_REPORT_PLOT_H

#include <stdio.h>

enum { CLI_PLOT_COLUMNS = 68, CLI_PLOT_ROWS = 14 };

typedef struct cli_plot {
    char cells[CLI_PLOT_ROWS][CLI_PLOT_COLUMNS]; // the top row first
} cli_plot;

// The labels at the ends of the axes. Those of the vertical one fit 9 columns,
// those of the horizontal one 68 together.
typedef struct cli_plot_labels {
    const char *high, *low;
    const char *left, *right;
} cli_plot_labels;

// cli_plot_make returns a plot without marks.
cli_plot cli_plot_make(void);

// cli_plot_put puts a mark at x from the left and y from the bottom, both parts
// of the axes from 0 to 1; elsewhere it puts none. It replaces a mark in the
// same place.
void cli_plot_put(cli_plot *plot, double x, double y, char mark);

// cli_plot_print prints the plot without trailing spaces.
void cli_plot_print(
    const cli_plot *plot, const cli_plot_labels *labels, FILE *stream);

#endif
