// SPDX-License-Identifier: MIT
// A grid of networks, evenly spaced on logarithmic axes. In each cell stands
// the fastest candidate, or the baseline where nothing gains 5 %.
#include "cli/plan/map.h"

#include <math.h>

#include "cli/plan/text.h"
#include "cli/report/table.h"
#include "cli/report/wrap.h"

// Bytes a second and seconds of the first cell, and cells per decade.
static const double first_bandwidth = 1e6 / 8, first_latency = 1e-5;
static const double columns_per_decade = 12, rows_per_decade = 4;

// The marks of the winners; a capital where a step is twice as fast.
static const char cell_marks[] = ".abcdefghijklmnopqrstuvwxyz";
static const char twice_marks[] = ".ABCDEFGHIJKLMNOPQRSTUVWXYZ";

char plan_map_mark(size_t winner, bool twice)
{
    return winner >= sizeof(cell_marks) - 1 ? '?'
           : twice                          ? twice_marks[winner]
                                            : cell_marks[winner];
}

double plan_map_bandwidth(size_t column)
{
    return first_bandwidth * pow(10, (double)column / columns_per_decade);
}

double plan_map_latency(size_t row)
{
    return first_latency * pow(10, (double)row / rows_per_decade);
}

double plan_map_column(double bandwidth)
{
    return columns_per_decade * log10(bandwidth / first_bandwidth);
}

double plan_map_row(double latency)
{
    return rows_per_decade * log10(latency / first_latency);
}

// Returns the number of a candidate among the winners; a new one is added.
static size_t winner_number(plan_map *m, size_t candidate)
{
    for (size_t i = 0; i < m->winner_count; i++) {
        if (m->winners[i] == candidate) {
            return i;
        }
    }
    m->winners[m->winner_count] = candidate;
    return m->winner_count++;
}

void plan_map_make(plan_map *m, const plan *p, const plan_network *n)
{
    *m = (plan_map){.plan = p, .network = *n};
    (void)winner_number(m, (size_t)(plan_baseline(p) - p->candidates));
    for (size_t row = 0; row < PLAN_MAP_ROWS; row++) {
        for (size_t column = 0; column < PLAN_MAP_COLUMNS; column++) {
            const plan_network at = {
                .kind = n->kind,
                .bandwidth = plan_map_bandwidth(column),
                .latency = plan_map_latency(row),
            };
            const plan_candidate *const winner = plan_winner(p, &at);
            const size_t number =
                winner_number(m, (size_t)(winner - p->candidates));
            m->cells[row][column] = (unsigned char)number;
            m->cells_won[number]++;
            m->twice[row][column] = plan_step(p, plan_baseline(p), &at) >=
                                    2 * plan_step(p, winner, &at);
        }
    }
}

static void print_cell(
    const plan_map *m, size_t row, size_t column, bool colours, FILE *stream)
{
    // Of the 256 colours of terminals: grey, then pale ones.
    static const int backgrounds[] = {250, 117, 222, 151, 218,
                                      183, 229, 109, 180, 146};
    const size_t count = sizeof(backgrounds) / sizeof(backgrounds[0]);
    const size_t number = m->cells[row][column];
    const bool here =
        (long)row == lround(plan_map_row(m->network.latency)) &&
        (long)column == lround(plan_map_column(m->network.bandwidth));
    const char mark = here ? '*' : plan_map_mark(number, m->twice[row][column]);
    if (colours) {
        (void)fprintf(
            stream, "\033[30;48;5;%dm%c\033[0m", backgrounds[number % count],
            mark);
    } else {
        (void)fputc(mark, stream);
    }
}

static void print_bandwidths(FILE *stream)
{
    static const char *const labels[] = {"1 Mbit/s", "10", "100",
                                         "1 Gbit/s", "10", "100"};
    int column = 0;
    (void)fprintf(stream, "%7s  ", "");
    for (int i = 0; i < 6; i++) {
        const int at = i * (int)columns_per_decade;
        column += fprintf(stream, "%*s%s", at - column, "", labels[i]);
    }
    (void)fputc('\n', stream);
}

static void print_legend(const plan_map *m, FILE *stream)
{
    char name[PLAN_NAME_SIZE];
    for (size_t i = 0; i < m->winner_count; i++) {
        const plan_candidate *const c = &m->plan->candidates[m->winners[i]];
        if (m->cells_won[i] > 0) {
            const int indent =
                fprintf(stream, "%9c  ", plan_map_mark(i, false));
            cli_wrap(
                i == 0 ? "all-reduce: nothing gains 5 %"
                       : plan_name(&c->choice, name),
                indent > 0 ? (size_t)indent : 0, stream);
        }
    }
    (void)fprintf(stream, "%9c  your network\n", '*');
}

void plan_map_print(const plan_map *m, bool colours, FILE *stream)
{
    char text[PLAN_TEXT_SIZE];
    (void)fprintf(
        stream, "the fastest by latency (one way) and bandwidth; capitals: "
                "twice as fast\n\n");
    for (size_t row = PLAN_MAP_ROWS; row-- > 0;) {
        const bool labelled = row % (size_t)rows_per_decade == 0;
        (void)fprintf(
            stream, "%7s  ",
            labelled ? plan_seconds(plan_map_latency(row), text) : "");
        for (size_t column = 0; column < PLAN_MAP_COLUMNS; column++) {
            print_cell(m, row, column, colours, stream);
        }
        (void)fputc('\n', stream);
    }
    print_bandwidths(stream);
    (void)fputc('\n', stream);
    print_legend(m, stream);
}

cJSON *plan_map_json(const plan_map *m)
{
    char name[PLAN_NAME_SIZE];
    cJSON *const o = cJSON_CreateObject();
    cJSON *const bandwidths = cJSON_AddArrayToObject(o, "bandwidth_mbit");
    for (size_t i = 0; i < PLAN_MAP_COLUMNS; i++) {
        cJSON_AddItemToArray(
            bandwidths, cJSON_CreateNumber(8e-6 * plan_map_bandwidth(i)));
    }
    cJSON *const latencies = cJSON_AddArrayToObject(o, "latency_seconds");
    cJSON *const rows = cJSON_AddArrayToObject(o, "winners");
    for (size_t i = 0; i < PLAN_MAP_ROWS; i++) {
        cJSON_AddItemToArray(
            latencies, cJSON_CreateNumber(plan_map_latency(i)));
        cJSON *const row = cJSON_CreateArray();
        for (size_t k = 0; k < PLAN_MAP_COLUMNS; k++) {
            cJSON_AddItemToArray(row, cJSON_CreateNumber(m->cells[i][k]));
        }
        cJSON_AddItemToArray(rows, row);
    }
    cJSON *const names = cJSON_AddArrayToObject(o, "names");
    for (size_t i = 0; i < m->winner_count; i++) {
        const plan_candidate *const c = &m->plan->candidates[m->winners[i]];
        cJSON_AddItemToArray(
            names, cJSON_CreateString(plan_name(&c->choice, name)));
    }
    return o;
}
