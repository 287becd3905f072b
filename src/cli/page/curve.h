// SPDX-License-Identifier: MIT
// A curve of a chart: its path within the plot, a circle for each point, and a
// triangle at the end of the axis for each point beyond it.
#ifndef LACONIC_CLI_PAGE_CURVE_H
#define LACONIC_CLI_PAGE_CURVE_H

#include "cli/page/axes.h"

// How many curves have triangles at the upper and at the lower end so far.
typedef struct page_beyond {
    size_t above, below;
} page_beyond;

// page_curve_put prints a curve. Its triangles are beside those before it.
void page_curve_put(
    FILE *f, const page_chart *chart, const page_curve *curve,
    const page_axes *axes, page_beyond *beyond);

// page_curve_beyond adds the points beyond the upper and the lower end to the
// ranges of their values.
void page_curve_beyond(
    const page_curve *curve, const page_axes *axes, page_range *above,
    page_range *below);

#endif
