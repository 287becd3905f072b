// SPDX-License-Identifier: MIT
// What the commands print: aligned tables for people, one JSON object for
// programs.
#ifndef LACONIC_CLI_REPORT_REPORT_H
#define LACONIC_CLI_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

enum { CLI_COLUMNS_MAX = 12, CLI_CELL_SIZE = 160 };

// Rows of cells, printed once all widths are known. Starts as {0}.
typedef struct cli_table {
    const char *align;  // a letter a column: 'l' left, 'r' right
    const char *indent; // before every row; NULL for none
    size_t columns;
    size_t rows, room;
    char (*cells)[CLI_CELL_SIZE];
} cli_table;

// cli_table_make returns an empty table with a column for each letter of
// `align`, which must outlive it.
cli_table cli_table_make(const char *align, const char *indent);

// cli_table_add formats the next cell, in rows from left to right. A cell that
// is too long is cut.
void cli_table_add(cli_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// cli_table_row adds a row of three columns: a name, its value and a note.
void cli_table_row(
    cli_table *table, const char *name, const char *value, const char *note);

// cli_table_print prints the table with two blanks between columns, none at
// the end of a line, and releases it.
void cli_table_print(cli_table *table, FILE *stream);

// cli_grouped writes `number` with commas between groups of three digits.
enum { CLI_GROUPED_SIZE = 32 };
const char *cli_grouped(uint64_t number, char text[CLI_GROUPED_SIZE]);

// cli_bytes writes a number of bytes for people, "12.3 MB". Units are powers of
// 1000, as the speeds of links and of memory are.
enum { CLI_BYTES_SIZE = 32 };
const char *cli_bytes(double bytes, char text[CLI_BYTES_SIZE]);

// cli_json_print prints `object` and a line feed, and releases it. A number
// that is not finite is printed as null. Returns an exit code.
int cli_json_print(cJSON *object, FILE *stream);

// cli_processor tells the name of the processor, as Linux does, or "an unknown
// processor".
enum { CLI_PROCESSOR_SIZE = 128 };
void cli_processor(char text[CLI_PROCESSOR_SIZE]);

#endif
