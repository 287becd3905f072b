// SPDX-License-Identifier: MIT
// The axes of a chart, and where its points are on the picture.
#ifndef LACONIC_CLI_PAGE_AXES_H
#define LACONIC_CLI_PAGE_AXES_H

#include "cli/page/chart.h"

// Units of the picture: its size, and the sides of the plot in it.
enum {
    PAGE_CHART_WIDTH = 440,
    PAGE_CHART_HEIGHT = 290,
    PAGE_PLOT_LEFT = 62,
    PAGE_PLOT_RIGHT = PAGE_CHART_WIDTH - 16,
    PAGE_PLOT_TOP = 12,
    PAGE_PLOT_BOTTOM = PAGE_CHART_HEIGHT - 44,
};

typedef struct page_axes {
    page_scale x, y;
} page_axes;

// page_axes_make makes the axes of a chart. Horizontally they hold all points,
// vertically those of cli_robust_range. `empty_out` is set if there is none.
// Fails with LAC_ERR_NOMEM.
lac_status page_axes_make(
    const page_chart *chart, page_axes *out, bool *empty_out);

// page_axes_x and page_axes_y return the place of a value on the picture, NaN
// if it has none. That of y may be beyond the plot.
double page_axes_x(const page_axes *axes, double x);
double page_axes_y(const page_axes *axes, double y);

#endif
