// SPDX-License-Identifier: MIT
// The catalog. A new kind is a line in `kinds`.
#include "cli/options/catalog.h"

#include <stdio.h>
#include <string.h>

#include "cli/options/commands.h"
#include "cli/options/spec.h"
#include "data/source.h"
#include "nn/layouts.h"

static const cli_kind kinds[] = {
    {"compressors", "compressor", "compressor",
     "A+B compresses the values that the sparsifier A keeps with B: "
     "top-k:0.01+natural",
     lac_compressors, lac_compressor_aliases},
    {"topologies", "topology", "topology", NULL, lac_topologies, NULL},
    {"transports", "transport", "transport", NULL, lac_transports, NULL},
    {"algorithms", "algorithm", "algorithm", NULL, lac_algorithms, NULL},
    {"models", "model", "model", NULL, nn_models, NULL},
    {"datasets", "data set", "data", NULL, data_sources, NULL},
};
enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]), WORD_SIZE = 64 };

const cli_kind *cli_kinds(size_t *count_out)
{
    *count_out = KIND_COUNT;
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

const char *cli_closest(
    const cli_kind *kind, const char *word, size_t *distance_inout)
{
    const char *closest = NULL;
    cli_item item;
    for (size_t i = 0; cli_kind_item(kind, i, &item); i++) {
        if (cli_closer(word, item.name, distance_inout)) {
            closest = item.name;
        }
    }
    return closest;
}

static const cli_kind *find_kind(const char *name)
{
    const cli_kind *kind = kinds;
    while (strcmp(kind->name, name) != 0) {
        kind++;
    }
    return kind;
}

static bool find_item(const cli_kind *kind, const char *name, cli_item *out)
{
    for (size_t i = 0; cli_kind_item(kind, i, out); i++) {
        if (strcmp(out->name, name) == 0) {
            return true;
        }
    }
    return false;
}

// Copies the name that a spec begins with.
static void copy_name(const char *spec, char word[WORD_SIZE])
{
    (void)snprintf(word, WORD_SIZE, "%.*s", (int)strcspn(spec, ":+"), spec);
}

bool cli_item_of(const char *kind, const char *spec, cli_item *out)
{
    char word[WORD_SIZE];
    copy_name(spec, word);
    return find_item(find_kind(kind), word, out);
}

static bool has_option(const char *command, const char *name)
{
    const cli_option *o = cli_command_find(command)->options;
    while (o->name != NULL && strcmp(o->name, name) != 0) {
        o++;
    }
    return o->name != NULL;
}

const char *cli_example_options(
    const lac_plugin *plugin, char text[CLI_EXAMPLE_SIZE])
{
    const char *const example = plugin->example;
    const char *const space = strchr(example, ' ');
    (void)snprintf(
        text, CLI_EXAMPLE_SIZE, "--algorithm %.*s%s%s",
        (int)strcspn(example, " "), example,
        space == NULL ? "" : " --compressor", space == NULL ? "" : space);
    return text;
}

// Writes the options to give instead: an algorithm with the compressor that it
// needs, a compressor with an algorithm that takes any, or another option.
static void write_options(
    const cli_kind *wanted, const cli_kind *found, const cli_item *item,
    const char *spec, char out[CLI_OPTION_TEXT_SIZE])
{
    char example[CLI_EXAMPLE_SIZE];
    if (item->plugin->example != NULL) {
        (void)snprintf(
            out, CLI_OPTION_TEXT_SIZE, "%s",
            cli_example_options(item->plugin, example));
    } else {
        const bool method = strcmp(wanted->option, "algorithm") == 0 &&
                            strcmp(found->option, "compressor") == 0;
        (void)snprintf(
            out, CLI_OPTION_TEXT_SIZE, "%s--%s %s",
            method ? "--algorithm error-feedback " : "", found->option, spec);
    }
}

// Reports that `word`, the name in `spec`, is of another kind.
static void suggest_kind(
    const char *command, const cli_kind *wanted, const cli_kind *found,
    const cli_item *item, const char *spec)
{
    char options[CLI_OPTION_TEXT_SIZE] = "";
    const bool possible = has_option(command, found->option);
    if (possible) {
        write_options(wanted, found, item, spec, options);
    }
    (void)!lac_fail(
        LAC_ERR_NOTFOUND, "no %s is named \"%s\": it is a%s %s%s%s",
        wanted->one, item->name, strchr("aeiou", *found->one) ? "n" : "",
        found->one, possible ? "; try " : "", options);
}

// Reports the name that is closest to `word`, of another kind if the wanted one
// has none that is close.
static void suggest_name(const cli_kind *wanted, const char *word)
{
    size_t distance = CLI_CLOSE + 1;
    const cli_kind *found = wanted;
    const char *closest = cli_closest(wanted, word, &distance);
    for (size_t k = 0; closest == NULL && k < KIND_COUNT; k++) {
        found = &kinds[k];
        closest = cli_closest(found, word, &distance);
    }
    if (closest != NULL) {
        (void)!lac_fail(
            LAC_ERR_NOTFOUND, "no %s is named \"%s\"; did you mean %s%s%s%s?",
            wanted->one, word, found == wanted ? "" : "the ",
            found == wanted ? "" : found->one, found == wanted ? "" : " ",
            closest);
    }
}

// Reports a spec with a space as two: "choco sign" is an algorithm and its
// compressor, "top-k 0.1" a name and its settings. Returns whether it is.
static bool suggest_split(
    const char *command, const cli_kind *wanted, const char *spec)
{
    cli_item item;
    char first[WORD_SIZE], word[WORD_SIZE];
    const size_t len = strcspn(spec, " ");
    const char *const rest = spec + len + strspn(spec + len, " ");
    (void)snprintf(first, sizeof(first), "%.*s", (int)len, spec);
    copy_name(first, word);
    if (*rest == '\0' || !find_item(wanted, word, &item)) {
        return false;
    }
    const bool two = strcmp(wanted->option, "algorithm") == 0 &&
                     has_option(command, "compressor") &&
                     cli_item_of("compressors", rest, &item);
    if (!two && strchr(first, ':') != NULL) {
        return false;
    }
    (void)!lac_fail(
        LAC_ERR_NOTFOUND, "no %s is named \"%s\"; try --%s %s%s%s", wanted->one,
        spec, wanted->option, first, two ? " --compressor " : ":", rest);
    return true;
}

// Looks up the name that `spec` begins with. Returns whether the wanted kind
// has it.
static bool suggest(
    const char *command, const cli_kind *wanted, const char *spec)
{
    cli_item item;
    char word[WORD_SIZE];
    if (suggest_split(command, wanted, spec)) {
        return false;
    }
    copy_name(spec, word);
    if (find_item(wanted, word, &item)) {
        return true;
    }
    for (size_t k = 0; k < KIND_COUNT; k++) {
        if (find_item(&kinds[k], word, &item)) {
            suggest_kind(command, wanted, &kinds[k], &item, spec);
            return false;
        }
    }
    suggest_name(wanted, word);
    return false;
}

void cli_suggest(const char *command, const char *kind, const char *spec)
{
    const cli_kind *const wanted = find_kind(kind);
    // Each part of "A:...+B:..." begins with a name.
    while (*spec != '\0' && suggest(command, wanted, spec)) {
        spec += cli_spec_part(spec, '+');
        spec += *spec == '+';
    }
}

int cli_bad_spec(const char *command, const char *kind, const char *spec)
{
    cli_suggest(command, kind, spec);
    (void)cli_failed();
    (void)fprintf(
        stderr, "try `laconic list %s` or `laconic %s --help`\n", kind,
        command);
    return CLI_USAGE;
}

int cli_bad_algorithm(
    const char *command, lac_status status, const char *algorithm,
    const char *compressor)
{
    if (status == LAC_ERR_NOTFOUND) {
        cli_suggest(command, "compressors", compressor);
        cli_suggest(command, "algorithms", algorithm);
    }
    return cli_rejected(command, status);
}
