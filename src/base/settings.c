// SPDX-License-Identifier: MIT
// Parses "key=value,key=value" into a plug-in's state by its table of settings,
// for the plug-ins of the library and of programs. Defaults are texts and are
// parsed like those of a user, so a table cannot have a default that a user
// could not give.
#include "base/settings.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

enum {
    NUMBER_MAX = 63,
    SETTINGS_MAX = 64,
    KEY_MAX = 31,  // of a name to compare
    EDITS_MAX = 2, // from a name that may have been meant
};

// A part of a text, not ended by a NUL.
typedef struct span {
    const char *text;
    size_t len;
} span;

// The destination of values: the fields, and room for strings.
typedef struct target {
    const char *plugin; // the name for messages
    unsigned char *state;
    char **texts;
} target;

static bool same(span a, const char *word, size_t len)
{
    return a.len == len && memcmp(a.text, word, len) == 0;
}

// Finds `word` among `words` and returns its position, or -1.
static int32_t position(const char *words, char separator, span word)
{
    int32_t at = 0;
    while (words != NULL) {
        const char *const stop = strchr(words, separator);
        const size_t len =
            stop == NULL ? strlen(words) : (size_t)(stop - words);
        if (word.len > 0 && same(word, words, len)) {
            return at;
        }
        words = stop == NULL ? NULL : stop + 1;
        at++;
    }
    return -1;
}

// strtod expects the decimal point of the host program's locale, and no other
// function of the C library rounds as well.
static void with_local_point(span value, char *out, size_t size)
{
    const char *const point = localeconv()->decimal_point;
    size_t used = 0;
    for (size_t i = 0; i < value.len && used + 1 < size; i++) {
        if (value.text[i] != '.') {
            out[used++] = value.text[i];
            continue;
        }
        for (const char *c = point; *c != '\0' && used + 1 < size; c++) {
            out[used++] = *c;
        }
    }
    out[used] = '\0';
}

static bool settings_parse_number(span value, double *out)
{
    if (value.len == 0 || value.len > NUMBER_MAX ||
        strspn(value.text, "+-.0123456789eE") < value.len) {
        return false;
    }
    char text[2 * NUMBER_MAX];
    with_local_point(value, text, sizeof(text));
    char *end;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

static bool in_range(const lac_param *param, double number)
{
    return number <= param->max &&
           (param->above_min ? number > param->min : number >= param->min);
}

static lac_status wrong_value(
    const target *to, const lac_param *param, span value)
{
    const char *const whole =
        param->type == LAC_PARAM_U32 ? "a whole number" : "a number";
    const char *const from = param->above_min ? "above" : "from";
    const int len = (int)value.len;
    if (param->type == LAC_PARAM_BOOL || param->type == LAC_PARAM_CHOICE) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %s is \"%.*s\", expected one of %s",
            to->plugin, param->name, len, value.text,
            param->type == LAC_PARAM_BOOL ? "yes|no" : param->choices);
    }
    if (param->choices != NULL) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: %s is \"%.*s\", expected %s or a number %s %g to %g",
            to->plugin, param->name, len, value.text, param->choices, from,
            param->min, param->max);
    }
    return lac_fail(
        LAC_ERR_INVALID, "%s: %s is \"%.*s\", expected %s %s %.17g to %.17g",
        to->plugin, param->name, len, value.text, whole, from, param->min,
        param->max);
}

static void store_value(
    const target *to, const lac_param *param, const void *value, size_t size)
{
    memcpy(to->state + param->offset, value, size);
}

static const char *keep_text(const target *to, span value)
{
    char *const text = *to->texts;
    memcpy(text, value.text, value.len);
    text[value.len] = '\0';
    *to->texts += value.len + 1;
    return text;
}

static bool settings_parse_value(
    const target *to, const lac_param *param, span value)
{
    double number;
    const bool is_number =
        settings_parse_number(value, &number) && in_range(param, number);
    number = is_number ? number : 0;
    const int32_t word = position(
        param->type == LAC_PARAM_BOOL ? "no|yes" : param->choices, '|', value);
    switch (param->type) {
    case LAC_PARAM_BOOL:
        store_value(to, param, &(bool){word == 1}, sizeof(bool));
        return word >= 0;
    case LAC_PARAM_U32:
        store_value(to, param, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
        return is_number && floor(number) == number;
    case LAC_PARAM_F64:
        store_value(to, param, &number, sizeof(number));
        return is_number;
    case LAC_PARAM_CHOICE:
        store_value(to, param, &(uint32_t){(uint32_t)word}, sizeof(uint32_t));
        return word >= 0;
    case LAC_PARAM_F64_OR_WORD:
        store_value(
            to, param, &(lac_number_or_word){number, word},
            sizeof(lac_number_or_word));
        return word >= 0 || is_number;
    case LAC_PARAM_TEXT:
    case LAC_PARAM_SPEC:
        store_value(
            to, param, &(const char *){keep_text(to, value)},
            sizeof(const char *));
        return true;
    }
    return false;
}

static const lac_param *find_param(
    const lac_plugin *plugin, span key, size_t *index_out)
{
    const lac_param *param;
    for (size_t i = 0; (param = laci_param_at(plugin, i)) != NULL; i++) {
        if (same(key, param->name, strlen(param->name)) ||
            position(param->aliases, ' ', key) >= 0) {
            *index_out = i;
            return param;
        }
    }
    return NULL;
}

// Texts and specs may be in parentheses, which must match.
static span without_parentheses(const lac_param *param, span value)
{
    size_t depth = 0;
    if ((param->type != LAC_PARAM_TEXT && param->type != LAC_PARAM_SPEC) ||
        value.len < 2 || value.text[0] != '(') {
        return value;
    }
    for (size_t i = 0; i < value.len; i++) {
        depth += value.text[i] == '(';
        depth -= value.text[i] == ')';
        if (depth == 0) {
            return i + 1 == value.len ? (span){value.text + 1, value.len - 2}
                                      : value;
        }
    }
    return value;
}

static uint8_t fewer_edits(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

// The Levenshtein distance, in which swapped neighbours count as one edit.
static uint8_t settings_edits(span a, const char *b, size_t b_len)
{
    uint8_t table[KEY_MAX + 1][KEY_MAX + 1];
    if (a.len > KEY_MAX || b_len > KEY_MAX) {
        return UINT8_MAX;
    }
    for (size_t i = 0; i <= a.len; i++) {
        for (size_t j = 0; j <= b_len; j++) {
            uint8_t *const edits = &table[i][j];
            *edits = (uint8_t)(i + j);
            if (i == 0 || j == 0) {
                continue;
            }
            const bool same_here = a.text[i - 1] == b[j - 1];
            const uint8_t one = fewer_edits(table[i - 1][j], table[i][j - 1]);
            *edits = fewer_edits(
                (uint8_t)(one + 1),
                (uint8_t)(table[i - 1][j - 1] + !same_here));
            if (i > 1 && j > 1 && a.text[i - 1] == b[j - 2] &&
                a.text[i - 2] == b[j - 1]) {
                *edits =
                    fewer_edits(*edits, (uint8_t)(table[i - 2][j - 2] + 1));
            }
        }
    }
    return table[a.len][b_len];
}

// Returns the setting whose name is closest to a key, NULL if none is close: at
// most two edits, and at most half of the characters.
static const char *closest_setting(const lac_plugin *plugin, span key)
{
    const lac_param *param;
    const char *closest = NULL;
    size_t least = EDITS_MAX + 1;
    for (size_t i = 0; (param = laci_param_at(plugin, i)) != NULL; i++) {
        const size_t len = strlen(param->name);
        const size_t edits = settings_edits(key, param->name, len);
        if (edits < least && 2 * edits <= len) {
            closest = param->name;
            least = edits;
        }
    }
    return closest;
}

static lac_status unknown_key(const laci_spec *spec, span key)
{
    const char *const closest = closest_setting(spec->plugin, key);
    const lac_param *param;
    char known[256] = "";
    size_t used = 0;
    for (size_t i = 0; (param = laci_param_at(spec->plugin, i)) != NULL; i++) {
        const size_t len = strlen(param->name);
        if (used + len + 3 <= sizeof(known)) {
            memcpy(known + used, ", ", 2);
            memcpy(known + used + 2, param->name, len + 1);
            used += len + 2;
        }
    }
    if (used == 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: \"%.*s\" was given, but it has no settings",
            spec->name, (int)key.len, key.text);
    }
    return lac_fail(
        LAC_ERR_INVALID, "%s: no setting is named \"%.*s\", expected %s%s%s%s",
        spec->name, (int)key.len, key.text, known + 2,
        closest == NULL ? "" : "; did you mean ",
        closest == NULL ? "" : closest, closest == NULL ? "" : "?");
}

// Reads one "key=value", or the first without its key. `seen` has a bit for
// each setting that was read before.
static lac_status read_item(
    const laci_spec *spec, const target *to, span item, bool first,
    uint64_t *seen)
{
    const char *const equals = memchr(item.text, '=', item.len);
    const char *const nested = memchr(item.text, '(', item.len);
    const bool named = equals != NULL && (nested == NULL || equals < nested);
    span key = {item.text, named ? (size_t)(equals - item.text) : item.len};
    span value = item;
    size_t index = 0;
    const lac_param *param = NULL;
    if (named) {
        value = (span){equals + 1, item.len - key.len - 1};
        param = find_param(spec->plugin, key, &index);
    } else if (first) {
        param = laci_param_at(spec->plugin, 0);
    } else if (find_param(spec->plugin, key, &index) != NULL) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %.*s has no value, expected %.*s=VALUE",
            spec->name, (int)key.len, key.text, (int)key.len, key.text);
    }
    if (param == NULL) {
        return unknown_key(spec, key);
    }
    if (*seen >> index & 1) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %s is given twice", spec->name, param->name);
    }
    *seen |= (uint64_t)1 << index;
    value = without_parentheses(param, value);
    return settings_parse_value(to, param, value)
               ? LAC_OK
               : wrong_value(to, param, value);
}

static lac_status read_items(
    const laci_spec *spec, const target *to, span items)
{
    uint64_t seen = 0;
    bool first = true;
    while (items.len > 0) {
        size_t len = 0;
        LAC_TRY(laci_spec_part(items.text, items.len, ',', &len));
        LAC_TRY(read_item(spec, to, (span){items.text, len}, first, &seen));
        if (len + 1 == items.len) {
            return lac_fail(
                LAC_ERR_INVALID, "%s: nothing follows the last comma",
                spec->name);
        }
        const size_t step = len < items.len ? len + 1 : len;
        items = (span){items.text + step, items.len - step};
        first = false;
    }
    return LAC_OK;
}

const lac_param *laci_param_at(const lac_plugin *plugin, size_t index)
{
    if (plugin->params == NULL || index >= SETTINGS_MAX) {
        return NULL;
    }
    const size_t stride =
        plugin->param_size == 0 ? sizeof(lac_param) : plugin->param_size;
    const lac_param *const param =
        (const void *)((const unsigned char *)plugin->params + index * stride);
    return param->name == NULL ? NULL : param;
}

size_t laci_settings_texts_size(const laci_spec *spec)
{
    const lac_param *param;
    size_t size = strlen(spec->preset) + spec->params_len + 2;
    for (size_t i = 0; (param = laci_param_at(spec->plugin, i)) != NULL; i++) {
        size += strlen(param->default_value) + 1;
    }
    return size;
}

// A table may be newer and have larger entries than this library knows. The
// entries of version 0.1.0 are the smallest that are accepted.
static lac_status check_params(const laci_spec *spec)
{
    const size_t size = spec->plugin->param_size;
    if (spec->plugin->params != NULL && size != 0 && size < sizeof(lac_param)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: its param_size is %zu bytes, expected at least %zu",
            spec->name, size, sizeof(lac_param));
    }
    return LAC_OK;
}

lac_status laci_settings_read(const laci_spec *spec, void *state, char *texts)
{
    const target to = {spec->name, state, &texts};
    const lac_param *param;
    for (size_t i = 0; (param = laci_param_at(spec->plugin, i)) != NULL; i++) {
        const span default_value = {
            param->default_value, strlen(param->default_value)};
        if (!settings_parse_value(&to, param, default_value)) {
            return wrong_value(&to, param, default_value);
        }
    }
    LAC_TRY(read_items(spec, &to, (span){spec->preset, strlen(spec->preset)}));
    return read_items(spec, &to, (span){spec->params, spec->params_len});
}

lac_status laci_handle_make(
    const laci_spec *spec, size_t size, void **handle_out, void **state_out)
{
    LAC_TRY(check_params(spec));
    const size_t head = laci_aligned(size);
    const size_t body = laci_aligned(spec->plugin->state_size);
    unsigned char *const block =
        laci_zalloc_aligned(head + body + laci_settings_texts_size(spec));
    if (block == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for its settings", spec->name);
    }
    const lac_status status =
        laci_settings_read(spec, block + head, (char *)block + head + body);
    if (status != LAC_OK) {
        laci_free_aligned(block);
        return status;
    }
    *handle_out = block;
    *state_out = block + head;
    return LAC_OK;
}

lac_status lac_settings_open(
    lac_settings **out, const char *kind, const lac_plugin *const *plugins,
    size_t count, const char *spec)
{
    *out = NULL;
    if (kind == NULL || spec == NULL || (plugins == NULL && count > 0)) {
        return lac_fail(
            LAC_ERR_INVALID, "settings: the %s is NULL",
            kind == NULL   ? "kind"
            : spec == NULL ? "spec"
                           : "array of plug-ins");
    }
    const laci_registry registry = {
        .kind = kind, .plugins = plugins, .plugin_count = count};
    laci_spec found = {0};
    LAC_TRY(laci_spec_find(&registry, spec, strlen(spec), &found));
    void *handle, *state;
    LAC_TRY(laci_handle_make(&found, sizeof(lac_settings), &handle, &state));
    lac_settings *const settings = handle;
    *settings = (lac_settings){found.plugin, state};
    *out = settings;
    return LAC_OK;
}

void lac_settings_close(lac_settings *settings)
{
    laci_free_aligned(settings);
}
