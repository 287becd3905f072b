// SPDX-License-Identifier: MIT
// Manifests, as JSON files.
#include "cli/train/manifest.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/report/processor.h"
#include "cli/report/system.h"
#include "cli/train/config.h"
#include "cli/version/onednn.h"
#include "data/dataset.h"
#include "data/file.h"
#include "data/output.h"

enum { LINE_SIZE = 256, ID_SIZE = 17, HEXADECIMAL = 16 };

// Larger whole numbers are not exact in a double.
#define EXACT_MAX 0x1p53

cJSON *cli_manifest_settings(const cli_option *options, const void *settings)
{
    cJSON *const object = cJSON_CreateObject();
    for (const cli_option *o = options; o->name != NULL; o++) {
        char text[CLI_OPTION_TEXT_SIZE];
        cJSON_AddStringToObject(
            object, o->name, cli_option_text(o, settings, text));
    }
    return object;
}

cJSON *cli_manifest_typed(const cli_option *options, const cJSON *settings)
{
    cJSON *const object = cJSON_CreateObject();
    for (const cli_option *o = options; o->name != NULL; o++) {
        const char *const text = cJSON_GetStringValue(
            cJSON_GetObjectItemCaseSensitive(settings, o->name));
        char *end = NULL;
        const double value = strtod(text, &end);
        const bool number =
            o->type == CLI_OPTION_F64 ||
            (o->type == CLI_OPTION_F64_OR_WORD && *end == '\0') ||
            (o->type == CLI_OPTION_U64 && value <= EXACT_MAX);
        cJSON_AddItemToObject(
            object, o->name,
            number ? cJSON_CreateNumber(value) : cJSON_CreateString(text));
    }
    return object;
}

static cJSON *machine(void)
{
    char processor[CLI_PROCESSOR_SIZE], system[CLI_SYSTEM_SIZE];
    cJSON *const o = cJSON_CreateObject();
    cli_processor(processor);
    cJSON_AddStringToObject(o, "processor", processor);
    cJSON_AddNumberToObject(o, "processors", (double)cli_processor_count());
    cli_system_kernel(system);
    if (*system != '\0') {
        cJSON_AddStringToObject(o, "system", system);
    }
    return o;
}

static cJSON *versions(void)
{
    char text[CLI_ONEDNN_SIZE];
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "laconic", lac_version());
    cli_onednn_version(text);
    cJSON_AddStringToObject(o, CLI_MANIFEST_ONEDNN, text);
    cli_onednn_instructions(text);
    cJSON_AddStringToObject(o, CLI_MANIFEST_INSTRUCTIONS, text);
    cJSON_AddStringToObject(o, "compiler", __VERSION__);
    return o;
}

static void add_date(cJSON *o)
{
    char text[LINE_SIZE];
    struct tm date;
    const time_t now = time(NULL);
    if (gmtime_r(&now, &date) != NULL &&
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &date) > 0) {
        cJSON_AddStringToObject(o, "begun", text);
    }
}

lac_status cli_manifest_write(
    const char *folder, uint64_t run_id, const cli_option *options,
    const cJSON *settings, const cJSON *facts)
{
    char path[DATA_PATH_SIZE], id[ID_SIZE];
    LAC_TRY(data_path_join(path, folder, "manifest.json"));
    cJSON *const o = cJSON_CreateObject();
    (void)snprintf(id, sizeof(id), "%016" PRIx64, run_id);
    cJSON_AddStringToObject(o, "run", id);
    cJSON_AddItemToObject(o, "settings", cli_manifest_typed(options, settings));
    cJSON_AddItemToObject(o, "facts", cJSON_Duplicate(facts, true));
    cJSON_AddItemToObject(o, "versions", versions());
    cJSON_AddItemToObject(o, "machine", machine());
    add_date(o);
    char *const text = cJSON_Print(o);
    cJSON_Delete(o);
    if (text == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "%s: no memory for the manifest", path);
    }
    const size_t len = strlen(text);
    text[len] = '\n'; // in place of the zero byte, which is not written
    const lac_status status =
        data_file_write(path, (const uint8_t *)text, len + 1);
    cJSON_free(text);
    return status;
}

static bool is_free(const char *name, const char *const *free)
{
    for (; *free != NULL; free++) {
        if (strcmp(name, *free) == 0) {
            return true;
        }
    }
    return false;
}

// Returns the default of an option as cli_option_text does.
static const char *default_text(
    const cli_option *option, char text[CLI_OPTION_TEXT_SIZE])
{
    union {
        const char *text;
        uint64_t whole;
        double number;
        uint32_t choice;
        bool flag;
        lac_number_or_word open;
    } value = {0};
    cli_option alone = *option;
    alone.offset = 0;
    const char *const given = option->default_value;
    if (given == NULL || (*given == '\0' && option->type != CLI_OPTION_TEXT) ||
        cli_option_store(&alone, given, &value) != LAC_OK) {
        (void)snprintf(
            text, CLI_OPTION_TEXT_SIZE, "%s",
            option->type == CLI_OPTION_FLAG ? "no" : "");
        return text;
    }
    return cli_option_text(&alone, &value, text);
}

// Whether two texts of a setting are equal. Older versions wrote numbers with
// more digits, 0.10000000000000001.
static bool same_setting(const char *a, const char *b)
{
    char *end_of_a = NULL, *end_of_b = NULL;
    const double first = strtod(a, &end_of_a), second = strtod(b, &end_of_b);
    const bool numbers =
        end_of_a > a && *end_of_a == '\0' && end_of_b > b && *end_of_b == '\0';
    return strcmp(a, b) == 0 ||
           (numbers && !(first < second || first > second));
}

static lac_status compare_settings(
    const char *path, const cli_option *options, const cJSON *ours,
    const cJSON *theirs, const char *const *free)
{
    for (const cli_option *o = options; o->name != NULL; o++) {
        char text[CLI_OPTION_TEXT_SIZE];
        const char *const own = cJSON_GetStringValue(
            cJSON_GetObjectItemCaseSensitive(ours, o->name));
        const cJSON *const t =
            cJSON_GetObjectItemCaseSensitive(theirs, o->name);
        if (is_free(o->name, free)) {
            continue;
        }
        const char *const found =
            t == NULL ? default_text(o, text) : cli_config_text(t, text);
        if (found == NULL) {
            return lac_fail(
                LAC_ERR_CORRUPT, "%s: \"%s\" has no value", path, o->name);
        }
        if (!same_setting(own, found)) {
            return lac_fail(
                LAC_ERR_INVALID,
                "--%s is \"%.100s\", but the run to resume was started with "
                "\"%.100s\" (%s)",
                o->name, own, found, path);
        }
    }
    return LAC_OK;
}

// Manifests of older versions have no id.
static uint64_t run_id_of(const cJSON *manifest)
{
    const cJSON *const id = cJSON_GetObjectItemCaseSensitive(manifest, "run");
    return cJSON_IsString(id) ? strtoull(id->valuestring, NULL, HEXADECIMAL)
                              : 0;
}

lac_status cli_manifest_read(const char *path, cJSON **out)
{
    data_bytes bytes = {0};
    LAC_TRY(data_file_read(path, &bytes));
    *out = cJSON_ParseWithLength((const char *)bytes.data, bytes.len);
    data_bytes_free(&bytes);
    return LAC_OK;
}

lac_status cli_manifest_check(
    const char *folder, const cli_option *options, const cJSON *settings,
    const char *const *free, cli_manifest_found *out)
{
    char path[DATA_PATH_SIZE];
    cJSON *manifest = NULL;
    *out = (cli_manifest_found){0};
    LAC_TRY(data_path_join(path, folder, "manifest.json"));
    if (!data_is_file(path)) {
        return LAC_OK;
    }
    out->found = true;
    LAC_TRY(cli_manifest_read(path, &manifest));
    const cJSON *const theirs =
        cJSON_GetObjectItemCaseSensitive(manifest, "settings");
    const lac_status status =
        cJSON_IsObject(theirs)
            ? compare_settings(path, options, settings, theirs, free)
            : lac_fail(
                  LAC_ERR_CORRUPT,
                  "%s: is not the manifest of a run, expected a JSON "
                  "object with settings",
                  path);
    out->run_id = run_id_of(manifest);
    cJSON_Delete(manifest);
    return status;
}

// Returns the manifest in `folder`, or NULL. The caller frees it.
static cJSON *manifest_in(const char *folder)
{
    char path[DATA_PATH_SIZE];
    cJSON *manifest = NULL;
    return data_path_join(path, folder, "manifest.json") == LAC_OK &&
                   data_is_file(path) &&
                   cli_manifest_read(path, &manifest) == LAC_OK
               ? manifest
               : NULL;
}

cJSON *cli_manifest_fact_copy(const char *folder, const char *name)
{
    cJSON *const manifest = manifest_in(folder);
    const cJSON *const facts =
        cJSON_GetObjectItemCaseSensitive(manifest, "facts");
    cJSON *const copy =
        cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(facts, name), true);
    cJSON_Delete(manifest);
    return copy;
}

double cli_manifest_fact(const char *folder, const char *name)
{
    cJSON *const fact = cli_manifest_fact_copy(folder, name);
    const double value = cJSON_IsNumber(fact) ? fact->valuedouble : (double)NAN;
    cJSON_Delete(fact);
    return value;
}

cJSON *cli_manifest_versions_copy(const char *folder)
{
    cJSON *const manifest = manifest_in(folder);
    cJSON *const copy = cJSON_Duplicate(
        cJSON_GetObjectItemCaseSensitive(manifest, "versions"), true);
    cJSON_Delete(manifest);
    return copy;
}
