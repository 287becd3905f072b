// SPDX-License-Identifier: MIT
// laconic list: the names that specs can use, and their settings.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "cli/report/pager.h"
#include "cli/report/table.h"
#include "cli/report/wrap.h"
#include "cli/train/defaults.h"

enum { NAMES_MAX = 64, NAME_SIZE = 64 };

typedef struct settings {
    bool no_pager;
    bool json;
} settings;

static const cli_option options[] = {
    {.name = "no-pager",
     .type = CLI_OPTION_FLAG,
     .offset = offsetof(settings, no_pager),
     .help = "do not show the list in a pager on a terminal"},
    CLI_OPTION_JSON(settings),
    {0},
};

// What is listed: everything if the user gave no words.
typedef struct selection {
    size_t count;
    char *const *words;
} selection;

// The word for the defaults of train, which are no kind.
static const char defaults[] = "defaults";

static bool names_kind(const char *word, const cli_kind *kind)
{
    return strcmp(word, kind->name) == 0 || strcmp(word, kind->option) == 0;
}

static bool is_kind(const char *word)
{
    size_t count = 0;
    const cli_kind *const kinds = cli_kinds(&count);
    bool found = strcmp(word, defaults) == 0;
    for (size_t k = 0; k < count; k++) {
        found = found || names_kind(word, &kinds[k]);
    }
    return found;
}

// Whether an item of any kind has this name, or one that contains it.
static bool is_name(const char *word, bool contains)
{
    size_t count = 0;
    cli_item item;
    const cli_kind *const kinds = cli_kinds(&count);
    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; cli_kind_item(&kinds[k], i, &item); i++) {
            if (contains ? strstr(item.name, word) != NULL
                         : strcmp(word, item.name) == 0) {
                return true;
            }
        }
    }
    return false;
}

// A word is a kind, else a name, else a part of names: sign is not signum.
static bool selects(
    const char *word, const cli_kind *kind, const cli_item *item)
{
    if (is_kind(word)) {
        return names_kind(word, kind);
    }
    return is_name(word, false) ? strcmp(word, item->name) == 0
                                : strstr(item->name, word) != NULL;
}

static bool is_selected(
    const selection *s, const cli_kind *kind, const cli_item *item)
{
    bool selected = s->count == 0;
    for (size_t i = 0; i < s->count; i++) {
        selected = selected || selects(s->words[i], kind, item);
    }
    return selected;
}

static bool has_word(const selection *s, const char *word)
{
    bool found = s->count == 0;
    for (size_t i = 0; i < s->count; i++) {
        found = found || strcmp(s->words[i], word) == 0;
    }
    return found;
}

// Rejects a word that selects nothing.
static lac_status check_word(const char *word)
{
    if (is_kind(word) || is_name(word, true)) {
        return LAC_OK;
    }
    char name_only[NAME_SIZE];
    (void)snprintf(
        name_only, sizeof(name_only), "%.*s", (int)strcspn(word, ":+"), word);
    if (strlen(name_only) < strlen(word) && is_name(name_only, false)) {
        return lac_fail(
            LAC_ERR_NOTFOUND, "list: \"%s\" is a spec, expected a name: %s",
            word, name_only);
    }
    size_t count = 0, distance = CLI_CLOSE + 1;
    const cli_kind *const kinds = cli_kinds(&count);
    const char *closest =
        cli_closer(word, defaults, &distance) ? defaults : NULL;
    for (size_t k = 0; k < count; k++) {
        const char *const name = cli_closest(&kinds[k], word, &distance);
        closest = name == NULL ? closest : name;
        if (cli_closer(word, kinds[k].name, &distance)) {
            closest = kinds[k].name;
        }
    }
    return lac_fail(
        LAC_ERR_NOTFOUND, "list: nothing is named \"%s\"%s%s%s", word,
        closest == NULL ? "" : "; did you mean ",
        closest == NULL ? "" : closest, closest == NULL ? "" : "?");
}

static const char *type_name(lac_param_type type)
{
    switch (type) {
    case LAC_PARAM_BOOL:
        return "bool";
    case LAC_PARAM_U32:
        return "u32";
    case LAC_PARAM_F64:
        return "f64";
    case LAC_PARAM_CHOICE:
        return "choice";
    case LAC_PARAM_F64_OR_WORD:
        return "f64-or-word";
    case LAC_PARAM_TEXT:
        return "text";
    case LAC_PARAM_SPEC:
        return "spec";
    }
    return "unknown";
}

static bool has_range(const lac_param *param)
{
    return param->type == LAC_PARAM_U32 || param->type == LAC_PARAM_F64 ||
           param->type == LAC_PARAM_F64_OR_WORD;
}

// "dithering with norm=2"
static void write_summary(const cli_item *item, char *text, size_t size)
{
    if (item->preset == NULL) {
        (void)snprintf(text, size, "%s", item->plugin->summary);
    } else {
        (void)snprintf(
            text, size, "%s with %s", item->plugin->name, item->preset);
    }
}

// A default as a JSON value of its type: a bool, a number, or a string.
static cJSON *default_json(const lac_param *param, const char *text)
{
    char *end = NULL;
    const double number = strtod(text, &end);
    if (param->type == LAC_PARAM_BOOL) {
        return cJSON_CreateBool(strcmp(text, "yes") == 0);
    }
    if (has_range(param) && end != text && *end == '\0') {
        return cJSON_CreateNumber(number);
    }
    return cJSON_CreateString(text);
}

static cJSON *param_json(const cli_item *item, const lac_param *param)
{
    char text[CLI_DEFAULT_SIZE];
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", param->name);
    cJSON_AddStringToObject(o, "type", type_name(param->type));
    cJSON_AddItemToObject(
        o, "default", default_json(param, cli_item_default(item, param, text)));
    if (has_range(param)) {
        cJSON_AddNumberToObject(o, "min", param->min);
        cJSON_AddNumberToObject(o, "max", param->max);
        cJSON_AddBoolToObject(o, "above_min", param->above_min);
    } else {
        cJSON_AddNullToObject(o, "min");
        cJSON_AddNullToObject(o, "max");
    }
    cJSON_AddItemToObject(o, "choices", cli_json_words(param->choices, '|'));
    cJSON_AddItemToObject(o, "aliases", cli_json_words(param->aliases, ' '));
    cJSON_AddStringToObject(o, "help", param->help);
    return o;
}

// The specs of an example: that of the algorithm and that of the compressor.
static cJSON *example_json(const lac_plugin *plugin)
{
    char spec[CLI_CELL_SIZE];
    const char *const compressor = strchr(plugin->example, ' ');
    cJSON *const o = cJSON_CreateObject();
    (void)snprintf(
        spec, sizeof(spec), "%.*s", (int)strcspn(plugin->example, " "),
        plugin->example);
    cJSON_AddStringToObject(o, "algorithm", spec);
    cJSON_AddItemToObject(
        o, "compressor",
        cli_json_text(compressor == NULL ? NULL : compressor + 1));
    return o;
}

static cJSON *item_json(const cli_item *item)
{
    char summary[CLI_CELL_SIZE];
    const lac_param *param;
    write_summary(item, summary, sizeof(summary));
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", item->name);
    cJSON_AddStringToObject(o, "summary", summary);
    if (item->plugin->example != NULL) {
        cJSON_AddItemToObject(o, "example", example_json(item->plugin));
    }
    cJSON *const params = cJSON_AddArrayToObject(o, "params");
    for (size_t i = 0; (param = cli_item_param(item, i)) != NULL; i++) {
        cJSON_AddItemToArray(params, param_json(item, param));
    }
    return o;
}

static cJSON *list_json(const selection *s)
{
    size_t count = 0;
    const cli_kind *const kinds = cli_kinds(&count);
    cJSON *const o = cJSON_CreateObject();
    for (size_t k = 0; k < count; k++) {
        cli_item item;
        cJSON *const items = cJSON_AddArrayToObject(o, kinds[k].name);
        for (size_t i = 0; cli_kind_item(&kinds[k], i, &item); i++) {
            if (is_selected(s, &kinds[k], &item)) {
                cJSON_AddItemToArray(items, item_json(&item));
            }
        }
    }
    if (has_word(s, defaults)) {
        cJSON_AddItemToObject(o, defaults, cli_train_defaults_json());
    }
    return o;
}

// "0 to 1", "above 0 to 1", or "1 or more" if only the type limits it.
static void write_numbers(const lac_param *param, char *text, size_t size)
{
    const char *const above = param->above_min ? "above " : "";
    if (isfinite(param->max) && param->max < UINT32_MAX) {
        (void)snprintf(
            text, size, "%s%.10g to %.10g", above, param->min, param->max);
    } else {
        (void)snprintf(
            text, size, "%s%.10g%s", above, param->min,
            param->above_min ? "" : " or more");
    }
}

// "yes or no", "2 or inf", "above 0 to 1", "auto or 0 to 1"
static void write_range(const lac_param *param, char *text, size_t size)
{
    const char *at = param->type == LAC_PARAM_BOOL ? "yes|no" : param->choices;
    size_t used = 0;
    text[0] = '\0';
    while (at != NULL && used < size) {
        const size_t len = strcspn(at, "|");
        const bool last = at[len] == '\0';
        used += (size_t)snprintf(
            text + used, size - used, "%.*s%s", (int)len, at,
            last && !has_range(param) ? "" : " or ");
        at = last ? NULL : at + len + 1;
    }
    if (has_range(param) && used < size) {
        write_numbers(param, text + used, size - used);
    } else if (used == 0) {
        (void)snprintf(text, size, "%s", type_name(param->type));
    }
}

static void add_params(cli_table *table, const cli_item *item)
{
    char range[CLI_CELL_SIZE], default_value[CLI_DEFAULT_SIZE];
    const lac_param *param;
    for (size_t i = 0; (param = cli_item_param(item, i)) != NULL; i++) {
        write_range(param, range, sizeof(range));
        cli_table_add(
            table, "    %s=%s", param->name,
            cli_item_default(item, param, default_value));
        cli_table_add(table, "  %s (%s)", param->help, range);
    }
}

static void add_item(cli_table *table, const cli_item *item, bool params)
{
    char text[CLI_CELL_SIZE];
    write_summary(item, text, sizeof(text));
    cli_table_add(table, "%s", item->name);
    cli_table_add(table, "%s", text);
    if (item->plugin->example != NULL) {
        char example[CLI_EXAMPLE_SIZE];
        cli_table_add(table, "    example");
        cli_table_add(
            table, "  %s", cli_example_options(item->plugin, example));
    }
    if (params) {
        add_params(table, item);
    }
}

// An alias has the settings of its plug-in, which may be listed above it.
static void print_kind(const selection *s, const cli_kind *kind)
{
    cli_item item;
    cli_table table = cli_table_make("ll", "  ");
    for (size_t i = 0; cli_kind_item(kind, i, &item); i++) {
        const cli_item plugin = {item.plugin->name, item.plugin, NULL};
        if (is_selected(s, kind, &item)) {
            const bool listed =
                item.preset != NULL && is_selected(s, kind, &plugin);
            add_item(&table, &item, !listed);
        }
    }
    if (table.rows == 0) {
        return;
    }
    printf("%s\n\n", kind->name);
    cli_table_print(&table, stdout);
    printf("\n");
    if (kind->note != NULL &&
        (has_word(s, kind->name) || has_word(s, kind->option))) {
        printf("  ");
        cli_wrap(kind->note, 2, stdout);
        printf("\n");
    }
}

static void print_list(const void *chosen)
{
    const selection *const s = chosen;
    size_t count = 0;
    const cli_kind *const kinds = cli_kinds(&count);
    for (size_t k = 0; k < count; k++) {
        print_kind(s, &kinds[k]);
    }
    if (has_word(s, defaults)) {
        printf("defaults of train\n\n");
        cli_train_print_defaults(stdout);
        printf("\n");
    }
    cli_wrap(
        "A spec is name:key=value,key=value; the first key may be omitted, as "
        "in top-k:0.01.",
        0, stdout);
}

static int list_run(const void *given, size_t count, char *const *arguments)
{
    const settings *const s = given;
    const selection chosen = {count, arguments};
    for (size_t i = 0; i < count; i++) {
        const lac_status status = check_word(arguments[i]);
        if (status != LAC_OK) {
            return cli_rejected("list", status);
        }
    }
    if (s->json) {
        return cli_json_print(list_json(&chosen), stdout);
    }
    if (s->no_pager) {
        cli_pager_disable();
    }
    cli_paged(print_list, &chosen);
    return CLI_GOOD;
}

const cli_command cmd_list = {
    .name = "list",
    .summary = "list compressors, algorithms, models and their settings",
    .arguments = "[NAME]...",
    .arguments_max = NAMES_MAX,
    .completes = "@kinds|defaults|@compressors|@topologies|@transports|"
                 "@algorithms|@models|@datasets",
    .details =
        "Print all names that specs can use, with their settings, defaults,\n"
        "ranges and meaning, an example of every algorithm, and those "
        "defaults of\n"
        "`laconic train` that depend on the run. NAME selects a kind "
        "(compressors,\n"
        "topologies, transports, algorithms, models, datasets, defaults), the\n"
        "entry of that name, or else all entries whose names contain it.\n"
        "In JSON a default has the type of the setting (true, 127, \"inf\");\n"
        "`min`, `max` and `choices` are null where there are none; `above_min` "
        "is\n"
        "true if the minimum itself is rejected.",
    .options = options,
    .example = "Print the settings of an algorithm, and of all compressors:\n"
               "\n"
               "    laconic list choco\n"
               "    laconic list compressors",
    .settings_size = sizeof(settings),
    .run = list_run,
};
