// SPDX-License-Identifier: MIT
// Bars: a line with the name and the sum, and below it the parts.
#include "cli/page/bars.h"

#include <math.h>

#include "cli/report/markup.h"
#include "cli/report/table.h"

// Units of the picture.
enum {
    WIDTH = 440,
    ROW = 40,
    BAR_TOP = 19,
    BAR_HEIGHT = 14,
    NAME_COLUMNS = 46
};

static double usable_part(double part)
{
    return page_usable(part) && part > 0 ? part : 0;
}

static double bar_sum(const page_bar *bar)
{
    double sum = 0;
    for (size_t i = 0; i < PAGE_PARTS_MAX; i++) {
        sum += usable_part(bar->parts[i]);
    }
    return sum;
}

static bool has_part(const page_bar *bars, size_t count, size_t part)
{
    for (size_t i = 0; i < count; i++) {
        if (usable_part(bars[i].parts[part]) > 0) {
            return true;
        }
    }
    return false;
}

// Parts that no bar has are left out.
static void bars_legend(
    FILE *f, const char *const *parts, const page_bar *bars, size_t count)
{
    (void)fputs("<p class=\"parts\">", f);
    for (size_t i = 0; parts[i] != NULL; i++) {
        if (!has_part(bars, count, i)) {
            continue;
        }
        (void)fprintf(
            f,
            "<span><svg viewBox=\"0 0 10 10\" class=\"key\">"
            "<rect width=\"10\" height=\"10\" rx=\"2\" class=\"p%zu\"/></svg> "
            "%s</span>\n",
            i, parts[i]);
    }
    (void)fputs("</p>\n", f);
}

static void put_bar(
    FILE *f, const char *const *parts, const page_bar *bar, double top,
    double longest)
{
    char text[PAGE_VALUE_SIZE], name[CLI_CELL_SIZE];
    double at = 0;
    (void)fprintf(f, "<text x=\"0\" y=\"%.0f\">", top + 13);
    cli_markup_text(f, cli_fitted(bar->name, NAME_COLUMNS, name));
    (void)fprintf(
        f, "</text><text x=\"%d\" y=\"%.0f\" class=\"end\">%s</text>\n", WIDTH,
        top + 13, page_value(PAGE_SECONDS, bar_sum(bar), text));
    for (size_t i = 0; parts[i] != NULL; i++) {
        const double part = usable_part(bar->parts[i]);
        const double width = WIDTH * part / longest;
        if (width > 0.05) {
            (void)fprintf(
                f,
                "<rect class=\"p%zu\" x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" "
                "height=\"%d\"><title>%s %s</title></rect>\n",
                i, at, top + BAR_TOP, width, BAR_HEIGHT, parts[i],
                page_value(PAGE_SECONDS, part, text));
            at += width;
        }
    }
}

void page_bars_put(
    FILE *f, const char *title, const char *const *parts, const page_bar *bars,
    size_t count)
{
    double longest = 0;
    for (size_t i = 0; i < count; i++) {
        longest = fmax(longest, bar_sum(&bars[i]));
    }
    if (!(longest > 0)) {
        return;
    }
    bars_legend(f, parts, bars, count);
    (void)fprintf(
        f,
        "<figure class=\"bars\"><svg viewBox=\"0 0 %d %zu\" role=\"img\" "
        "aria-label=\"%s\">\n",
        WIDTH, ROW * count, title);
    for (size_t i = 0; i < count; i++) {
        put_bar(f, parts, &bars[i], (double)(ROW * i), longest);
    }
    (void)fputs("</svg></figure>\n", f);
}
