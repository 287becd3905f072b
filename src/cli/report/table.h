// SPDX-License-Identifier: MIT
// The output of commands: aligned tables for people, one JSON object for
// programs.
#ifndef LACONIC_CLI_REPORT_REPORT_H
#define LACONIC_CLI_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

enum { CLI_COLUMNS_MAX = 12, CLI_CELL_SIZE = 160 };

// Rows of cells, printed when all widths are known.
typedef struct cli_table {
    const char *align;  // a character per column: 'l' left, 'r' right
    const char *indent; // before every row; NULL for none
    size_t columns;
    size_t rows, room;
    char (*cells)[CLI_CELL_SIZE];
} cli_table;

// cli_table_make returns an empty table with a column for each character of
// `align`, which must outlive it.
cli_table cli_table_make(const char *align, const char *indent);

// cli_table_add formats the next cell, in rows from left to right, and
// truncates it to CLI_CELL_SIZE - 1 bytes.
void cli_table_add(cli_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// cli_table_row adds a row to a table of three columns: name, value and note. A
// long value, such as a spec with many settings, stands before the note.
void cli_table_row(
    cli_table *table, const char *name, const char *value, const char *note);

// cli_table_print prints the table with two spaces between columns and without
// trailing spaces, and releases it. If it is wider than CLI_COLUMNS, texts in a
// last column that is left-aligned are wrapped, then long names in the first
// column get lines of their own.
void cli_table_print(cli_table *table, FILE *stream);

// cli_fitted writes a text of any bytes in at most `columns` columns, at least
// 4. A longer one has .. in place of its middle, since paths differ at either
// end. Control characters become ?.
const char *cli_fitted(
    const char *text, size_t columns, char out[CLI_CELL_SIZE]);

// cli_table_width returns the columns of the longest row without the indent.
size_t cli_table_width(const cli_table *table);

// cli_table_free releases a table that is not printed.
void cli_table_free(cli_table *table);

// cli_grouped writes `number` with a comma between groups of three digits.
enum { CLI_GROUPED_SIZE = 32 };
const char *cli_grouped(uint64_t number, char text[CLI_GROUPED_SIZE]);

// cli_bytes writes a number of bytes for people, "12.3 MB". Units are powers of
// 1000, as the speeds of links and of memory are.
enum { CLI_BYTES_SIZE = 32 };
const char *cli_bytes(double bytes, char text[CLI_BYTES_SIZE]);

// cli_break_even_mbit returns the link speed, in Mbit/s, at which sending
// `saved_bytes` takes `seconds`: below it compression saves time. Returns NaN
// if nothing is saved or the time is 0.
double cli_break_even_mbit(double saved_bytes, double seconds);

// cli_json_print prints `object` and a line feed, and releases it. Numbers that
// are not finite are printed as null. Returns an exit code.
int cli_json_print(cJSON *object, FILE *stream);

// cli_json_text returns a new string, or null if `text` is NULL.
cJSON *cli_json_text(const char *text);

// cli_json_words returns an array of the words of `text`, which `separator`
// divides, or null if `text` is NULL.
cJSON *cli_json_words(const char *text, char separator);

#endif
