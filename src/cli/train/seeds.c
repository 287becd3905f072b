// SPDX-License-Identifier: MIT
// Lists of seeds. Each names a folder, so none may come twice.
#include "cli/train/seeds.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/train/manifest.h"
#include "data/file.h"
#include "train/safetensors_file.h"

enum { NAME_SIZE = 32 };

static const char seed_prefix[] = "seed-";

static bool has_seed(const uint64_t *seeds, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) {
        if (seeds[i] == seed) {
            return true;
        }
    }
    return false;
}

lac_status cli_seeds_parse(
    const char *text, uint64_t out[CLI_SEEDS_MAX], size_t *count_out)
{
    const char *at = text;
    size_t count = 0;
    bool good = true, more = true;
    while (good && more) {
        good = count < CLI_SEEDS_MAX && train_take_number(&at, &out[count]) &&
               !has_seed(out, count, out[count]);
        count++;
        more = *at == ',';
        at += more;
    }
    if (!good || *at != '\0') {
        return lac_fail(
            LAC_ERR_INVALID,
            "--seeds is \"%.100s\", expected up to %d different whole numbers "
            "such as 1,2,3",
            text, CLI_SEEDS_MAX);
    }
    *count_out = count;
    return LAC_OK;
}

void cli_seeds_text(
    const uint64_t *seeds, size_t count, char text[CLI_SEEDS_SIZE])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(
            text + used, CLI_SEEDS_SIZE - used, "%s%" PRIu64, i == 0 ? "" : ",",
            seeds[i]);
    }
}

lac_status cli_seeds_folder(
    const char *folder, uint64_t seed, char path[DATA_PATH_SIZE])
{
    char name[NAME_SIZE];
    (void)snprintf(name, sizeof(name), "%s%" PRIu64, seed_prefix, seed);
    return data_path_join(path, folder, name);
}

// Reads the seed of a folder's name.
static bool seed_of_name(const char *name, uint64_t *out)
{
    const size_t len = sizeof(seed_prefix) - 1;
    if (strncmp(name, seed_prefix, len) != 0) {
        return false;
    }
    name += len;
    return train_take_number(&name, out) && *name == '\0';
}

bool cli_seeds_is_name(const char *name)
{
    uint64_t ignored;
    return seed_of_name(name, &ignored);
}

bool cli_seeds_next(const char *folder, uint64_t least, uint64_t *out)
{
    bool found = false;
    DIR *const names = opendir(folder);
    if (names == NULL) {
        return false;
    }
    for (const struct dirent *entry; (entry = readdir(names)) != NULL;) {
        uint64_t seed = 0;
        if (seed_of_name(entry->d_name, &seed) && seed >= least &&
            (!found || seed < *out)) {
            found = true;
            *out = seed;
        }
    }
    (void)closedir(names);
    return found;
}

bool cli_seeds_manifest(const char *folder, char path[DATA_PATH_SIZE])
{
    char run[DATA_PATH_SIZE];
    uint64_t seed = 0;
    for (bool more = cli_seeds_next(folder, 0, &seed); more;
         more = seed < UINT64_MAX && cli_seeds_next(folder, seed + 1, &seed)) {
        if (cli_seeds_folder(folder, seed, run) == LAC_OK &&
            data_path_join(path, run, "manifest.json") == LAC_OK &&
            data_is_file(path)) {
            return true;
        }
    }
    return false;
}

// Lists the seeds of --seeds of the run that a manifest describes.
static lac_status planned_seeds(
    const char *path, uint64_t out[CLI_SEEDS_MAX], size_t *count_out)
{
    cJSON *manifest = NULL;
    LAC_TRY(cli_manifest_read(path, &manifest));
    const char *const text =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(manifest, "settings"), "seeds"));
    const lac_status status = text != NULL && *text != '\0'
                                  ? cli_seeds_parse(text, out, count_out)
                                  : LAC_OK;
    cJSON_Delete(manifest);
    return status;
}

lac_status cli_seeds_find(
    const char *folder, uint64_t out[CLI_SEEDS_MAX], size_t *count_out)
{
    char path[DATA_PATH_SIZE];
    uint64_t seed = 0;
    size_t count = 0;
    if (cli_seeds_manifest(folder, path)) {
        LAC_TRY(planned_seeds(path, out, &count));
    }
    for (bool more = cli_seeds_next(folder, 0, &seed);
         more && count < CLI_SEEDS_MAX;
         more = seed < UINT64_MAX && cli_seeds_next(folder, seed + 1, &seed)) {
        if (!has_seed(out, count, seed)) {
            out[count++] = seed;
        }
    }
    *count_out = count;
    return LAC_OK;
}
