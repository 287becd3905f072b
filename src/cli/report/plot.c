// SPDX-License-Identifier: MIT
// Plots as text: a row of characters for each value on the vertical axis.
#include "cli/report/plot.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { LABEL = 9 };

cli_plot cli_plot_make(void)
{
    cli_plot plot;
    memset(plot.cells, ' ', sizeof(plot.cells));
    return plot;
}

static size_t place(double part, size_t cells)
{
    return (size_t)lround(part * (double)(cells - 1));
}

static bool is_part(double value)
{
    return value >= 0 && value <= 1; // false for NaN
}

void cli_plot_put(cli_plot *plot, double x, double y, char mark)
{
    if (!is_part(x) || !is_part(y)) {
        return;
    }
    plot->cells[CLI_PLOT_ROWS - 1 - place(y, CLI_PLOT_ROWS)]
               [place(x, CLI_PLOT_COLUMNS)] = mark;
}

static void print_plot_row(const char *row, const char *label, FILE *stream)
{
    size_t len = CLI_PLOT_COLUMNS;
    while (len > 0 && row[len - 1] == ' ') {
        len--;
    }
    (void)fprintf(stream, "%*s |%.*s\n", LABEL, label, (int)len, row);
}

void cli_plot_print(
    const cli_plot *plot, const cli_plot_labels *labels, FILE *stream)
{
    for (size_t row = 0; row < CLI_PLOT_ROWS; row++) {
        print_plot_row(
            plot->cells[row],
            row == 0                   ? labels->high
            : row == CLI_PLOT_ROWS - 1 ? labels->low
                                       : "",
            stream);
    }
    (void)fprintf(stream, "%*s +", LABEL, "");
    for (size_t i = 0; i < CLI_PLOT_COLUMNS; i++) {
        (void)fputc('-', stream);
    }
    (void)fprintf(
        stream, "\n%*s %s%*s\n", LABEL, "", labels->left,
        CLI_PLOT_COLUMNS + 1 - (int)strlen(labels->left), labels->right);
}
