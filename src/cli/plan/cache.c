// SPDX-License-Identifier: MIT
// A file a time: bench-HASH.txt, where HASH is that of the key. After the key
// follows a line "seconds X".
#include "cli/plan/cache.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/data/fetch.h"
#include "data/dataset.h"
#include "data/file.h"
#include "data/output.h"

enum { NAME_SIZE = 32, TIME_SIZE = 64 };

static lac_status cache_path(
    const char *key, char folder[DATA_PATH_SIZE], char path[DATA_PATH_SIZE])
{
    char name[NAME_SIZE];
    LAC_TRY(cli_cache_folder(folder));
    (void)snprintf(
        name, sizeof(name), "bench-%016" PRIx64 ".txt", lac_name_hash(key));
    return data_path_join(path, folder, name);
}

// Reads "seconds X\n", which must be all of text[0..len).
static bool parse_time(const char *text, size_t len, double *out)
{
    char line[TIME_SIZE] = {0};
    double seconds = 0;
    int end = 0;
    if (len == 0 || len >= sizeof(line)) {
        return false;
    }
    memcpy(line, text, len);
    if (sscanf(line, "seconds %lg\n%n", &seconds, &end) != 1 ||
        (size_t)end != len || line[len - 1] != '\n' || !isfinite(seconds) ||
        seconds <= 0) {
        return false;
    }
    *out = seconds;
    return true;
}

bool plan_cache_read(const char *key, double *seconds_out)
{
    char folder[DATA_PATH_SIZE], path[DATA_PATH_SIZE];
    const size_t len = strlen(key);
    data_bytes file = {0};
    if (cache_path(key, folder, path) != LAC_OK || !data_is_file(path) ||
        data_file_read_like(path, key, len, &file) != LAC_OK) {
        return false;
    }
    const bool good =
        file.len > len && memcmp(file.data, key, len) == 0 &&
        parse_time((const char *)file.data + len, file.len - len, seconds_out);
    data_bytes_free(&file);
    return good;
}

// Whether something else has the name of the file, such as a pipe, which would
// be written to.
static bool is_taken(const char *path)
{
    return access(path, F_OK) == 0 && !data_is_file(path);
}

void plan_cache_write(const char *key, double seconds)
{
    char folder[DATA_PATH_SIZE], path[DATA_PATH_SIZE];
    const size_t size = strlen(key) + TIME_SIZE;
    char *const text = malloc(size);
    if (text != NULL && cache_path(key, folder, path) == LAC_OK &&
        data_folder_make(folder) == LAC_OK && !is_taken(path)) {
        const int len = snprintf(text, size, "%sseconds %.17g\n", key, seconds);
        (void)!data_file_write(path, (const uint8_t *)text, (size_t)len);
    }
    free(text);
}
