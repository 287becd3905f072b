// SPDX-License-Identifier: MIT
// Finds settings that have no effect: for every setting of an algorithm there
// is a case whose values differ from those of the same case with that setting
// at its base value. One that only groups tensors must have none.
#ifndef LACONIC_TESTS_EFFECTS_H
#define LACONIC_TESTS_EFFECTS_H

#include "cases.h"

// The settings of the algorithm in turn that have changed a value.
static struct {
    const lac_plugin *plugin;
    bool matters[PARAMS_MAX];
} effects;

static inline bool is_setting(const char *name, const char *claimed)
{
    return claimed != NULL && strcmp(name, claimed) == 0;
}

// Fails if a setting of the last algorithm has changed no value, or if one that
// only groups has.
static inline void assert_effects(void)
{
    for (size_t i = 0;
         effects.plugin != NULL && i < param_count(effects.plugin); i++) {
        const laci_algorithm_ops *const claims = claims_of(effects.plugin);
        const char *const name = effects.plugin->params[i].name;
        const bool groups = is_setting(name, claims->groups);
        if (effects.matters[i] == groups && !is_setting(name, claims->late)) {
            print_error(
                "%s: %s has %s effect\n", effects.plugin->name, name,
                groups ? "an" : "no");
            fail();
        }
    }
    memset(&effects, 0, sizeof(effects));
}

// Returns whether a setting of the case differs from the base and has shown no
// effect so far.
static inline bool may_show_effect(const algorithm_case *c, size_t param)
{
    algorithm_case base = {.plugin = c->plugin};
    set_base(&base);
    return !effects.matters[param] &&
           strcmp(base.values[param], c->values[param]) != 0;
}

// The case with one setting at its base value.
static inline algorithm_case without_setting(
    const algorithm_case *c, size_t param)
{
    algorithm_case base = {.plugin = c->plugin}, other = *c;
    set_base(&base);
    memcpy(other.values[param], base.values[param], SETTING_SIZE);
    write_spec(&other);
    return other;
}

// Begins a case and returns whether it can show an effect. The first case of an
// algorithm ends the one before.
static inline bool begin_effects(const algorithm_case *c)
{
    if (effects.plugin != c->plugin) {
        assert_effects();
        effects.plugin = c->plugin;
    }
    for (size_t i = 0; i < param_count(c->plugin); i++) {
        if (may_show_effect(c, i)) {
            return true;
        }
    }
    return false;
}

#endif
