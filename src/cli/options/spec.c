// SPDX-License-Identifier: MIT
// Reads single settings of a spec. Separators and equals signs in parentheses
// belong to a value.
#include "cli/options/spec.h"

#include <string.h>

bool cli_spec_names(const char *spec, const char *name)
{
    const size_t len = strlen(name);
    return strncmp(spec, name, len) == 0 &&
           (spec[len] == '\0' || spec[len] == ':');
}

bool cli_spec_is_exact(const char *spec)
{
    return cli_spec_names(spec, "allreduce") || cli_spec_names(spec, "dpsgd");
}

size_t cli_spec_part(const char *text, char separator)
{
    size_t depth = 0, len = 0;
    while (text[len] != '\0' && (depth > 0 || text[len] != separator)) {
        depth += text[len] == '(';
        depth -= text[len] == ')' && depth > 0;
        len++;
    }
    return len;
}

bool cli_spec_next(const char *spec, size_t *at_inout, cli_spec_item *out)
{
    const size_t begin =
        *at_inout == 0 ? strcspn(spec, ":") : *at_inout; // ':' or ','
    if (spec[begin] == '\0' || spec[begin + 1] == '\0') {
        return false;
    }
    const char *const text = spec + begin + 1;
    const size_t len = cli_spec_part(text, ',');
    const size_t key_len = strcspn(text, "=,(");
    const bool named = key_len < len && text[key_len] == '=';
    const size_t skip = named ? key_len + 1 : 0;
    *out = (cli_spec_item){
        .key = text,
        .key_len = named ? key_len : 0,
        .value = text + skip,
        .value_len = len - skip,
    };
    *at_inout = begin + 1 + len;
    return true;
}

bool cli_spec_find(const char *spec, const char *key, cli_spec_item *out)
{
    size_t at = 0;
    cli_spec_item item;
    while (cli_spec_next(spec, &at, &item)) {
        if (item.key_len == strlen(key) &&
            memcmp(item.key, key, item.key_len) == 0) {
            *out = item;
            return true;
        }
    }
    return false;
}

bool cli_spec_text(const char *spec, const char *key, char *out, size_t cap)
{
    cli_spec_item item;
    if (!cli_spec_find(spec, key, &item) && !cli_spec_find(spec, "", &item)) {
        return false;
    }
    const bool enclosed = item.value_len >= 2 && item.value[0] == '(' &&
                          item.value[item.value_len - 1] == ')';
    const size_t len = item.value_len - 2 * (size_t)enclosed;
    if (len >= cap) {
        return false;
    }
    memcpy(out, item.value + enclosed, len);
    out[len] = '\0';
    return true;
}
