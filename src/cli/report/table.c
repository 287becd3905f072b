// SPDX-License-Identifier: MIT
// Aligned tables, numbers with units, and JSON.
#include "cli/report/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/command.h"

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
        const size_t len = strlen(table->cells[i]);
        width = len > width ? len : width;
    }
    return width;
}

static void print_row(
    const cli_table *table, size_t first, const size_t *widths, FILE *stream)
{
    size_t blanks = 0; // printed only before the next text
    (void)fputs(table->indent, stream);
    for (size_t k = 0; k < table->columns && first + k < table->rows; k++) {
        const char *const cell = table->cells[first + k];
        const size_t pad = widths[k] - strlen(cell);
        const size_t before = table->align[k] == 'r' ? pad : 0;
        if (*cell != '\0') {
            (void)fprintf(stream, "%*s%s", (int)(blanks + before), "", cell);
            blanks = 0;
        } else {
            blanks += before;
        }
        blanks += pad - before + 2;
    }
    (void)fputc('\n', stream);
}

void cli_table_row(
    cli_table *table, const char *name, const char *value, const char *note)
{
    cli_table_add(table, "%s", name);
    cli_table_add(table, "%s", value);
    cli_table_add(table, "%s", note);
}

void cli_table_print(cli_table *table, FILE *stream)
{
    size_t widths[CLI_COLUMNS_MAX] = {0};
    for (size_t k = 0; k < table->columns; k++) {
        widths[k] = column_width(table, k);
    }
    for (size_t i = 0; i < table->rows; i += table->columns) {
        print_row(table, i, widths, stream);
    }
    free(table->cells);
    *table = (cli_table){0};
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

void cli_processor(char text[CLI_PROCESSOR_SIZE])
{
    char line[256];
    FILE *const info = fopen("/proc/cpuinfo", "re");
    (void)snprintf(text, CLI_PROCESSOR_SIZE, "an unknown processor");
    while (info != NULL && fgets(line, sizeof(line), info) != NULL) {
        const char *const colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            const char *const name = colon + 1 + strspn(colon + 1, " \t");
            (void)snprintf(
                text, CLI_PROCESSOR_SIZE, "%.*s", (int)strcspn(name, "\n"),
                name);
            break;
        }
    }
    if (info != NULL) {
        (void)fclose(info);
    }
}
