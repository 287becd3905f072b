// SPDX-License-Identifier: MIT
// The map as an SVG picture: cells in the colours of their winners, pale where
// the gain is less than twofold, axes with a tick a decade, a legend, and a
// circle at the user's network.
#include "cli/plan/map.h"
#include "cli/plan/picture.h"
#include "cli/plan/text.h"
#include "cli/report/table.h"

// Pixels.
enum {
    CELL_WIDTH = 9,
    CELL_HEIGHT = 18,
    LEFT = 76,
    TOP = 44,
    PLOT_WIDTH = CELL_WIDTH * PLAN_MAP_COLUMNS,
    PLOT_HEIGHT = CELL_HEIGHT * PLAN_MAP_ROWS,
    LEGEND = LEFT + PLOT_WIDTH + 22,
    WIDTH = LEGEND + 230,
    HEIGHT = TOP + PLOT_HEIGHT + 58,
    LINE = 22,
};

// Characters of a name that fit beside its colour.
enum { LEGEND_COLUMNS = 30 };

// Grey for all-reduce, then colours that colour-blind readers can distinguish
// (Okabe and Ito) and lighter tints of them.
static const char *const svg_colours[] = {
    "#d9d9d9", "#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442",
    "#0072b2", "#d55e00", "#a6d9f5", "#f5cf80", "#80cfb9", "#e6bcd3"};

static const char *svg_colour(size_t winner)
{
    return svg_colours[winner % (sizeof(svg_colours) / sizeof(*svg_colours))];
}

static bool same_cell(const plan_map *m, size_t row, size_t a, size_t b)
{
    return m->cells[row][a] == m->cells[row][b] &&
           m->twice[row][a] == m->twice[row][b];
}

// One rectangle for equal cells side by side.
static void put_row(FILE *f, const plan_map *m, size_t row)
{
    size_t first = 0;
    for (size_t k = 1; k <= PLAN_MAP_COLUMNS; k++) {
        if (k < PLAN_MAP_COLUMNS && same_cell(m, row, k, first)) {
            continue;
        }
        (void)fprintf(
            f,
            "<rect x=\"%zu\" y=\"%zu\" width=\"%zu\" height=\"%d\" "
            "fill=\"%s\" fill-opacity=\"%s\"/>\n",
            LEFT + CELL_WIDTH * first,
            TOP + CELL_HEIGHT * (PLAN_MAP_ROWS - 1 - row),
            CELL_WIDTH * (k - first), CELL_HEIGHT,
            svg_colour(m->cells[row][first]),
            m->twice[row][first] || m->cells[row][first] == 0 ? "1" : "0.5");
        first = k;
    }
}

// The pixels of a place on the map; values are at the centres of cells.
static double svg_x(double bandwidth)
{
    return LEFT + CELL_WIDTH * (plan_map_column(bandwidth) + 0.5);
}

static double svg_y(double latency)
{
    return TOP + CELL_HEIGHT * (PLAN_MAP_ROWS - 0.5 - plan_map_row(latency));
}

static void put_axes(FILE *f)
{
    char text[PLAN_TEXT_SIZE];
    for (unsigned mbit = 1; mbit < 200000; mbit *= 10) {
        (void)snprintf(
            text, sizeof(text), mbit < 1000 ? "%u Mbit/s" : "%u Gbit/s",
            mbit < 1000 ? mbit : mbit / 1000);
        plan_picture_text(
            f, svg_x(mbit / 8e-6), TOP + PLOT_HEIGHT + 18, "middle", text);
    }
    for (unsigned us = 10; us < 200000; us *= 10) {
        (void)snprintf(
            text, sizeof(text), us < 1000 ? "%u us" : "%u ms",
            us < 1000 ? us : us / 1000);
        plan_picture_text(f, LEFT - 8, svg_y(us * 1e-6) + 4, "end", text);
    }
    plan_picture_text(
        f, LEFT + PLOT_WIDTH / 2.0, TOP + PLOT_HEIGHT + 42, "middle",
        "bandwidth of a port, each way");
    (void)fprintf(
        f,
        "<text transform=\"translate(16 %d) rotate(-90)\" "
        "text-anchor=\"middle\">latency, one way</text>\n",
        TOP + PLOT_HEIGHT / 2);
}

static void put_here(FILE *f, const plan_map *m)
{
    const double column = plan_map_column(m->network.bandwidth);
    const double row = plan_map_row(m->network.latency);
    if (column >= -0.5 && column <= PLAN_MAP_COLUMNS - 0.5 && row >= -0.5 &&
        row <= PLAN_MAP_ROWS - 0.5) {
        (void)fprintf(
            f,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"white\" "
            "stroke=\"black\" stroke-width=\"2\"/>\n",
            svg_x(m->network.bandwidth), svg_y(m->network.latency));
    }
}

static void put_legend(FILE *f, const plan_map *m)
{
    char name[PLAN_NAME_SIZE], fitted[CLI_CELL_SIZE];
    int y = TOP;
    for (size_t i = 0; i < m->winner_count; i++) {
        const plan_candidate *const c = &m->plan->candidates[m->winners[i]];
        if (m->cells_won[i] == 0) {
            continue;
        }
        (void)fprintf(
            f,
            "<rect x=\"%d\" y=\"%d\" width=\"14\" height=\"14\" "
            "fill=\"%s\"/>\n",
            LEGEND, y, svg_colour(i));
        plan_picture_text(
            f, LEGEND + 22, y + 12, "start",
            i == 0 ? "all-reduce: nothing gains 5 %"
                   : cli_fitted(
                         plan_name(&c->choice, name), LEGEND_COLUMNS, fitted));
        y += LINE;
    }
    (void)fprintf(
        f,
        "<circle cx=\"%d\" cy=\"%d\" r=\"6\" fill=\"white\" "
        "stroke=\"black\" stroke-width=\"2\"/>\n",
        LEGEND + 7, y + 7);
    plan_picture_text(f, LEGEND + 22, y + 12, "start", "this network");
    plan_picture_text(
        f, LEGEND, y + LINE + 12, "start", "pale: less than twice as fast");
}

// What is drawn.
typedef struct map_picture {
    const plan_map *map;
    const char *title;
} map_picture;

static void put_map(FILE *f, const void *context)
{
    const map_picture *const p = context;
    plan_picture_text(f, LEFT, 26, "start", p->title);
    (void)fputs("<g shape-rendering=\"crispEdges\">\n", f);
    for (size_t row = 0; row < PLAN_MAP_ROWS; row++) {
        put_row(f, p->map, row);
    }
    (void)fputs("</g>\n", f);
    put_axes(f);
    put_here(f, p->map);
    put_legend(f, p->map);
}

lac_status plan_map_svg(const plan_map *m, const char *title, const char *path)
{
    const map_picture picture = {m, title};
    return plan_picture_write(path, WIDTH, HEIGHT, put_map, &picture);
}
