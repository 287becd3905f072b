// SPDX-License-Identifier: MIT
// A chart of curves, as SVG. It needs no script: every point has a title, which
// browsers show under the pointer. A few curves with values far from those of
// the others do not stretch the vertical axis: their points beyond it are
// triangles at its end, and a note below the chart names them.
#ifndef LACONIC_CLI_PAGE_CHART_H
#define LACONIC_CLI_PAGE_CHART_H

#include <stdio.h>

#include <laconic/laconic.h>

#include "cli/page/scale.h"

// A value and its standard deviation, NaN if there is none. A value that is not
// finite interrupts the curve.
typedef struct page_point {
    double x, y, spread;
} page_point;

// A curve. One with many points is thinned evenly, between its first and its
// last. `style` selects the colour and the switch. One of several seeds is
// `faint` and has no titles; their mean has them.
typedef struct page_curve {
    const char *name;
    size_t style;
    bool faint;
    const page_point *points;
    size_t count;
} page_curve;

typedef struct page_axis {
    const char *label;  // beside the axis
    const char *before; // a value of x in a title: "epoch "
    page_kind kind;
    page_form form;
} page_axis;

typedef struct page_chart {
    const char *title;
    page_axis x, y;
    const page_curve *curves;
    size_t count;
} page_chart;

// page_chart_put prints the chart, or nothing if there is no point in it.
// Fails with LAC_ERR_NOMEM.
lac_status page_chart_put(FILE *f, const page_chart *chart);

#endif
