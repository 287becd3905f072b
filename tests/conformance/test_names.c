// SPDX-License-Identifier: MIT
// Names of plug-ins and of their settings: the first that fits is taken, so one
// that is there twice would hide the second.
#include "lac_test.h"

#include <string.h>

enum { NAMES_MAX = 64 };

// Names that were seen, and what they are names of.
typedef struct name_list {
    const char *of;
    size_t count;
    const char *names[NAMES_MAX];
    size_t lengths[NAMES_MAX];
} name_list;

// Adds a name that a spec can hold and that is not there yet.
static void add_name(name_list *list, const char *name, size_t len)
{
    bool good = len > 0 && strcspn(name, ":=,+() ") >= len;
    for (size_t i = 0; i < list->count; i++) {
        good = good && (list->lengths[i] != len ||
                        memcmp(list->names[i], name, len) != 0);
    }
    if (!good) {
        print_error(
            "%s: \"%.*s\" is there twice or is no name\n", list->of, (int)len,
            name);
        fail();
    }
    assert_true(list->count < NAMES_MAX);
    list->names[list->count] = name;
    list->lengths[list->count] = len;
    list->count++;
}

// Settings of one plug-in, with the other names that they have.
static void settings_differ(const lac_plugin *plugin)
{
    name_list list = {.of = plugin->name};
    for (const lac_param *p = plugin->params; p != NULL && p->name; p++) {
        add_name(&list, p->name, strlen(p->name));
        for (const char *at = p->aliases; at != NULL && *at != '\0';) {
            const size_t len = strcspn(at, " ");
            add_name(&list, at, len);
            at += len + (at[len] == ' ');
        }
    }
}

static void names_differ(
    const char *kind, const lac_plugin *const *plugins, size_t count,
    const lac_alias *aliases, size_t alias_count)
{
    name_list list = {.of = kind};
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        add_name(&list, plugins[i]->name, strlen(plugins[i]->name));
        settings_differ(plugins[i]);
    }
    for (size_t i = 0; i < alias_count; i++) {
        add_name(&list, aliases[i].name, strlen(aliases[i].name));
    }
}

static void compressors_and_their_aliases_have_names_of_their_own(void **state)
{
    (void)state;
    size_t count, alias_count;
    const lac_plugin *const *const plugins = lac_compressors(&count);
    const lac_alias *const aliases = lac_compressor_aliases(&alias_count);
    names_differ("compressors", plugins, count, aliases, alias_count);
}

static void algorithms_have_names_of_their_own(void **state)
{
    (void)state;
    size_t count;
    const lac_plugin *const *const plugins = lac_algorithms(&count);
    names_differ("algorithms", plugins, count, NULL, 0);
}

static void topologies_have_names_of_their_own(void **state)
{
    (void)state;
    size_t count;
    const lac_plugin *const *const plugins = lac_topologies(&count);
    names_differ("topologies", plugins, count, NULL, 0);
}

static void transports_have_names_of_their_own(void **state)
{
    (void)state;
    size_t count;
    const lac_plugin *const *const plugins = lac_transports(&count);
    names_differ("transports", plugins, count, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compressors_and_their_aliases_have_names_of_their_own),
        cmocka_unit_test(algorithms_have_names_of_their_own),
        cmocka_unit_test(topologies_have_names_of_their_own),
        cmocka_unit_test(transports_have_names_of_their_own),
    };
    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
