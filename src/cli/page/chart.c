// SPDX-License-Identifier: MIT
// Charts: axes with a grid, the curves, and a note on those beyond the axes.
#include "cli/page/chart.h"

#include <math.h>
#include <string.h>

#include "cli/page/axes.h"
#include "cli/page/curve.h"
#include "cli/report/markup.h"

// Units of the picture. A digit is narrower in all common fonts.
static const double CHARACTER_WIDTH = 8.3, LABEL_GAP = 8;

enum { NAMED_MAX = 6 }; // curves in a note

// The room of a label along x.
typedef struct span {
    double from, to;
} span;

static bool is_free(const span *taken, size_t count, span wanted)
{
    for (size_t i = 0; i < count; i++) {
        if (wanted.from < taken[i].to + LABEL_GAP &&
            taken[i].from < wanted.to + LABEL_GAP) {
            return false;
        }
    }
    return true;
}

// Labels that would touch another are left out.
static void put_x_labels(FILE *f, const page_axes *a)
{
    char text[PAGE_VALUE_SIZE];
    span taken[PAGE_TICKS_MAX];
    size_t count = 0;
    for (int major = 1; major >= 0; major--) {
        for (size_t i = 0; i < a->x.tick_count; i++) {
            const double at = page_axes_x(a, a->x.ticks[i]);
            const double half =
                (double)strlen(page_scale_tick(&a->x, i, text)) *
                CHARACTER_WIDTH / 2;
            const span wanted = {at - half, at + half};
            if (page_scale_is_major(&a->x, i) != (major == 1) ||
                !is_free(taken, count, wanted)) {
                continue;
            }
            taken[count++] = wanted;
            (void)fprintf(
                f, "<text x=\"%.1f\" y=\"%d\" class=\"mid\">%s</text>\n", at,
                PAGE_PLOT_BOTTOM + 17, text);
        }
    }
}

static void put_x_ticks(FILE *f, const page_axes *a)
{
    for (size_t i = 0; i < a->x.tick_count; i++) {
        (void)fprintf(
            f, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n",
            page_axes_x(a, a->x.ticks[i]), PAGE_PLOT_TOP, PAGE_PLOT_BOTTOM);
    }
    put_x_labels(f, a);
}

static void put_y_ticks(FILE *f, const page_axes *a)
{
    char text[PAGE_VALUE_SIZE];
    for (size_t i = 0; i < a->y.tick_count; i++) {
        const double at = page_axes_y(a, a->y.ticks[i]);
        (void)fprintf(
            f,
            "<path class=\"grid\" d=\"M%d %.1fH%d\"/>"
            "<text x=\"%d\" y=\"%.1f\" class=\"end\">%s</text>\n",
            PAGE_PLOT_LEFT, at, PAGE_PLOT_RIGHT, PAGE_PLOT_LEFT - 7, at + 4,
            page_scale_tick(&a->y, i, text));
    }
}

// "naive, down to 21.40 %", for one end of the axis.
static void put_beyond(
    FILE *f, const page_chart *chart, const page_curve *c, bool up,
    double value)
{
    char text[PAGE_VALUE_SIZE];
    (void)fprintf(
        f, " <span class=\"beyond r%zu\"><b>%s</b> ", c->style,
        up ? "\xe2\x96\xb2" : "\xe2\x96\xbc");
    cli_markup_text(f, c->name);
    (void)fprintf(
        f, ", %s to %s</span>\n", up ? "up" : "down",
        page_value(chart->y.kind, value, text));
}

// Names the curves with points beyond the axis. The seeds of a row and their
// mean follow each other, and are one.
static void put_note(FILE *f, const page_chart *chart, const page_axes *a)
{
    size_t named = 0, others = 0;
    for (size_t i = 0; i < chart->count;) {
        const page_curve *const c = &chart->curves[i];
        page_range above = PAGE_RANGE_EMPTY, below = PAGE_RANGE_EMPTY;
        for (; i < chart->count && chart->curves[i].style == c->style; i++) {
            page_curve_beyond(&chart->curves[i], a, &above, &below);
        }
        const bool up = above.low <= above.high, down = below.low <= below.high;
        if ((up || down) && named == NAMED_MAX) {
            others++;
        } else if (up || down) {
            (void)fputs(
                named++ == 0 ? "<p class=\"note\">Beyond the axis:\n" : "", f);
            if (up) {
                put_beyond(f, chart, c, true, above.high);
            }
            if (down) {
                put_beyond(f, chart, c, false, below.low);
            }
        }
    }
    if (others > 0) {
        (void)fprintf(f, " and %zu more\n", others);
    }
    (void)fputs(named > 0 ? "</p>\n" : "", f);
}

lac_status page_chart_put(FILE *f, const page_chart *chart)
{
    page_axes a;
    page_beyond beyond = {0};
    bool empty = false;
    LAC_TRY(page_axes_make(chart, &a, &empty));
    if (empty) {
        return LAC_OK;
    }
    (void)fprintf(
        f,
        "<figure><figcaption>%s<small>%s</small></figcaption>\n"
        "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" "
        "aria-label=\"%s\">\n",
        chart->title, a.y.logarithmic ? " log scale" : "", PAGE_CHART_WIDTH,
        PAGE_CHART_HEIGHT, chart->title);
    put_y_ticks(f, &a);
    put_x_ticks(f, &a);
    (void)fprintf(
        f,
        "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>"
        "<text x=\"%d\" y=\"%d\" class=\"mid\">%s%s</text>\n",
        PAGE_PLOT_LEFT, PAGE_PLOT_TOP, PAGE_PLOT_BOTTOM, PAGE_PLOT_RIGHT,
        (PAGE_PLOT_LEFT + PAGE_PLOT_RIGHT) / 2, PAGE_CHART_HEIGHT - 6,
        chart->x.label, a.x.logarithmic ? ", log scale" : "");
    for (size_t i = 0; i < chart->count; i++) {
        page_curve_put(f, chart, &chart->curves[i], &a, &beyond);
    }
    (void)fputs("</svg>\n", f);
    put_note(f, chart, &a);
    (void)fputs("</figure>\n", f);
    return LAC_OK;
}
