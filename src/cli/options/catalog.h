// SPDX-License-Identifier: MIT
// The catalog of all names that specs can use, by kind.
#ifndef LACONIC_CLI_OPTIONS_CATALOG_H
#define LACONIC_CLI_OPTIONS_CATALOG_H

#include <stddef.h>

#include <laconic/laconic.h>

// One kind of plug-in and the functions that list it; NULL for an empty list.
typedef struct cli_kind {
    const char *name;   // plural: the key in JSON
    const char *one;    // singular, for messages
    const char *option; // of the commands that take one
    const char *note;   // printed after the items, or NULL
    const lac_plugin *const *(*plugins)(size_t *count_out);
    const lac_alias *(*aliases)(size_t *count_out);
} cli_kind;

// cli_kinds returns all kinds, `*count_out` of them.
const cli_kind *cli_kinds(size_t *count_out);

// One name: a plug-in or an alias.
typedef struct cli_item {
    const char *name;
    const lac_plugin *plugin;
    const char *preset; // of an alias, else NULL
} cli_item;

// cli_kind_item writes item `index` of a kind: plug-ins first, then aliases
// without those whose plug-in this build lacks. Returns false past the last.
bool cli_kind_item(const cli_kind *kind, size_t index, cli_item *out);

// cli_item_of writes the item whose name `spec` begins with. `kind` is a name
// of cli_kinds. Returns false if there is none.
bool cli_item_of(const char *kind, const char *spec, cli_item *out);

// cli_item_param returns setting `index` of an item, or NULL past the last.
const lac_param *cli_item_param(const cli_item *item, size_t index);

// cli_item_default writes the default of a setting of this item; an alias may
// preset it.
enum { CLI_DEFAULT_SIZE = 128 };
const char *cli_item_default(
    const cli_item *item, const lac_param *param, char text[CLI_DEFAULT_SIZE]);

// cli_closest returns the name of the kind that is closest to `word`, fewer
// than `*distance_inout` edits away as for cli_closer, or NULL.
const char *cli_closest(
    const cli_kind *kind, const char *word, size_t *distance_inout);

// cli_example_options writes the example of an algorithm as options.
enum { CLI_EXAMPLE_SIZE = 128 };
const char *cli_example_options(
    const lac_plugin *plugin, char text[CLI_EXAMPLE_SIZE]);

// cli_suggest looks for a name in `spec` that the kind `kind` (a name of
// cli_kinds) lacks. If it finds what the user of `command` may have meant, a
// similar name or one of another kind, it replaces the message of the last
// failure, which was about this spec.
void cli_suggest(const char *command, const char *kind, const char *spec);

// cli_bad_spec reports, after opening a spec of the user failed, what is wrong
// with it, with a suggestion as above. Returns CLI_USAGE.
int cli_bad_spec(const char *command, const char *kind, const char *spec);

// cli_bad_algorithm does so after opening an algorithm failed, but a failure
// that is not about the user's words is CLI_FAILED.
int cli_bad_algorithm(
    const char *command, lac_status status, const char *algorithm,
    const char *compressor);

#endif
