// SPDX-License-Identifier: MIT
// The map as an SVG picture: cells in the colours of their winners, pale where
// the gain is less than twofold, axes with a tick a decade, a legend, and a
// circle at the user's network. Without colours, hatching and letters
// distinguish the regions; the letters are those of the map as text.
#include "cli/plan/letters.h"
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
    WIDTH = LEGEND + 280,
    HEIGHT = TOP + PLOT_HEIGHT + 58,
    LINE = 22,
    KEY_WIDTH = 24, // of a region in the legend
    KEY_HEIGHT = 16,
    MARK = KEY_WIDTH + 8, // its letter
    NAME = MARK + 18,
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

// Lines on tiles of 8 by 8, turned by an angle. Eleven of them and twelve
// colours give every region a pair of its own.
static const struct {
    const char *lines;
    int angle;
} hatches[] = {
    {"M0 4H8", 45},
    {"M0 4H8", -45},
    {"M0 4H8", 0},
    {"M4 0V8", 0},
    {"M3 4a1 1 0 0 0 2 0a1 1 0 0 0-2 0", 0},
    {"M0 4H8M4 0V8", 0},
    {"M0 4H8M4 0V8", 45},
    {"M0 2H8M0 6H8", 45},
    {"M0 2H8M0 6H8", -45},
    {"M0 2H5M4 6H8", 0},
    {"M0 6L4 2L8 6", 0},
};

static void put_hatches(FILE *f, const plan_map *m)
{
    const size_t count = sizeof(hatches) / sizeof(*hatches);
    (void)fputs("<defs>\n", f);
    for (size_t i = 1; i < m->winner_count; i++) {
        (void)fprintf(
            f,
            "<pattern id=\"region%zu\" width=\"8\" height=\"8\" "
            "patternUnits=\"userSpaceOnUse\" "
            "patternTransform=\"rotate(%d)\"><rect width=\"8\" height=\"8\" "
            "fill=\"%s\"/><path d=\"%s\" fill=\"none\" stroke=\"black\" "
            "stroke-opacity=\"0.45\"/></pattern>\n",
            i, hatches[(i - 1) % count].angle, svg_colour(i),
            hatches[(i - 1) % count].lines);
    }
    (void)fputs("</defs>\n", f);
}

// The attribute of a rectangle in the colour and the hatching of a winner.
static void put_fill(FILE *f, size_t winner)
{
    if (winner == 0) {
        (void)fprintf(f, " fill=\"%s\"", svg_colour(0));
    } else {
        (void)fprintf(f, " fill=\"url(#region%zu)\"", winner);
    }
}

static bool same_cell(const plan_map *m, size_t row, size_t a, size_t b)
{
    return m->cells[row][a] == m->cells[row][b] &&
           m->twice[row][a] == m->twice[row][b];
}

// Whether two neighbours have different winners, or (dashed) only differ in
// being twice as fast. The baseline is never twice as fast as itself.
static bool has_border(
    const plan_map *m, size_t row, size_t column, size_t other_row,
    size_t other_column, bool dashed)
{
    const bool same =
        m->cells[row][column] == m->cells[other_row][other_column];
    return dashed ? same && m->twice[row][column] !=
                                m->twice[other_row][other_column]
                  : !same;
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
            f, "<rect x=\"%zu\" y=\"%zu\" width=\"%zu\" height=\"%d\"",
            LEFT + CELL_WIDTH * first,
            TOP + CELL_HEIGHT * (PLAN_MAP_ROWS - 1 - row),
            CELL_WIDTH * (k - first), CELL_HEIGHT);
        put_fill(f, m->cells[row][first]);
        (void)fprintf(
            f, " fill-opacity=\"%s\"/>\n",
            m->twice[row][first] || m->cells[row][first] == 0 ? "1" : "0.5");
        first = k;
    }
}

// Lines between winners, or dashed ones between full and pale cells of one.
static void put_borders(FILE *f, const plan_map *m, bool dashed)
{
    (void)fprintf(
        f, "<path fill=\"none\" stroke=\"black\"%s d=\"",
        dashed ? " stroke-opacity=\"0.6\" stroke-dasharray=\"3 3\"" : "");
    for (size_t row = 0; row < PLAN_MAP_ROWS; row++) {
        const size_t y = TOP + CELL_HEIGHT * (PLAN_MAP_ROWS - 1 - row);
        for (size_t k = 0; k < PLAN_MAP_COLUMNS; k++) {
            const size_t x = LEFT + CELL_WIDTH * k;
            if (k > 0 && has_border(m, row, k, row, k - 1, dashed)) {
                (void)fprintf(f, "M%zu %zuv%d", x, y, CELL_HEIGHT);
            }
            if (row > 0 && has_border(m, row, k, row - 1, k, dashed)) {
                (void)fprintf(f, "M%zu %zuh%d", x, y + CELL_HEIGHT, CELL_WIDTH);
            }
        }
    }
    (void)fputs("\"/>\n", f);
}

// A letter on a white rim, readable on every colour and hatching.
static void put_letter(FILE *f, double x, double y, char letter)
{
    (void)fprintf(
        f,
        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" "
        "font-size=\"15\" font-weight=\"bold\" stroke=\"white\" "
        "stroke-width=\"4\" stroke-linejoin=\"round\" "
        "paint-order=\"stroke\">%c</text>\n",
        x, y, letter);
}

static void put_letters(FILE *f, const plan_map *m)
{
    plan_letter letters[PLAN_LETTERS_MAX];
    const size_t count = plan_map_letters(m, letters);
    for (size_t i = 0; i < count; i++) {
        put_letter(
            f, LEFT + CELL_WIDTH * ((double)letters[i].column + 0.5),
            TOP + CELL_HEIGHT * (PLAN_MAP_ROWS - 0.5 - (double)letters[i].row) +
                5,
            letters[i].mark);
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
            f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"", LEGEND, y,
            KEY_WIDTH, KEY_HEIGHT);
        put_fill(f, i);
        (void)fputs(" stroke=\"black\"/>\n", f);
        if (i > 0) {
            put_letter(f, LEGEND + MARK + 5, y + 13, plan_map_mark(i, false));
        }
        plan_picture_text(
            f, LEGEND + NAME, y + 13, "start",
            i == 0 ? "all-reduce: nothing gains 5 %"
                   : cli_fitted(
                         plan_name(&c->choice, name), LEGEND_COLUMNS, fitted));
        y += LINE;
    }
    (void)fprintf(
        f,
        "<circle cx=\"%d\" cy=\"%d\" r=\"6\" fill=\"white\" "
        "stroke=\"black\" stroke-width=\"2\"/>\n",
        LEGEND + KEY_WIDTH / 2, y + 8);
    plan_picture_text(f, LEGEND + NAME, y + 13, "start", "this network");
    plan_picture_text(
        f, LEGEND, y + LINE + 13, "start", "full, A: at least twice as fast");
    plan_picture_text(
        f, LEGEND, y + 2 * LINE + 13, "start", "pale, a: less than that");
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
    put_hatches(f, p->map);
    (void)fputs("<g shape-rendering=\"crispEdges\">\n", f);
    for (size_t row = 0; row < PLAN_MAP_ROWS; row++) {
        put_row(f, p->map, row);
    }
    put_borders(f, p->map, true);
    put_borders(f, p->map, false);
    (void)fputs("</g>\n", f);
    put_letters(f, p->map);
    put_axes(f);
    put_here(f, p->map);
    put_legend(f, p->map);
}

lac_status plan_map_svg(const plan_map *m, const char *title, const char *path)
{
    const map_picture picture = {m, title};
    int lines = 3; // of the legend, after those of the winners
    for (size_t i = 0; i < m->winner_count; i++) {
        lines += m->cells_won[i] > 0;
    }
    const int legend = TOP + LINE * (lines + 1);
    return plan_picture_write(
        path, WIDTH, legend > HEIGHT ? legend : HEIGHT, put_map, &picture);
}
