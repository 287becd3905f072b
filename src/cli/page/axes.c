// SPDX-License-Identifier: MIT
// Ranges of charts. Which curves flatten the others depends on the axis: on a
// logarithmic one the logarithms of the values count.
#include "cli/page/axes.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "cli/report/robust.h"

static void add_curve(const page_curve *c, page_range *x, page_range *y)
{
    for (size_t i = 0; i < c->count; i++) {
        if (page_usable(c->points[i].x) && page_usable(c->points[i].y)) {
            page_range_add(x, c->points[i].x);
            page_range_add(y, c->points[i].y);
        }
    }
}

// Lists the least and the greatest value of each curve that has one, or their
// logarithms, and returns how many there are. Curves of zeros do not count, as
// the distance of models that are always equal: they are no scale for others.
static size_t list_ends(
    const page_chart *chart, bool logarithms, double *lows, double *highs)
{
    size_t count = 0;
    for (size_t i = 0; i < chart->count; i++) {
        page_range x = PAGE_RANGE_EMPTY, y = PAGE_RANGE_EMPTY;
        add_curve(&chart->curves[i], &x, &y);
        const double low = logarithms ? y.positive : y.low;
        if (low <= y.high && (low != 0 || y.high != 0)) {
            lows[count] = logarithms ? log10(low) : low;
            highs[count++] = logarithms ? log10(y.high) : y.high;
        }
    }
    return count;
}

// The range of a logarithmic axis. An end that stays is not rounded.
static page_range narrow_logarithmic(
    const page_chart *chart, const page_range *all, double *ends)
{
    double *const highs = ends + chart->count;
    const size_t count = list_ends(chart, true, ends, highs);
    const cli_interval most = cli_robust_range(ends, highs, count);
    const double low =
        most.low > log10(all->positive) ? pow(10, most.low) : all->positive;
    const double high =
        most.high < log10(all->high) ? pow(10, most.high) : all->high;
    return (page_range){low, high, low};
}

static page_range narrow_linear(
    const page_chart *chart, const page_range *all, double *ends)
{
    double *const highs = ends + chart->count;
    const size_t count = list_ends(chart, false, ends, highs);
    if (count == 0) {
        return *all;
    }
    const cli_interval most = cli_robust_range(ends, highs, count);
    return (page_range){
        most.low, most.high, most.low > 0 ? most.low : all->positive};
}

// Narrows the range of y, which is not empty: there is a curve. Without the
// curves that made it logarithmic, an axis may be linear.
static lac_status narrow(const page_chart *chart, page_range *y)
{
    assert(chart->count > 0);
    double *const ends = calloc(2 * chart->count, sizeof(*ends));
    if (ends == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "no memory for the range of %zu curves",
            chart->count);
    }
    page_range range = *y;
    if (page_is_logarithmic(chart->y.form, y)) {
        range = narrow_logarithmic(chart, y, ends);
    }
    if (!page_is_logarithmic(chart->y.form, &range)) {
        range = narrow_linear(chart, y, ends);
    }
    free(ends);
    *y = range;
    return LAC_OK;
}

lac_status page_axes_make(
    const page_chart *chart, page_axes *out, bool *empty_out)
{
    page_range x = PAGE_RANGE_EMPTY, y = PAGE_RANGE_EMPTY;
    for (size_t i = 0; i < chart->count; i++) {
        add_curve(&chart->curves[i], &x, &y);
    }
    *empty_out = !page_scale_make(chart->x.kind, chart->x.form, &x, &out->x);
    if (*empty_out) {
        return LAC_OK;
    }
    LAC_TRY(narrow(chart, &y));
    (void)page_scale_make(chart->y.kind, chart->y.form, &y, &out->y);
    return LAC_OK;
}

double page_axes_x(const page_axes *a, double x)
{
    return PAGE_PLOT_LEFT +
           (PAGE_PLOT_RIGHT - PAGE_PLOT_LEFT) * page_scale_place(&a->x, x);
}

double page_axes_y(const page_axes *a, double y)
{
    return PAGE_PLOT_BOTTOM -
           (PAGE_PLOT_BOTTOM - PAGE_PLOT_TOP) * page_scale_place(&a->y, y);
}
