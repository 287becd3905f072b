// SPDX-License-Identifier: MIT
// Reads single settings of a spec, "name:key=value,key=value". The library
// parses and checks the whole.
#ifndef LACONIC_CLI_OPTIONS_SPEC_H
#define LACONIC_CLI_OPTIONS_SPEC_H

#include <stdbool.h>
#include <stddef.h>

// cli_spec_names returns whether `spec` is of the plug-in `name`.
bool cli_spec_names(const char *spec, const char *name);

// cli_spec_is_exact returns whether `spec` is of an algorithm that averages
// without compression, as long as it has no compressor: allreduce or dpsgd.
bool cli_spec_is_exact(const char *spec);

// cli_spec_part returns the length of the first part of `text`, which ends
// before `separator` outside parentheses.
size_t cli_spec_part(const char *text, char separator);

// cli_spec_next moves to the next setting of a spec and returns its key and
// value, whose lengths it writes. Begin with `*at_inout` = 0. Returns false at
// the end. A setting without a key has a key of length 0.
typedef struct cli_spec_item {
    const char *key, *value;
    size_t key_len, value_len;
} cli_spec_item;
bool cli_spec_next(const char *spec, size_t *at_inout, cli_spec_item *out);

// cli_spec_find finds the setting `key`. Returns false if it is not given.
bool cli_spec_find(const char *spec, const char *key, cli_spec_item *out);

// cli_spec_text writes the value of the first setting, whose key may be left
// out: it is in parentheses if it has commas. Returns false if it is not given
// or does not fit.
bool cli_spec_text(const char *spec, const char *key, char *out, size_t cap);

#endif
