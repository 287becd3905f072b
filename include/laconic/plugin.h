// SPDX-License-Identifier: MIT
#ifndef LACONIC_PLUGIN_H
#define LACONIC_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/status.h>

#ifdef __cplusplus
extern "C" {
#endif

// Compressors, topologies, transports and algorithms are plug-ins: each has a
// name, a one-line summary and a table of settings. The library parses specs,
// applies defaults and checks ranges by this table, and `laconic list` prints
// it.
//
// A spec is "name:key=value,key=value". The key of the first value may be
// omitted: "top-k:0.01". A value in parentheses may contain commas and another
// spec.

/// How a setting is written in a spec, and the C type of its field.
typedef enum lac_param_type {
    LAC_PARAM_BOOL,        ///< bool: yes or no
    LAC_PARAM_U32,         ///< uint32_t: a whole number in [min, max]
    LAC_PARAM_F64,         ///< double in [min, max]
    LAC_PARAM_CHOICE,      ///< uint32_t: the position of a word in `choices`
    LAC_PARAM_F64_OR_WORD, ///< lac_number_or_word: either of the above
    LAC_PARAM_TEXT,        ///< const char *: any text
    LAC_PARAM_SPEC,        ///< const char *: a spec, in parentheses
} lac_param_type;

/// The field of LAC_PARAM_F64_OR_WORD: `word` is the position of the given word
/// in `choices`, or -1 when the number `value` was given.
typedef struct lac_number_or_word {
    double value;
    int32_t word;
} lac_number_or_word;

/// One setting of a plug-in, stored at `offset` in the plug-in's state. Strings
/// live as long as the handle.
typedef struct lac_param {
    const char *name;    ///< NULL ends the table.
    const char *aliases; ///< Other names, separated by spaces, or NULL.
    lac_param_type type;
    size_t offset;
    const char *default_value; ///< The default, as in a spec.
    double min;                ///< Smallest number accepted.
    double max;                ///< Largest number accepted.
    bool above_min;            ///< The number must be larger than `min`.
    const char *choices;       ///< Accepted words, separated by '|', or NULL.
    const char *help;          ///< A few words, lower case, no full stop.
} lac_param;

/// The first member of the ops of every kind of plug-in.
typedef struct lac_plugin {
    size_t size;             ///< Of the whole ops struct, so that it can grow.
    const char *name;        ///< Lower case, unique; the word used in specs.
    const char *summary;     ///< One line for `laconic list`.
    const lac_param *params; ///< May be NULL.
    size_t param_size;       ///< sizeof(lac_param), so that it can grow.
    size_t state_size;       ///< Bytes of state in each handle.
    const char *example;     ///< Of an algorithm: a spec that trains well, and
                             ///< the compressor that it needs after a space,
                             ///< "ecd dithering:levels=65535". May be NULL.
    const void *reserved[1]; ///< NULL. The struct itself cannot grow.
} lac_plugin;

/// Another name of a plug-in, with other defaults: qsgd is dithering with
/// norm=2.
typedef struct lac_alias {
    const char *name;
    const char *target; ///< The plug-in's own name.
    const char *preset; ///< Settings that replace its defaults.
} lac_alias;

/// A parsed spec: the plug-in, and its settings in a state of
/// `plugin->state_size` bytes. Bytes that belong to no setting are zero.
typedef struct lac_settings {
    const lac_plugin *plugin;
    void *state;
} lac_settings;

/// lac_settings_open parses `spec` for a program with plug-ins of a kind of its
/// own, such as models. It looks for the name among plugins[0..count), which
/// must outlive the settings. `kind` is the word for one of them in messages:
/// "no model is named ...". Compressors, topologies, transports and algorithms
/// do not need it: their own functions parse specs. On failure `*out` is NULL.
/// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status lac_settings_open(
    lac_settings **out, const char *kind, const lac_plugin *const *plugins,
    size_t count, const char *spec);

/// lac_settings_close releases `settings` and its strings. NULL is allowed.
LAC_API void lac_settings_close(lac_settings *settings);

#ifdef __cplusplus
}
#endif

#endif
