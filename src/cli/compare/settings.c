// SPDX-License-Identifier: MIT
// Compares the settings of manifests. A number may be written as such or as
// text, depending on the version that trained.
#include "cli/compare/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/train/config.h"

bool compare_setting_counts(const char *name)
{
    static const char *const ignored[] = {
        "seed", "data-dir", "timeout", "checkpoint-every"};
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
        if (strcmp(name, ignored[i]) == 0) {
            return false;
        }
    }
    return !cli_config_is_call(name);
}

// Manifests have 0.1 as the text 0.10000000000000001.
static void shorten_number(char text[COMPARE_SETTING_SIZE])
{
    char *end = NULL;
    const double value = strtod(text, &end);
    if (end != text && *end == '\0' && isfinite(value)) {
        (void)snprintf(text, COMPARE_SETTING_SIZE, "%.15g", value);
    }
}

const char *compare_setting(
    const cli_run *run, const char *name, char text[COMPARE_SETTING_SIZE])
{
    const cJSON *const item =
        cJSON_GetObjectItemCaseSensitive(run->settings, name);
    char word[CLI_OPTION_TEXT_SIZE];
    const char *const found =
        cJSON_IsNull(item) ? "" : cli_config_text(item, word);
    if (found == NULL || (run->gradient && strcmp(name, "topology") == 0)) {
        return NULL;
    }
    (void)snprintf(text, COMPARE_SETTING_SIZE, "%s", found);
    shorten_number(text);
    return text;
}

bool compare_setting_same(const cli_run *a, const cli_run *b, const char *name)
{
    char of_a[COMPARE_SETTING_SIZE], of_b[COMPARE_SETTING_SIZE];
    return compare_setting(a, name, of_a) == NULL ||
           compare_setting(b, name, of_b) == NULL || strcmp(of_a, of_b) == 0;
}

bool compare_settings_same(const cli_run *a, const cli_run *b)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, a->settings)
    {
        if (compare_setting_counts(item->string) &&
            !compare_setting_same(a, b, item->string)) {
            return false;
        }
    }
    return true;
}

static bool has_values_that_differ(const compare_runs *c, const char *name)
{
    char text[COMPARE_SETTING_SIZE];
    const cli_run *first = NULL; // of those that have it
    for (size_t i = 0; i < c->count; i++) {
        const cli_run *const run = &c->runs[i];
        if (first != NULL && !compare_setting_same(first, run, name)) {
            return true;
        }
        if (first == NULL && compare_setting(run, name, text) != NULL) {
            first = run;
        }
    }
    return false;
}

bool compare_setting_differs(const compare_runs *c, const char *name)
{
    for (const char *const *at = c->differing; *at != NULL; at++) {
        if (strcmp(*at, name) == 0) {
            return true;
        }
    }
    return false;
}

// Adds the settings of one run that differ and that no run before it has.
static void find_of_run(compare_runs *c, const cli_run *run)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, run->settings)
    {
        if (compare_setting_counts(item->string) &&
            !compare_setting_differs(c, item->string) &&
            has_values_that_differ(c, item->string)) {
            c->differing[c->differing_count++] = item->string;
        }
    }
}

lac_status compare_settings_find(compare_runs *c)
{
    size_t most = 0;
    for (size_t i = 0; i < c->count; i++) {
        most += (size_t)cJSON_GetArraySize(c->runs[i].settings);
    }
    c->differing = calloc(most + 1, sizeof(*c->differing));
    if (c->differing == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for %zu settings", most);
    }
    for (size_t i = 0; i < c->count; i++) {
        find_of_run(c, &c->runs[i]);
    }
    return LAC_OK;
}

// Algorithms and compressors are known by their values.
static bool is_bare(const char *name)
{
    return strcmp(name, "algorithm") == 0 || strcmp(name, "compressor") == 0;
}

// A flag is known by its name.
static void add_difference(
    const char *name, const char *value, char *text, size_t room)
{
    const bool bare = is_bare(name);
    const bool flag = strcmp(value, "yes") == 0;
    if (*value == '\0') {
        return;
    }
    (void)snprintf(
        text, room, "%s%s%s", bare ? "" : name, bare || flag ? "" : "=",
        flag ? "" : value);
}

// Whether the first run has this value too. Algorithm and compressor are the
// names by which a run is known, so they are never left out.
static bool is_as_first(
    const compare_runs *c, const cli_run *run, const char *name,
    const char *value)
{
    char first[COMPARE_SETTING_SIZE];
    return run != c->runs && !is_bare(name) &&
           compare_setting(c->runs, name, first) != NULL &&
           strcmp(first, value) == 0;
}

const char *compare_differences(
    const compare_runs *c, const cli_run *run,
    char text[COMPARE_DIFFERENCES_SIZE])
{
    size_t len = 0;
    *text = '\0';
    for (size_t i = 0; i < c->differing_count; i++) {
        char value[COMPARE_SETTING_SIZE];
        const char *const name = c->differing[i];
        // Two bytes for a space and the end.
        if (len + 2 >= COMPARE_DIFFERENCES_SIZE ||
            compare_setting(run, name, value) == NULL ||
            is_as_first(c, run, name, value)) {
            continue;
        }
        char *const next = text + len + (len > 0);
        *next = '\0';
        add_difference(
            name, value, next, COMPARE_DIFFERENCES_SIZE - len - (len > 0));
        if (*next != '\0') {
            if (len > 0) {
                text[len] = ' ';
            }
            len = strlen(text);
        }
    }
    return text;
}
