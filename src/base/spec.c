// SPDX-License-Identifier: MIT
// Splits specs: which plug-in is named, and where its settings begin.
#include <string.h>

#include "base/fail.h"
#include "base/settings.h"

enum { SHOWN_MAX = 60 };

static bool is_named(const char *name, const char *text, size_t len)
{
    return strlen(name) == len && memcmp(name, text, len) == 0;
}

static const lac_plugin *spec_find_plugin(
    const laci_registry *registry, const char *name, size_t len)
{
    for (size_t i = 0; i < registry->plugin_count; i++) {
        if (is_named(registry->plugins[i]->name, name, len)) {
            return registry->plugins[i];
        }
    }
    return NULL;
}

static const lac_alias *find_alias(
    const laci_registry *registry, const char *name, size_t len)
{
    for (size_t i = 0; i < registry->alias_count; i++) {
        if (is_named(registry->aliases[i].name, name, len)) {
            return &registry->aliases[i];
        }
    }
    return NULL;
}

lac_status laci_spec_part(
    const char *text, size_t len, char separator, size_t *part_out)
{
    size_t depth = 0, i = 0;
    for (; i < len && (depth > 0 || text[i] != separator); i++) {
        depth += text[i] == '(';
        if (text[i] == ')' && depth-- == 0) {
            break;
        }
    }
    if (depth != 0) {
        return lac_fail(
            LAC_ERR_INVALID, "spec: parentheses do not match in \"%.*s\"",
            (int)(len < SHOWN_MAX ? len : SHOWN_MAX), text);
    }
    *part_out = i;
    return LAC_OK;
}

lac_status laci_spec_find(
    const laci_registry *registry, const char *spec, size_t len, laci_spec *out)
{
    const char *const colon = memchr(spec, ':', len);
    const size_t name_len = colon == NULL ? len : (size_t)(colon - spec);
    const lac_alias *const alias = find_alias(registry, spec, name_len);
    const lac_plugin *const plugin =
        alias == NULL
            ? spec_find_plugin(registry, spec, name_len)
            : spec_find_plugin(registry, alias->target, strlen(alias->target));
    if (plugin == NULL) {
        return lac_fail(
            LAC_ERR_NOTFOUND,
            "no %s is named \"%.*s\"; `laconic list` shows those there are",
            registry->kind, (int)(name_len < SHOWN_MAX ? name_len : SHOWN_MAX),
            spec);
    }
    const size_t skip = colon == NULL ? len : name_len + 1;
    *out = (laci_spec){
        .plugin = plugin,
        .name = alias == NULL ? plugin->name : alias->name,
        .preset = alias == NULL ? "" : alias->preset,
        .params = spec + skip,
        .params_len = len - skip,
    };
    return LAC_OK;
}
