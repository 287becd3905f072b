// SPDX-License-Identifier: MIT
#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A text that grows in a fixed buffer. Too long a text is a bug of the fuzzer.
typedef struct text {
    char *start;
    size_t len;
} text;

uint8_t fuzz_byte(fuzz_input *input)
{
    if (input->size == 0) {
        return 0;
    }
    input->size--;
    return *input->data++;
}

void fuzz_require(bool holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "fuzz: %s (%s)\n", what, lac_error_message());
        abort();
    }
}

void *fuzz_alloc(size_t size)
{
    void *const block = malloc(size);
    fuzz_require(block != NULL || size == 0, "no memory");
    return block;
}

void *fuzz_copy(const void *bytes, size_t size)
{
    void *const block = fuzz_alloc(size);
    if (size > 0) {
        memcpy(block, bytes, size);
    }
    return block;
}

lac_key fuzz_key(uint8_t scope)
{
    const lac_scope scopes[] = {
        lac_scope_worker(3), lac_scope_edge(1, 2), lac_scope_shared()};
    return lac_key_make(
        1, LAC_PURPOSE_COMPRESS, 7, scopes[scope % 3], lac_name_hash("fuzz"));
}

bool fuzz_same(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bool both_nan = a[i] != a[i] && b[i] != b[i];
        if (!both_nan && memcmp(&a[i], &b[i], sizeof(a[i])) != 0) {
            return false;
        }
    }
    return true;
}

__attribute__((format(printf, 2, 3))) static void append(
    text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int len =
        vsnprintf(t->start + t->len, FUZZ_SPEC_SIZE - t->len, format, args);
    va_end(args);
    t->len += (size_t)len;
    fuzz_require(t->len < FUZZ_SPEC_SIZE, "a spec does not fit");
}

static double clip(double value, const lac_param *param)
{
    if (value < param->min || (param->above_min && value == param->min)) {
        return param->max;
    }
    return value > param->max ? param->max : value;
}

static void append_choice(text *t, const char *choices, uint8_t pick)
{
    size_t count = 1;
    for (const char *c = choices; *c != '\0'; c++) {
        count += *c == '|';
    }
    for (size_t skip = pick % count; skip > 0; skip--) {
        choices = strchr(choices, '|') + 1;
    }
    append(t, "%.*s", (int)strcspn(choices, "|"), choices);
}

static void append_number(text *t, const lac_param *param, uint8_t pick)
{
    static const double reals[] = {0.01, 0.1, 0.25, 0.5, 0.75, 1, 0.001, 2};
    append(t, "%.17g", clip(reals[pick % 8], param));
}

static void append_value(text *t, const lac_param *param, uint8_t pick)
{
    static const double wholes[] = {1,  2,   3,   4,   5,    7,     8,   9,
                                    16, 100, 127, 255, 1000, 65535, 4e9, 0};
    switch (param->type) {
    case LAC_PARAM_BOOL:
        append(t, "%s", pick % 2 == 0 ? "yes" : "no");
        break;
    case LAC_PARAM_U32:
        append(t, "%.0f", clip(wholes[pick % 16], param));
        break;
    case LAC_PARAM_F64:
        append_number(t, param, pick);
        break;
    case LAC_PARAM_CHOICE:
        append_choice(t, param->choices, pick);
        break;
    case LAC_PARAM_F64_OR_WORD:
        if (pick % 2 == 0) {
            append_choice(t, param->choices, pick / 2);
        } else {
            append_number(t, param, pick / 2);
        }
        break;
    case LAC_PARAM_TEXT:
    case LAC_PARAM_SPEC:
        append(t, "%s", param->default_value);
        break;
    }
}

static void append_settings(
    text *t, const lac_plugin *plugin, fuzz_input *input)
{
    const char *separator = ":";
    for (const lac_param *p = plugin->params; p != NULL && p->name; p++) {
        const uint8_t pick = fuzz_byte(input);
        if (pick != 0) {
            append(t, "%s%s=", separator, p->name);
            append_value(t, p, (uint8_t)(pick - 1));
            separator = ",";
        }
    }
}

static const lac_plugin *plugin_named(const char *name)
{
    size_t count;
    const lac_plugin *const *const plugins = lac_compressors(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(plugins[i]->name, name) == 0) {
            return plugins[i];
        }
    }
    return NULL;
}

// Appends one compressor and returns its table, NULL for an alias of one that
// is not built in.
static const lac_plugin *append_part(text *t, fuzz_input *input)
{
    size_t count, alias_count;
    const lac_plugin *const *const plugins = lac_compressors(&count);
    const lac_alias *const aliases = lac_compressor_aliases(&alias_count);
    const size_t pick = fuzz_byte(input) % (count + alias_count);
    const char *const name =
        pick < count ? plugins[pick]->name : aliases[pick - count].name;
    const lac_plugin *const plugin =
        pick < count ? plugins[pick]
                     : plugin_named(aliases[pick - count].target);
    append(t, "%s", name);
    if (plugin != NULL) {
        append_settings(t, plugin, input);
    }
    return plugin;
}

static bool is_sparsifier(const lac_plugin *plugin)
{
    return plugin != NULL &&
           ((const lac_compressor_ops *)(const void *)plugin)->sparsifier !=
               NULL;
}

void fuzz_spec(fuzz_input *input, char spec[FUZZ_SPEC_SIZE])
{
    text t = {spec, 0};
    const lac_plugin *last = append_part(&t, input);
    for (int depth = 0; depth < 2 && is_sparsifier(last); depth++) {
        if (fuzz_byte(input) % 2 == 0) {
            break;
        }
        append(&t, "+");
        last = append_part(&t, input);
    }
}
