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

// Everything that can be named (compressors, topologies, transports,
// algorithms) is a plug-in: a name, a sentence and a table of settings. The
// table drives all that concerns settings: reading them from a spec, their
// defaults and ranges, `laconic list` and its JSON.
//
// A spec is "name:key=value,key=value". The first value may go without its
// key: "top-k:0.01". A value in parentheses may hold commas and another spec.

/// How a setting is written, and the C type of the field it fills.
typedef enum lac_param_type {
    LAC_PARAM_BOOL,        ///< bool: yes or no
    LAC_PARAM_U32,         ///< uint32_t: a whole number in [min, max]
    LAC_PARAM_F64,         ///< double in [min, max]
    LAC_PARAM_CHOICE,      ///< uint32_t: the position of a word in `choices`
    LAC_PARAM_F64_OR_WORD, ///< lac_number_or_word: either of the above
    LAC_PARAM_TEXT,        ///< const char *: any text
    LAC_PARAM_SPEC,        ///< const char *: a spec, in parentheses
} lac_param_type;

/// What LAC_PARAM_F64_OR_WORD fills: `word` is the position in `choices` of
/// the word that was given, or -1 when it was the number `value`.
typedef struct lac_number_or_word {
    double value;
    int32_t word;
} lac_number_or_word;

/// One setting of a plug-in, stored at `offset` in the plug-in's state. Texts
/// live as long as the handle that read them.
typedef struct lac_param {
    const char *name;    ///< NULL ends the table.
    const char *aliases; ///< Other names for it, separated by spaces, or NULL.
    lac_param_type type;
    size_t offset;
    const char *default_value; ///< The default, written as a user would.
    double min;                ///< Smallest number accepted.
    double max;                ///< Largest number accepted.
    bool above_min;            ///< The number must be larger than `min`.
    const char *choices; ///< The words accepted, separated by '|', or NULL.
    const char *help;    ///< A few words, lower case, no full stop.
} lac_param;

/// What all plug-ins have in common: the first member of the ops of each kind.
typedef struct lac_plugin {
    size_t size;             ///< Of the whole ops struct, for later growth.
    const char *name;        ///< Lower case, unique; the word used in specs.
    const char *summary;     ///< One line for `laconic list`.
    const lac_param *params; ///< May be NULL.
    size_t param_size;       ///< sizeof(lac_param), for later growth.
    size_t state_size;       ///< Bytes of state one handle needs.
    const void *reserved[2]; ///< NULL. Room to grow: the struct itself cannot.
} lac_plugin;

/// What a plug-in is called and how it is set up when it goes by another name,
/// as qsgd is dithering with norm=2.
typedef struct lac_alias {
    const char *name;
    const char *target; ///< The plug-in's own name.
    const char *preset; ///< Settings that replace its defaults.
} lac_alias;

/// A spec that was read: the plug-in it names, and its settings in a state of
/// `plugin->state_size` bytes, zeroed where no setting lies.
typedef struct lac_settings {
    const lac_plugin *plugin;
    void *state;
} lac_settings;

/// lac_settings_open reads `spec` for a program that has plug-ins of a kind of
/// its own, such as models, and wants their settings written and checked like
/// all others. It looks for the name among plugins[0..count), which must
/// outlive the settings; `kind` names one of them in sentences: "no model is
/// named ...". Compressors, topologies and algorithms read theirs when they are
/// opened. On failure `*out` is NULL.
/// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status lac_settings_open(
    lac_settings **out, const char *kind, const lac_plugin *const *plugins,
    size_t count, const char *spec);

/// lac_settings_close releases `settings` and its texts. NULL is allowed.
LAC_API void lac_settings_close(lac_settings *settings);

#ifdef __cplusplus
}
#endif

#endif
