// SPDX-License-Identifier: MIT
// Aligned tables, numbers with units, and JSON.
#include "cli/report/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/command.h"
#include "cli/report/wrap.h"

enum {
    TEXT_LEAST = 24, // columns of a last column that is wrapped
    NAME_LEAST = 12, // columns of a first column with names that are not
    VALUE_MOST = 28, // columns of a value beside its note
};

cli_table cli_table_make(const char *align, const char *indent)
{
    return (cli_table){
        .align = align,
        .indent = indent == NULL ? "" : indent,
        .columns = strlen(align),
    };
}

void cli_table_add(cli_table *table, const char *format, ...)
{
    if (table->rows == table->room) {
        const size_t room = table->room == 0 ? 64 : 2 * table->room;
        void *const cells = realloc(table->cells, room * CLI_CELL_SIZE);
        if (cells == NULL) {
            (void)fprintf(stderr, "laconic: no memory for a table\n");
            exit(CLI_FAILED);
        }
        table->cells = cells;
        table->room = room;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(table->cells[table->rows++], CLI_CELL_SIZE, format, args);
    va_end(args);
}

static size_t column_width(const cli_table *table, size_t column)
{
    size_t width = 0;
    for (size_t i = column; i < table->rows; i += table->columns) {
        const size_t columns = cli_columns(table->cells[i]);
        width = columns > width ? columns : width;
    }
    return width;
}

// Makes a column narrower, by `excess` at most. Returns what is left of that.
static size_t table_shrink(size_t *width, size_t least, size_t excess)
{
    const size_t room = *width > least ? *width - least : 0;
    const size_t cut = room < excess ? room : excess;
    *width -= cut;
    return excess - cut;
}

// A table that is too wide loses columns at the end, where texts are wrapped,
// then at the front, where longer names get a line of their own.
static void find_widths(const cli_table *table, size_t *widths)
{
    const size_t last = table->columns - 1;
    size_t width = strlen(table->indent) + 2 * last;
    for (size_t k = 0; k <= last; k++) {
        widths[k] = column_width(table, k);
        width += widths[k];
    }
    size_t excess = width > CLI_COLUMNS ? width - CLI_COLUMNS : 0;
    if (table->align[last] == 'l') {
        excess = table_shrink(&widths[last], TEXT_LEAST, excess);
    }
    if (last > 0 && table->align[0] == 'l') {
        (void)table_shrink(&widths[0], NAME_LEAST, excess);
    }
}

// Prints a cell that begins at a column, from `*column_inout` on. If it is
// wider than its column, it is the last on its line, and each of its lines has
// the spaces that it begins with. Returns whether the line goes on.
static bool table_print_cell(
    const char *cell, size_t begin, size_t width, size_t *column_inout,
    FILE *stream)
{
    const size_t columns = cli_columns(cell);
    const size_t before = columns > width ? strspn(cell, " ") : 0;
    (void)fprintf(stream, "%*s", (int)(begin + before - *column_inout), "");
    if (columns <= width) {
        (void)fputs(cell, stream);
        *column_inout = begin + columns;
        return true;
    }
    cli_wrap(cell + before, begin + before, stream);
    *column_inout = 0;
    return false;
}

static void print_row(
    const cli_table *table, size_t first, const size_t *widths, FILE *stream)
{
    size_t begin = strlen(table->indent), column = begin;
    bool open = true;
    (void)fputs(table->indent, stream);
    for (size_t k = 0; k < table->columns && first + k < table->rows; k++) {
        const char *const cell = table->cells[first + k];
        const size_t columns = cli_columns(cell);
        const bool pad = table->align[k] == 'r' && columns < widths[k];
        if (*cell != '\0') {
            open = table_print_cell(
                cell, begin + (pad ? widths[k] - columns : 0), widths[k],
                &column, stream);
        }
        begin += widths[k] + 2;
    }
    if (open) {
        (void)fputc('\n', stream);
    }
}

void cli_table_row(
    cli_table *table, const char *name, const char *value, const char *note)
{
    const bool fits = cli_columns(value) <= VALUE_MOST;
    cli_table_add(table, "%s", name);
    cli_table_add(table, "%s", fits ? value : "");
    cli_table_add(
        table, "%s%s%s", fits ? "" : value, fits || *note == '\0' ? "" : " ",
        note);
}

void cli_table_print(cli_table *table, FILE *stream)
{
    size_t widths[CLI_COLUMNS_MAX] = {0};
    find_widths(table, widths);
    for (size_t i = 0; i < table->rows; i += table->columns) {
        print_row(table, i, widths, stream);
    }
    cli_table_free(table);
}

size_t cli_table_width(const cli_table *table)
{
    size_t width = table->columns == 0 ? 0 : 2 * (table->columns - 1);
    for (size_t k = 0; k < table->columns; k++) {
        width += column_width(table, k);
    }
    return width;
}

void cli_table_free(cli_table *table)
{
    free(table->cells);
    *table = (cli_table){0};
}

// Copies `columns` columns of a text to `out`, as far as they fit there.
static size_t copy_columns(
    const char *text, size_t columns, char *out, size_t room)
{
    size_t len = 0;
    for (; *text != '\0' && len + 1 < room; text++) {
        const unsigned char byte = (unsigned char)*text;
        if ((byte & 0xc0) != 0x80 && columns-- == 0) {
            break;
        }
        out[len++] = (char)(byte < ' ' || byte == 0x7f ? '?' : byte);
    }
    out[len] = '\0';
    return len;
}

const char *cli_fitted(
    const char *text, size_t columns, char out[CLI_CELL_SIZE])
{
    const size_t all = cli_columns(text);
    if (all <= columns) {
        (void)copy_columns(text, all, out, CLI_CELL_SIZE);
        return out;
    }
    const size_t head = (columns - 2) / 3, tail = columns - 2 - head;
    size_t len = copy_columns(text, head, out, CLI_CELL_SIZE - 2);
    out[len++] = '.';
    out[len++] = '.';
    for (size_t skip = all - tail; *text != '\0'; text++) {
        if (((unsigned char)*text & 0xc0) != 0x80 && skip-- == 0) {
            break;
        }
    }
    (void)copy_columns(text, tail, out + len, CLI_CELL_SIZE - len);
    return out;
}

const char *cli_grouped(uint64_t number, char text[CLI_GROUPED_SIZE])
{
    char digits[CLI_GROUPED_SIZE];
    const int count = snprintf(digits, sizeof(digits), "%" PRIu64, number);
    char *end = text;
    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0) {
            *end++ = ',';
        }
        *end++ = digits[i];
    }
    *end = '\0';
    return text;
}

const char *cli_bytes(double bytes, char text[CLI_BYTES_SIZE])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;
    while (bytes >= 999.95 && unit < 5) {
        bytes /= 1000;
        unit++;
    }
    (void)snprintf(
        text, CLI_BYTES_SIZE, "%.*f %s", unit == 0 ? 0 : 1, bytes, units[unit]);
    return text;
}

double cli_break_even_mbit(double saved_bytes, double seconds)
{
    return saved_bytes > 0 && seconds > 0 ? 8e-6 * saved_bytes / seconds
                                          : (double)NAN;
}

cJSON *cli_json_text(const char *text)
{
    return text == NULL ? cJSON_CreateNull() : cJSON_CreateString(text);
}

cJSON *cli_json_words(const char *text, char separator)
{
    if (text == NULL) {
        return cJSON_CreateNull();
    }
    cJSON *const words = cJSON_CreateArray();
    while (*text != '\0') {
        char word[64];
        const char *const end = strchr(text, separator);
        const size_t len = end == NULL ? strlen(text) : (size_t)(end - text);
        (void)snprintf(word, sizeof(word), "%.*s", (int)len, text);
        cJSON_AddItemToArray(words, cJSON_CreateString(word));
        text += end == NULL ? len : len + 1;
    }
    return words;
}

int cli_json_print(cJSON *object, FILE *stream)
{
    char *const text = cJSON_Print(object);
    cJSON_Delete(object);
    if (text == NULL) {
        (void)fprintf(stderr, "laconic: no memory for the JSON\n");
        return CLI_FAILED;
    }
    (void)fprintf(stream, "%s\n", text);
    cJSON_free(text);
    return CLI_GOOD;
}
