// SPDX-License-Identifier: MIT
// --sweep of `laconic average`. The catalog decides to which of the specs the
// setting belongs: the algorithm's, or one of the parts "A+B" of the
// compressor's. The library checks the values, as part of the new specs.
#include "cli/average/sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/catalog.h"
#include "cli/options/spec.h"

enum { PARTS_MAX = 8, RANGE_COUNT = 10, LIST_MAX = 100, NAMES_SIZE = 256 };

// A plug-in in one of the specs.
typedef struct sweep_part {
    const char *spec; // the whole spec
    size_t at, len;   // of this part
    cli_item item;
} sweep_part;

// The place of the setting.
typedef struct sweep_place {
    const sweep_part *part;
    const lac_param *param;
    bool first; // it may be written without its name
} sweep_place;

// Adds the parts of a spec, which `separator` divides; returns their number.
static size_t sweep_add_parts(
    const char *kind, const char *spec, char separator, sweep_part *parts,
    size_t count)
{
    size_t at = 0;
    while (spec[at] != '\0' && count < PARTS_MAX) {
        const size_t len = cli_spec_part(spec + at, separator);
        sweep_part *const p = &parts[count];
        *p = (sweep_part){.spec = spec, .at = at, .len = len};
        count += cli_item_of(kind, spec + at, &p->item);
        at += len + (spec[at + len] != '\0');
    }
    return count;
}

static bool is_numeric(const lac_param *param)
{
    return param->type == LAC_PARAM_U32 || param->type == LAC_PARAM_F64 ||
           param->type == LAC_PARAM_F64_OR_WORD;
}

// Whether key[0..len) is a name of a setting, which may have several.
static bool is_called(const lac_param *param, const char *key, size_t len)
{
    const char *aliases = param->aliases == NULL ? "" : param->aliases;
    if (strlen(param->name) == len && memcmp(param->name, key, len) == 0) {
        return true;
    }
    while (*aliases != '\0') {
        const size_t alias_len = strcspn(aliases, " ");
        if (alias_len == len && memcmp(aliases, key, len) == 0) {
            return true;
        }
        aliases += alias_len + (aliases[alias_len] == ' ');
    }
    return false;
}

static lac_status no_such_setting(
    const sweep_part *parts, size_t count, const char *key, size_t len)
{
    const lac_param *param;
    char names[NAMES_SIZE] = "";
    size_t used = 0;
    for (size_t p = 0; p < count; p++) {
        for (size_t i = 0; (param = cli_item_param(&parts[p].item, i)); i++) {
            if (is_numeric(param) && used < sizeof(names)) {
                used += (size_t)snprintf(
                    names + used, sizeof(names) - used, "%s%s",
                    used == 0 ? "" : ", ", param->name);
            }
        }
    }
    if (used == 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--sweep: neither algorithm nor compressor has a setting that is "
            "a number, expected %.*s",
            (int)len, key);
    }
    return lac_fail(
        LAC_ERR_INVALID,
        "--sweep: no setting with a number is named \"%.*s\", expected %s",
        (int)len, key, names);
}

// Returns in how many parts there is such a setting; `*out` is the last.
static size_t find_places(
    const sweep_part *parts, size_t count, const char *key, size_t len,
    sweep_place *out)
{
    const lac_param *param;
    size_t found = 0;
    for (size_t p = 0; p < count; p++) {
        for (size_t i = 0; (param = cli_item_param(&parts[p].item, i)); i++) {
            if (is_numeric(param) && is_called(param, key, len)) {
                *out = (sweep_place){&parts[p], param, i == 0};
                found++;
            }
        }
    }
    return found;
}

// Returns a spec in which the setting has this value, or NULL.
static char *spec_with(const sweep_place *place, const char *value)
{
    const sweep_part *const p = place->part;
    char *text = NULL;
    size_t text_len = 0, at = 0;
    char *const part = strndup(p->spec + p->at, p->len);
    FILE *const out = open_memstream(&text, &text_len);
    if (part != NULL && out != NULL) {
        cli_spec_item item;
        char separator = ':';
        (void)fprintf(
            out, "%.*s%.*s", (int)p->at, p->spec, (int)strcspn(part, ":"),
            part);
        while (cli_spec_next(part, &at, &item)) {
            const bool replaced =
                item.key_len == 0
                    ? place->first && separator == ':'
                    : is_called(place->param, item.key, item.key_len);
            if (!replaced) {
                const size_t len =
                    (size_t)(item.value - item.key) + item.value_len;
                (void)fprintf(out, "%c%.*s", separator, (int)len, item.key);
                separator = ',';
            }
        }
        (void)fprintf(
            out, "%c%s=%s%s", separator, place->param->name, value,
            p->spec + p->at + p->len);
    }
    free(part);
    if (out == NULL || fclose(out) != 0 || part == NULL) {
        free(text);
        return NULL;
    }
    return text;
}

static bool sweep_number(const char *text, size_t len, double *out)
{
    char copy[CLI_SWEEP_VALUE_SIZE], *end = NULL;
    if (len == 0 || len >= sizeof(copy) ||
        strspn(text, "+-.0123456789eE") < len) {
        return false;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    *out = strtod(copy, &end);
    return *end == '\0' && isfinite(*out);
}

static void sweep_add_value(
    cli_sweep *sweep, const char *text, size_t len, double number)
{
    cli_sweep_point *const p = &sweep->points[sweep->count++];
    memcpy(p->value, text, len);
    p->value[len] = '\0';
    p->number = number;
    (void)snprintf(
        p->progress, sizeof(p->progress), "rounds with %s=%s", sweep->setting,
        p->value);
}

// The ends keep their digits, unless they must be whole.
static void add_range(cli_sweep *sweep, double from, double to, bool whole)
{
    double last = -(double)INFINITY;
    for (int i = 0; i < RANGE_COUNT; i++) {
        const bool end = i == 0 || i == RANGE_COUNT - 1;
        const double exact =
            i == RANGE_COUNT - 1
                ? to
                : from * pow(to / from, i / (RANGE_COUNT - 1.0));
        char text[CLI_SWEEP_VALUE_SIZE];
        const int len = snprintf(
            text, sizeof(text),
            whole ? "%.0f"
            : end ? "%.15g"
                  : "%.4g",
            exact);
        const double number = strtod(text, NULL);
        if (number > last && (end || number < to)) {
            sweep_add_value(sweep, text, (size_t)len, number);
            last = number;
        }
    }
}

// Reads "from..to" or "a,b,c". Returns false if it is neither.
static bool read_values(cli_sweep *sweep, const char *text, bool whole)
{
    const char *const dots = strstr(text, "..");
    double from = 0, to = 0;
    if (dots != NULL) {
        if (!sweep_number(text, (size_t)(dots - text), &from) ||
            !sweep_number(dots + 2, strlen(dots + 2), &to) || !(from > 0) ||
            !(to > from) || (whole && to > 1e15)) {
            return false;
        }
        add_range(sweep, from, to, whole);
        return true;
    }
    while (sweep->count < LIST_MAX) {
        const size_t len = strcspn(text, ",");
        if (!sweep_number(text, len, &from)) {
            return false;
        }
        sweep_add_value(sweep, text, len, from);
        if (text[len] == '\0') {
            return true;
        }
        text += len + 1;
    }
    return false;
}

static lac_status write_specs(
    const sweep_place *place, const char *algorithm, const char *compressor,
    cli_sweep_point *p)
{
    const bool of_algorithm = place->part->spec == algorithm;
    p->algorithm =
        of_algorithm ? spec_with(place, p->value) : strdup(algorithm);
    bool good = p->algorithm != NULL;
    if (compressor != NULL) {
        p->compressor =
            of_algorithm ? strdup(compressor) : spec_with(place, p->value);
        good = good && p->compressor != NULL;
    }
    return good ? LAC_OK
                : lac_fail(LAC_ERR_NOMEM, "no memory for the specs of a sweep");
}

// Reads the values of the setting and writes the specs with them.
static lac_status read_points(
    cli_sweep *sweep, const char *text, const sweep_place *place,
    const char *algorithm, const char *compressor)
{
    sweep->setting = place->param->name;
    sweep->points = calloc(LIST_MAX, sizeof(*sweep->points));
    if (sweep->points == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for the values of a sweep");
    }
    if (!read_values(sweep, text, place->param->type == LAC_PARAM_U32)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--sweep: %s is \"%s\", expected FROM..TO with 0 < FROM < TO, or "
            "at most %d numbers A,B,C",
            sweep->setting, text, LIST_MAX);
    }
    for (size_t i = 0; i < sweep->count; i++) {
        LAC_TRY(write_specs(place, algorithm, compressor, &sweep->points[i]));
    }
    sweep->general = (cli_sweep_point){.value = "..."};
    return write_specs(place, algorithm, compressor, &sweep->general);
}

lac_status cli_sweep_open(
    cli_sweep *out, const char *text, const char *algorithm,
    const char *compressor)
{
    sweep_part parts[PARTS_MAX];
    sweep_place place = {0};
    const size_t len = strcspn(text, "=");
    *out = (cli_sweep){0};
    if (text[len] == '\0' || len == 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--sweep is \"%s\", expected SETTING=FROM..TO or SETTING=A,B,C",
            text);
    }
    size_t count = sweep_add_parts("algorithms", algorithm, '\0', parts, 0);
    if (compressor != NULL) {
        count = sweep_add_parts("compressors", compressor, '+', parts, count);
    }
    const size_t found = find_places(parts, count, text, len, &place);
    if (found > 1) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--sweep: %zu parts of the specs have the setting %.*s, expected "
            "one",
            found, (int)len, text);
    }
    return place.part == NULL
               ? no_such_setting(parts, count, text, len)
               : read_points(
                     out, text + len + 1, &place, algorithm, compressor);
}

static void free_specs(cli_sweep_point *p)
{
    free(p->algorithm);
    free(p->compressor);
}

void cli_sweep_close(cli_sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++) {
        free_specs(&sweep->points[i]);
    }
    free_specs(&sweep->general);
    free(sweep->points);
    *sweep = (cli_sweep){0};
}
