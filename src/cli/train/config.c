// SPDX-License-Identifier: MIT
// Reads settings from files. Values are numbers, strings or booleans; manifests
// of older versions have strings only.
#include "cli/train/config.h"

#include <stdio.h>
#include <string.h>

#include "data/dataset.h"
#include "data/file.h"

bool cli_config_is_call(const char *name)
{
    static const char *const names[] = {"out",   "resume",  "config",
                                        "json",  "dry-run", "quiet",
                                        "seeds", "threads"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

const char *cli_config_text(const cJSON *value, char text[CLI_OPTION_TEXT_SIZE])
{
    if (cJSON_IsNumber(value)) {
        cli_number_text(cJSON_GetNumberValue(value), text);
        return text;
    }
    if (cJSON_IsBool(value)) {
        return cJSON_IsTrue(value) ? "yes" : "no";
    }
    return cJSON_GetStringValue(value);
}

static lac_status store_flag(
    const cli_option *o, const char *text, void *settings)
{
    if (strcmp(text, "no") == 0) {
        return LAC_OK;
    }
    return strcmp(text, "yes") == 0
               ? cli_option_store(o, "", settings)
               : lac_fail(
                     LAC_ERR_INVALID, "--%s is \"%.100s\", expected yes or no",
                     o->name, text);
}

static lac_status store_setting(
    const cli_config *c, const cli_option *o, const cJSON *value,
    const char *path)
{
    char text[CLI_OPTION_TEXT_SIZE];
    const char *const found = cli_config_text(value, text);
    if (found == NULL) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: \"%s\" is no number, string or boolean, expected a value of "
            "--%s",
            path, o->name, o->name);
    }
    if (o->type == CLI_OPTION_FLAG) {
        return store_flag(o, found, c->settings);
    }
    return cli_option_store(o, found, c->settings);
}

static lac_status store_all(
    cli_config *c, const cJSON *settings, const char *path)
{
    for (const cJSON *s = settings->child; s != NULL; s = s->next) {
        const cli_option *o = c->options;
        while (o->name != NULL && strcmp(o->name, s->string) != 0) {
            o++;
        }
        if (o->name == NULL) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: \"%.100s\" is not a setting, expected the name of an "
                "option",
                path, s->string);
        }
        const uint64_t bit = (uint64_t)1 << (o - c->options);
        if ((c->given & bit) == 0 && !cli_config_is_call(o->name)) {
            LAC_TRY(store_setting(c, o, s, path));
            c->given |= bit;
        }
    }
    return LAC_OK;
}

lac_status cli_config_read(cli_config *c, const char *path, cJSON **file_out)
{
    data_bytes bytes = {0};
    LAC_TRY(data_file_read(path, &bytes));
    *file_out = cJSON_ParseWithLength((const char *)bytes.data, bytes.len);
    data_bytes_free(&bytes);
    const cJSON *const settings =
        cJSON_GetObjectItemCaseSensitive(*file_out, "settings");
    if (!cJSON_IsObject(settings)) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: is not the manifest of a run, expected a JSON object with "
            "settings",
            path);
    }
    return store_all(c, settings, path);
}

lac_status cli_config_resume(
    cli_config *c, const char *folder, cJSON **file_out)
{
    char path[DATA_PATH_SIZE];
    LAC_TRY(data_path_join(path, folder, "manifest.json"));
    return data_is_file(path) ? cli_config_read(c, path, file_out) : LAC_OK;
}
