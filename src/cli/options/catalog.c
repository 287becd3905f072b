// SPDX-License-Identifier: MIT
// The catalog. A new kind is a line in `kinds`.
#include "cli/options/catalog.h"

#include <stdio.h>
#include <string.h>

#include "cli/options/command.h"
#include "data/source.h"
#include "nn/layouts.h"

static const cli_kind kinds[] = {
    {"compressors",
     "A+B compresses the values that the sparsifier A keeps with B: "
     "top-k:0.01+natural",
     lac_compressors, lac_compressor_aliases},
    {"topologies", NULL, lac_topologies, NULL},
    {"transports", NULL, lac_transports, NULL},
    {"algorithms", NULL, lac_algorithms, NULL},
    {"models", NULL, nn_models, NULL},
    {"datasets", NULL, data_sources, NULL},
};

const cli_kind *cli_kinds(size_t *count_out)
{
    *count_out = sizeof(kinds) / sizeof(kinds[0]);
    return kinds;
}

static const lac_plugin *find_target(const cli_kind *kind, const char *name)
{
    size_t count = 0;
    const lac_plugin *const *const plugins = kind->plugins(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(plugins[i]->name, name) == 0) {
            return plugins[i];
        }
    }
    return NULL;
}

bool cli_kind_item(const cli_kind *kind, size_t index, cli_item *out)
{
    size_t count = 0;
    if (kind->plugins == NULL) {
        return false;
    }
    const lac_plugin *const *const plugins = kind->plugins(&count);
    if (index < count) {
        *out = (cli_item){plugins[index]->name, plugins[index], NULL};
        return true;
    }
    index -= count;
    const lac_alias *const aliases =
        kind->aliases == NULL ? NULL : kind->aliases(&count);
    for (size_t i = 0; aliases != NULL && i < count; i++) {
        const lac_plugin *const target = find_target(kind, aliases[i].target);
        if (target != NULL && index-- == 0) {
            *out = (cli_item){aliases[i].name, target, aliases[i].preset};
            return true;
        }
    }
    return false;
}

const lac_param *cli_item_param(const cli_item *item, size_t index)
{
    const lac_plugin *const plugin = item->plugin;
    if (plugin->params == NULL) {
        return NULL;
    }
    const size_t stride =
        plugin->param_size == 0 ? sizeof(lac_param) : plugin->param_size;
    const lac_param *const param =
        (const void *)((const unsigned char *)plugin->params + index * stride);
    return param->name == NULL ? NULL : param;
}

// Presets come from the library and have no parentheses.
const char *cli_item_default(
    const cli_item *item, const lac_param *param, char text[CLI_DEFAULT_SIZE])
{
    const size_t name_len = strlen(param->name);
    const char *at = item->preset == NULL ? "" : item->preset;
    while (*at != '\0') {
        const size_t len = strcspn(at, ",");
        if (len > name_len && at[name_len] == '=' &&
            memcmp(at, param->name, name_len) == 0) {
            (void)snprintf(
                text, CLI_DEFAULT_SIZE, "%.*s", (int)(len - name_len - 1),
                at + name_len + 1);
            return text;
        }
        at += at[len] == ',' ? len + 1 : len;
    }
    (void)snprintf(text, CLI_DEFAULT_SIZE, "%s", param->default_value);
    return text;
}

// Returns the name that is closest to `word`, but not equal, or NULL.
static const char *closest_name(const char *kind, const char *word)
{
    const cli_kind *which = kinds;
    while (strcmp(which->name, kind) != 0) {
        which++;
    }
    const char *closest = NULL;
    size_t distance = CLI_CLOSE + 1;
    cli_item item;
    for (size_t i = 0; cli_kind_item(which, i, &item); i++) {
        if (cli_closer(word, item.name, &distance)) {
            closest = item.name;
        }
    }
    return distance == 0 ? NULL : closest;
}

int cli_bad_spec(const char *command, const char *kind, const char *spec)
{
    (void)cli_failed();
    // Each part of "A:...+B:..." begins with a name.
    while (*spec != '\0') {
        char word[64];
        const size_t len = strcspn(spec, ":+");
        (void)snprintf(
            word, sizeof(word), "%.*s", (int)(len < 63 ? len : 63), spec);
        const char *const closest = closest_name(kind, word);
        if (closest != NULL) {
            (void)fprintf(stderr, "did you mean %s?\n", closest);
            break;
        }
        spec += strcspn(spec, "+");
        spec += *spec == '+';
    }
    (void)fprintf(
        stderr, "try `laconic list` or `laconic %s --help`\n", command);
    return CLI_USAGE;
}
