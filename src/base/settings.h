// SPDX-License-Identifier: MIT
// Specs such as "top-k:ratio=0.01", parsed by tables of settings.
#ifndef LACONIC_BASE_SETTINGS_H
#define LACONIC_BASE_SETTINGS_H

#include <laconic/plugin.h>
#include <laconic/status.h>

// One kind of plug-in: all that have a name, and their aliases.
typedef struct laci_registry {
    const char *kind; // for messages, such as "compressor"
    const lac_plugin *const *plugins;
    size_t plugin_count;
    const lac_alias *aliases;
    size_t alias_count;
} laci_registry;

// The parts of a spec: the plug-in, and the settings to parse, those of an
// alias first. `params` is not ended by a NUL.
typedef struct laci_spec {
    const lac_plugin *plugin;
    const char *name; // as in the spec: the alias if the user wrote one
    const char *preset;
    const char *params;
    size_t params_len;
} laci_spec;

// laci_spec_find splits spec[0..len) into its parts.
// Fails with LAC_ERR_NOTFOUND.
lac_status laci_spec_find(
    const laci_registry *registry, const char *spec, size_t len,
    laci_spec *out);

// laci_settings_read fills the fields of `state`: defaults, then the preset,
// then the params. Strings go to `texts`, which holds at least
// laci_settings_texts_size(spec) bytes and must live as long as the state.
// Fails with LAC_ERR_INVALID.
lac_status laci_settings_read(const laci_spec *spec, void *state, char *texts);

size_t laci_settings_texts_size(const laci_spec *spec);

// laci_handle_make allocates one block for a handle of `size` bytes, all zero,
// followed by the state of its plug-in, with the settings, and their strings.
// laci_free_aligned releases it. Fails with LAC_ERR_NOMEM or LAC_ERR_INVALID.
lac_status laci_handle_make(
    const laci_spec *spec, size_t size, void **handle_out, void **state_out);

// laci_param_at returns setting `index` of a plug-in, NULL past the last.
const lac_param *laci_param_at(const lac_plugin *plugin, size_t index);

// laci_spec_part returns the length of the first part of text[0..len) that
// ends before `separator` outside parentheses. Fails with LAC_ERR_INVALID when
// parentheses do not match.
lac_status laci_spec_part(
    const char *text, size_t len, char separator, size_t *part_out);

#endif
