// SPDX-License-Identifier: MIT
// Parses the text format of LIBSVM. A first pass counts lines and colons, which
// bound the sizes of the arrays that the second pass fills.
#include "data/libsvm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 63, SHOWN_MAX = 24 };

// The position of the parser.
typedef struct cursor {
    const char *name;
    const char *at, *end;
    const char *word; // the start of the current word
    size_t line;
} cursor;

// Fails with the wrong word, cut where it is long or not printable.
static lac_status fail_at_word(const cursor *c, const char *what)
{
    int len = 0;
    while (c->word + len < c->end && len < SHOWN_MAX && c->word[len] > ' ' &&
           c->word[len] <= '~') {
        len++;
    }
    return lac_fail(
        LAC_ERR_CORRUPT, "%s: line %zu has \"%.*s\", expected %s", c->name,
        c->line, len, c->word, what);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(cursor *c)
{
    while (c->at < c->end && is_blank(*c->at)) {
        c->at++;
    }
}

static bool at_line_end(const cursor *c)
{
    return c->at == c->end || *c->at == '\n' || *c->at == '#';
}

static void next_line(cursor *c)
{
    const size_t left = (size_t)(c->end - c->at);
    const char *const feed = left == 0 ? NULL : memchr(c->at, '\n', left);
    c->at = feed == NULL ? c->end : feed + 1;
    c->line++;
}

// Reads a finite number that ends before a blank, a colon or the end of the
// line.
static bool libsvm_parse_number(cursor *c, double *out)
{
    char text[NUMBER_MAX + 1];
    size_t len = 0;
    while (c->at + len < c->end && len < NUMBER_MAX && !is_blank(c->at[len]) &&
           strchr(":\n#", c->at[len]) == NULL) {
        text[len] = c->at[len];
        len++;
    }
    text[len] = '\0';
    char *end = NULL;
    *out = strtod(text, &end);
    c->at += len;
    return len > 0 && end == text + len && isfinite(*out);
}

static lac_status libsvm_parse_value(cursor *c, data_table *t)
{
    double index = 0, value = 0;
    c->word = c->at;
    if (!libsvm_parse_number(c, &index) || index < 1 ||
        index > DATA_TABLE_WIDTH_MAX || index != floor(index) ||
        c->at == c->end || *c->at != ':') {
        return fail_at_word(c, "index:value with an index from 1 to 16777216");
    }
    c->at++;
    const uint32_t column = (uint32_t)index - 1;
    if (!libsvm_parse_number(c, &value) || !isfinite((float)value)) {
        return fail_at_word(c, "a finite number after the colon");
    }
    if (t->values > t->start[t->count] && t->column[t->values - 1] >= column) {
        return fail_at_word(c, "ascending indices");
    }
    t->column[t->values] = column;
    t->value[t->values++] = (float)value;
    t->width = column >= t->width ? column + 1 : t->width;
    return LAC_OK;
}

static lac_status parse_line(cursor *c, data_table *t)
{
    skip_blanks(c);
    if (at_line_end(c)) {
        return LAC_OK;
    }
    c->word = c->at;
    if (!libsvm_parse_number(c, &t->label[t->count])) {
        return fail_at_word(c, "a number as label");
    }
    t->start[t->count] = t->values;
    for (skip_blanks(c); !at_line_end(c); skip_blanks(c)) {
        LAC_TRY(libsvm_parse_value(c, t));
    }
    t->count++;
    t->start[t->count] = t->values;
    return LAC_OK;
}

static size_t count_bytes(const data_bytes *bytes, uint8_t which)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes->len; i++) {
        count += bytes->data[i] == which;
    }
    return count;
}

static lac_status parse_lines(const data_bytes *bytes, data_table *t)
{
    const char *const text = (const char *)bytes->data;
    cursor c = {bytes->name, text, text + bytes->len, text, 1};
    while (c.at < c.end) {
        LAC_TRY(parse_line(&c, t));
        next_line(&c);
    }
    if (t->count == 0) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: has no examples, expected one per line",
            bytes->name);
    }
    return LAC_OK;
}

lac_status data_libsvm_parse(const data_bytes *bytes, data_table *out)
{
    *out = (data_table){0};
    const size_t lines = count_bytes(bytes, '\n') + 1;
    const size_t values = count_bytes(bytes, ':') + 1;
    out->label = malloc(lines * sizeof(*out->label));
    out->start = malloc((lines + 1) * sizeof(*out->start));
    out->column = malloc(values * sizeof(*out->column));
    out->value = malloc(values * sizeof(*out->value));
    lac_status status = LAC_OK;
    if (out->label == NULL || out->start == NULL || out->column == NULL ||
        out->value == NULL) {
        status = data_no_memory(bytes->name, bytes->len);
    } else {
        out->start[0] = 0;
        status = parse_lines(bytes, out);
    }
    if (status != LAC_OK) {
        data_table_free(out);
    }
    return status;
}

void data_table_free(data_table *table)
{
    free(table->label);
    free(table->start);
    free(table->column);
    free(table->value);
    *table = (data_table){0};
}
