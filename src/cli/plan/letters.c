// SPDX-License-Identifier: MIT
// Regions are found by flooding. Cells are twice as high as wide: a step to the
// next row counts as two.
#include "cli/plan/letters.h"

#include <math.h>

enum { ROWS = PLAN_MAP_ROWS, COLUMNS = PLAN_MAP_COLUMNS };

typedef struct cell {
    int row, column;
} cell;

// The cells of a region, in the order in which they were found.
typedef struct region {
    cell cells[ROWS * COLUMNS];
    size_t count;
    bool found[ROWS][COLUMNS]; // of this region or an earlier one
} region;

static bool is_on_map(cell c)
{
    return c.row >= 0 && c.row < ROWS && c.column >= 0 && c.column < COLUMNS;
}

static char mark_of(const plan_map *m, cell c)
{
    return plan_map_mark(m->cells[c.row][c.column], m->twice[c.row][c.column]);
}

static bool has_mark(const plan_map *m, cell c, char mark)
{
    return is_on_map(c) && mark_of(m, c) == mark;
}

static void find_cell(region *r, const plan_map *m, cell c, char mark)
{
    if (has_mark(m, c, mark) && !r->found[c.row][c.column]) {
        r->found[c.row][c.column] = true;
        r->cells[r->count++] = c;
    }
}

static void find_region(region *r, const plan_map *m, cell first)
{
    const char mark = mark_of(m, first);
    r->count = 0;
    find_cell(r, m, first, mark);
    for (size_t i = 0; i < r->count; i++) {
        const cell at = r->cells[i];
        find_cell(r, m, (cell){at.row - 1, at.column}, mark);
        find_cell(r, m, (cell){at.row + 1, at.column}, mark);
        find_cell(r, m, (cell){at.row, at.column - 1}, mark);
        find_cell(r, m, (cell){at.row, at.column + 1}, mark);
    }
}

// The distance to the nearest cell with another mark, or to the edge.
static int clearance(const plan_map *m, cell at, char mark)
{
    int away = 1;
    for (;; away++) {
        const int rows = away / 2;
        for (int row = at.row - rows; row <= at.row + rows; row++) {
            for (int column = at.column - away; column <= at.column + away;
                 column++) {
                if (!has_mark(m, (cell){row, column}, mark)) {
                    return away;
                }
            }
        }
    }
}

static bool is_beside_network(const plan_map *m, cell at)
{
    return fabs(plan_map_column(m->network.bandwidth) - at.column) < 2.5 &&
           fabs(plan_map_row(m->network.latency) - at.row) < 1.2;
}

// The square of the distance to the middle of a region.
static double eccentricity(const region *r, cell at)
{
    double row = 0, column = 0;
    for (size_t i = 0; i < r->count; i++) {
        row += r->cells[i].row / (double)r->count;
        column += r->cells[i].column / (double)r->count;
    }
    return 4 * (at.row - row) * (at.row - row) +
           (at.column - column) * (at.column - column);
}

// Finds the cell for the letter of a region. Returns false if there is no room.
static bool find_room(const plan_map *m, const region *r, cell *out)
{
    const char mark = mark_of(m, r->cells[0]);
    int widest = 1; // a neighbour in the row is another region
    for (size_t i = 0; i < r->count; i++) {
        const cell at = r->cells[i];
        const int room = is_beside_network(m, at) ? 0 : clearance(m, at, mark);
        if (room > widest || (room == widest && widest > 1 &&
                              eccentricity(r, at) < eccentricity(r, *out))) {
            widest = room;
            *out = at;
        }
    }
    return widest > 1;
}

size_t plan_map_letters(
    const plan_map *m, plan_letter letters_out[PLAN_LETTERS_MAX])
{
    region r = {.count = 0};
    size_t count = 0;
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            const cell first = {row, column};
            cell at = first;
            if (r.found[row][column] || m->cells[row][column] == 0) {
                continue;
            }
            find_region(&r, m, first);
            if (find_room(m, &r, &at)) {
                letters_out[count++] = (plan_letter){
                    mark_of(m, at), (size_t)at.row, (size_t)at.column};
            }
        }
    }
    return count;
}
