// SPDX-License-Identifier: MIT
// Charts: axes with a grid, a path for each curve, a circle for each point.
#include "cli/page/chart.h"

#include <math.h>

#include "cli/report/markup.h"

// Units of the picture.
enum {
    WIDTH = 440,
    HEIGHT = 290,
    LEFT = 62,
    RIGHT = 16,
    TOP = 12,
    BOTTOM = 44,
    PLOT_WIDTH = WIDTH - LEFT - RIGHT,
    PLOT_HEIGHT = HEIGHT - TOP - BOTTOM,
    SHOWN_MAX = 60,   // points of a curve that are drawn as such
    POINTS_MAX = 300, // of a curve; more are thinned
};

typedef struct axes {
    page_scale x, y;
} axes;

// A pixel, NaN if the point is not on the chart.
typedef struct pixel {
    double x, y;
} pixel;

static pixel pixel_of(const axes *a, const page_point *p)
{
    return (pixel){
        .x = LEFT + PLOT_WIDTH * page_scale_place(&a->x, p->x),
        .y = TOP + PLOT_HEIGHT * (1 - page_scale_place(&a->y, p->y)),
    };
}

static bool is_drawn(const pixel *at)
{
    return !isnan(at->x) && !isnan(at->y);
}

static bool make_axes(const page_chart *chart, axes *out)
{
    page_range x = PAGE_RANGE_EMPTY, y = PAGE_RANGE_EMPTY;
    for (size_t i = 0; i < chart->count; i++) {
        const page_curve *const c = &chart->curves[i];
        for (size_t k = 0; k < c->count; k++) {
            if (page_usable(c->points[k].x) && page_usable(c->points[k].y)) {
                page_range_add(&x, c->points[k].x);
                page_range_add(&y, c->points[k].y);
            }
        }
    }
    return page_scale_make(
               chart->x.kind, &x, chart->x.wide, chart->x.zero, &out->x) &&
           page_scale_make(
               chart->y.kind, &y, chart->y.wide, chart->y.zero, &out->y);
}

static void put_x_ticks(FILE *f, const page_scale *s)
{
    char text[PAGE_VALUE_SIZE];
    // Labels of eight characters have room for six.
    const size_t stride = 1 + s->tick_count / 8;
    for (size_t i = 0; i < s->tick_count; i++) {
        const double at = LEFT + PLOT_WIDTH * page_scale_place(s, s->ticks[i]);
        (void)fprintf(
            f, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>", at, TOP,
            TOP + PLOT_HEIGHT);
        if (i % stride == 0) {
            (void)fprintf(
                f, "<text x=\"%.1f\" y=\"%d\" class=\"mid\">%s</text>\n", at,
                TOP + PLOT_HEIGHT + 17, page_scale_tick(s, i, text));
        }
    }
}

static void put_y_ticks(FILE *f, const page_scale *s)
{
    char text[PAGE_VALUE_SIZE];
    for (size_t i = 0; i < s->tick_count; i++) {
        const double at =
            TOP + PLOT_HEIGHT * (1 - page_scale_place(s, s->ticks[i]));
        (void)fprintf(
            f,
            "<path class=\"grid\" d=\"M%d %.1fH%d\"/>"
            "<text x=\"%d\" y=\"%.1f\" class=\"end\">%s</text>\n",
            LEFT, at, LEFT + PLOT_WIDTH, LEFT - 7, at + 4,
            page_scale_tick(s, i, text));
    }
}

static size_t thinned_count(const page_curve *c)
{
    return c->count < POINTS_MAX ? c->count : POINTS_MAX;
}

// Point number `i` of those that are left.
static const page_point *thinned(const page_curve *c, size_t i)
{
    const size_t count = thinned_count(c);
    return &c->points[count < 2 ? 0 : i * (c->count - 1) / (count - 1)];
}

static void put_path(FILE *f, const page_curve *c, const axes *a)
{
    const size_t count = thinned_count(c);
    bool open = false;
    (void)fprintf(f, "<path%s d=\"", c->faint ? " class=\"faint\"" : "");
    for (size_t i = 0; i < count; i++) {
        const pixel at = pixel_of(a, thinned(c, i));
        if (is_drawn(&at)) {
            (void)fprintf(f, "%c%.1f %.1f", open ? 'L' : 'M', at.x, at.y);
        }
        open = is_drawn(&at);
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

static void chart_points(
    FILE *f, const page_chart *chart, const page_curve *c, const axes *a)
{
    const size_t count = thinned_count(c);
    const bool hidden = count > SHOWN_MAX;
    for (size_t i = 0; i < count; i++) {
        const pixel at = pixel_of(a, thinned(c, i));
        if (is_drawn(&at)) {
            const bool last = i + 1 == count;
            (void)fprintf(
                f, "<circle%s cx=\"%.1f\" cy=\"%.1f\" r=\"%s\">",
                hidden && !last ? " class=\"hid\"" : "", at.x, at.y,
                last ? "3.5" : "2");
            put_title(f, chart, c, thinned(c, i));
            (void)fputs("</circle>\n", f);
        }
    }
}

static void chart_curve(
    FILE *f, const page_chart *chart, const page_curve *c, const axes *a)
{
    (void)fprintf(f, "<g class=\"curve r%zu\">", c->style);
    put_path(f, c, a);
    if (!c->faint) {
        chart_points(f, chart, c, a);
    }
    (void)fputs("</g>\n", f);
}

void page_chart_put(FILE *f, const page_chart *chart)
{
    axes a;
    if (!make_axes(chart, &a)) {
        return;
    }
    (void)fprintf(
        f,
        "<figure><figcaption>%s<small>%s</small></figcaption>\n"
        "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" "
        "aria-label=\"%s\">\n",
        chart->title, a.y.logarithmic ? " log scale" : "", WIDTH, HEIGHT,
        chart->title);
    put_y_ticks(f, &a.y);
    put_x_ticks(f, &a.x);
    (void)fprintf(
        f,
        "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>"
        "<text x=\"%d\" y=\"%d\" class=\"mid\">%s%s</text>\n",
        LEFT, TOP, TOP + PLOT_HEIGHT, LEFT + PLOT_WIDTH, LEFT + PLOT_WIDTH / 2,
        HEIGHT - 6, chart->x.label, a.x.logarithmic ? ", log scale" : "");
    for (size_t i = 0; i < chart->count; i++) {
        chart_curve(f, chart, &chart->curves[i], &a);
    }
    (void)fputs("</svg></figure>\n", f);
}
