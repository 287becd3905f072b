// SPDX-License-Identifier: MIT
// Specs such as "top-k:ratio=0.01" and the tables of settings behind them.
#ifndef LACONIC_BASE_SETTINGS_H
#define LACONIC_BASE_SETTINGS_H

#include <laconic/plugin.h>
#include <laconic/status.h>

// One kind of plug-in: what can be named, and under which other names.
typedef struct laci_registry {
    const char *kind; // for messages, such as "compressor"
    const lac_plugin *const *plugins;
    size_t plugin_count;
    const lac_alias *aliases;
    size_t alias_count;
} laci_registry;

// A spec taken apart: the plug-in it names, and the settings to read, those of
// an alias first. `params` is not ended by a NUL.
typedef struct laci_spec {
    const lac_plugin *plugin;
    const char *name; // as the user wrote it: the alias, if it was one
    const char *preset;
    const char *params;
    size_t params_len;
} laci_spec;

// laci_spec_find takes spec[0..len) apart.
// Fails with LAC_ERR_NOTFOUND; the message names what comes close.
lac_status laci_spec_find(
    const laci_registry *registry, const char *spec, size_t len,
    laci_spec *out);

// laci_settings_read fills the fields of `state`: defaults, then the preset,
// then the params. Texts go to `texts`, which holds at least
// laci_settings_texts_size(spec) bytes and must live as long as the state.
// Fails with LAC_ERR_INVALID.
lac_status laci_settings_read(const laci_spec *spec, void *state, char *texts);

size_t laci_settings_texts_size(const laci_spec *spec);

// laci_handle_make gets one block for a handle of `size` bytes, all zero, and
// behind it the state of its plug-in, with the settings read, and their texts.
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
