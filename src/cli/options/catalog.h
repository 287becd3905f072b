// SPDX-License-Identifier: MIT
// Everything that can be named, by kind.
#ifndef LACONIC_CLI_OPTIONS_CATALOG_H
#define LACONIC_CLI_OPTIONS_CATALOG_H

#include <stddef.h>

#include <laconic/laconic.h>

// One kind of plug-in and where its lists come from; NULL for an empty list.
typedef struct cli_kind {
    const char *name; // plural: the key in JSON
    const char *note; // for people, after the items, or NULL
    const lac_plugin *const *(*plugins)(size_t *count_out);
    const lac_alias *(*aliases)(size_t *count_out);
} cli_kind;

// cli_kinds returns all kinds, `*count_out` of them.
const cli_kind *cli_kinds(size_t *count_out);

// One thing that can be named: a plug-in under its own name, or an alias.
typedef struct cli_item {
    const char *name;
    const lac_plugin *plugin;
    const char *preset; // of an alias, else NULL
} cli_item;

// cli_kind_item finds item `index` of a kind: plug-ins first, then aliases.
// An alias whose plug-in this build lacks is left out. Returns false beyond
// the last.
bool cli_kind_item(const cli_kind *kind, size_t index, cli_item *out);

// cli_item_param returns setting `index` of an item, or NULL beyond the last.
const lac_param *cli_item_param(const cli_item *item, size_t index);

// cli_item_default writes the default of a setting of this item, which for
// an alias may be preset.
enum { CLI_DEFAULT_SIZE = 128 };
const char *cli_item_default(
    const cli_item *item, const lac_param *param, char text[CLI_DEFAULT_SIZE]);

// cli_bad_spec reports what is wrong with a compressor's spec that the user
// typed, after opening it failed, and returns CLI_USAGE.
int cli_bad_spec(const char *command, const char *spec);

// cli_bad_spec_of does the same for a spec of any kind, by its name.
int cli_bad_spec_of(const char *command, const char *kind, const char *spec);

#endif
