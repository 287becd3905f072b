// SPDX-License-Identifier: MIT
// Curves. A curve that leaves the plot is drawn to its end, and goes on where
// it returns.
#include "cli/page/curve.h"

#include <math.h>

#include "cli/report/markup.h"

enum {
    SHOWN_MAX = 60,   // points of a curve that are drawn as such
    POINTS_MAX = 300, // of a curve; more are thinned
    MARK_HEIGHT = 7,
    MARK_HALF = 4,
    MARK_LINE = 9,  // from the triangles of a curve to those of the next
    MARK_LINES = 4, // then they begin again
};

static const double TOLERANCE = 0.01; // units of the picture

// NOWHERE: not finite, or not yet above 0 on a logarithmic axis.
typedef enum side {
    NOWHERE,
    INSIDE,
    ABOVE,
    BELOW,
} side;

typedef struct pixel {
    double x, y;
} pixel;

// A curve on its axes.
typedef struct drawn {
    const page_curve *curve;
    const page_axes *axes;
    size_t count; // of its points that are left
    size_t first; // of them, that has a place on the axes
} drawn;

// Point number `i` of those that are left.
static const page_point *thinned(const drawn *d, size_t i)
{
    const page_curve *const c = d->curve;
    return &c->points[d->count < 2 ? 0 : i * (c->count - 1) / (d->count - 1)];
}

static pixel pixel_of(const drawn *d, size_t i)
{
    const page_point *const p = thinned(d, i);
    return (pixel){page_axes_x(d->axes, p->x), page_axes_y(d->axes, p->y)};
}

static drawn draw(const page_curve *c, const page_axes *a)
{
    drawn d = {c, a, c->count < POINTS_MAX ? c->count : POINTS_MAX, 0};
    while (d.first < d.count && isnan(pixel_of(&d, d.first).y)) {
        d.first++;
    }
    return d;
}

static bool is_inside(double y)
{
    return y >= PAGE_PLOT_TOP - TOLERANCE && y <= PAGE_PLOT_BOTTOM + TOLERANCE;
}

static side side_of(const drawn *d, size_t i)
{
    const pixel at = pixel_of(d, i);
    if (i < d->first || isnan(at.x) || !page_usable(thinned(d, i)->y)) {
        return NOWHERE;
    }
    // A curve that falls to 0 leaves a logarithmic axis: NaN.
    return is_inside(at.y) ? INSIDE : at.y < PAGE_PLOT_TOP ? ABOVE : BELOW;
}

// Where the line from one point to another leaves the plot, or the other point
// if it does not.
static pixel line_end(pixel from, pixel to)
{
    if (is_inside(to.y)) {
        return to;
    }
    const double edge = to.y < PAGE_PLOT_TOP ? PAGE_PLOT_TOP : PAGE_PLOT_BOTTOM;
    const double part = (edge - from.y) / (to.y - from.y);
    return (pixel){from.x + part * (to.x - from.x), edge};
}

static void put_place(FILE *f, char step, pixel at)
{
    (void)fprintf(f, "%c%.1f %.1f", step, at.x, at.y);
}

static void put_path(FILE *f, const drawn *d)
{
    pixel last = {0};
    side before = NOWHERE;
    (void)fprintf(f, "<path%s d=\"", d->curve->faint ? " class=\"faint\"" : "");
    for (size_t i = 0; i < d->count; i++) {
        const pixel at = pixel_of(d, i);
        const side now = isnan(at.y) ? NOWHERE : side_of(d, i);
        if (now == INSIDE && before == NOWHERE) {
            put_place(f, 'M', at);
        } else if (
            now != NOWHERE && before != NOWHERE &&
            (now == INSIDE || now != before)) {
            if (before != INSIDE) {
                put_place(f, 'M', line_end(at, last));
            }
            put_place(f, 'L', line_end(last, at));
        }
        last = at;
        before = now;
    }
    (void)fputs("\"/>", f);
}

// Three lines: the name of the curve, x and y.
static void put_title(
    FILE *f, const page_chart *chart, const page_curve *c, const page_point *p)
{
    char text[PAGE_VALUE_SIZE];
    (void)fputs("<title>", f);
    cli_markup_text(f, c->name);
    (void)fprintf(
        f, "&#10;%s%s", chart->x.before, page_value(chart->x.kind, p->x, text));
    (void)fprintf(f, "&#10;%s", page_value(chart->y.kind, p->y, text));
    if (isfinite(p->spread)) {
        (void)fprintf(
            f, " \xc2\xb1 %s", page_value(chart->y.kind, p->spread, text));
    }
    (void)fputs("</title>", f);
}

// The place of the triangle of a point beyond the plot: its tip.
static pixel mark_of(const drawn *d, size_t i, const page_beyond *beyond)
{
    const bool above = side_of(d, i) == ABOVE;
    const size_t line = (above ? beyond->above : beyond->below) % MARK_LINES;
    const double away = (double)(MARK_LINE * line);
    return (pixel){
        pixel_of(d, i).x,
        above ? PAGE_PLOT_TOP + away : PAGE_PLOT_BOTTOM - away};
}

// Of many points beyond the plot, the first and the last have a triangle; of
// one of several seeds, the first.
static void put_marks(FILE *f, const drawn *d, const page_beyond *beyond)
{
    const bool few = d->count <= SHOWN_MAX && !d->curve->faint;
    side before = NOWHERE;
    for (size_t i = 0; i < d->count; i++) {
        const side now = side_of(d, i);
        const bool last = i + 1 == d->count && !d->curve->faint;
        if ((now == ABOVE || now == BELOW) && (few || last || now != before)) {
            const pixel tip = mark_of(d, i, beyond);
            (void)fprintf(
                f, "<path class=\"out\" d=\"M%.1f %.1fl%d %dh%dz\"/>", tip.x,
                tip.y, MARK_HALF, now == ABOVE ? MARK_HEIGHT : -MARK_HEIGHT,
                -2 * MARK_HALF);
        }
        before = now;
    }
}

// The circle of a point beyond the plot is hidden behind its triangle.
static void put_points(
    FILE *f, const page_chart *chart, const drawn *d, const page_beyond *beyond)
{
    const bool few = d->count <= SHOWN_MAX;
    for (size_t i = 0; i < d->count; i++) {
        const side where = side_of(d, i);
        const bool last = i + 1 == d->count;
        if (where == NOWHERE) {
            continue;
        }
        const bool shown = where == INSIDE && (few || last);
        const pixel at =
            where == INSIDE ? pixel_of(d, i) : mark_of(d, i, beyond);
        (void)fprintf(
            f, "<circle%s cx=\"%.1f\" cy=\"%.1f\" r=\"%s\">",
            shown ? "" : " class=\"hid\"", at.x, at.y, last ? "3.5" : "2");
        put_title(f, chart, d->curve, thinned(d, i));
        (void)fputs("</circle>\n", f);
    }
}

void page_curve_put(
    FILE *f, const page_chart *chart, const page_curve *c, const page_axes *a,
    page_beyond *beyond)
{
    const drawn d = draw(c, a);
    page_range above = PAGE_RANGE_EMPTY, below = PAGE_RANGE_EMPTY;
    (void)fprintf(f, "<g class=\"curve r%zu\">", c->style);
    put_path(f, &d);
    put_marks(f, &d, beyond);
    if (!c->faint) {
        put_points(f, chart, &d, beyond);
        page_curve_beyond(c, a, &above, &below);
        beyond->above += above.low <= above.high;
        beyond->below += below.low <= below.high;
    }
    (void)fputs("</g>\n", f);
}

void page_curve_beyond(
    const page_curve *c, const page_axes *a, page_range *above,
    page_range *below)
{
    const drawn d = draw(c, a);
    for (size_t i = 0; i < d.count; i++) {
        const side where = side_of(&d, i);
        if (where == ABOVE || where == BELOW) {
            page_range_add(where == ABOVE ? above : below, thinned(&d, i)->y);
        }
    }
}
