// SPDX-License-Identifier: MIT
// Rejects files that are not safetensors before they are loaded. A file that is
// one begins with the length of its header in eight bytes, the lowest first,
// and the header with {. A length of 2^56 is none, so that of JSON is not: its
// eighth byte is a character.
#include "cli/files/model.h"

#include <stdio.h>
#include <string.h>

#include "data/file.h"

enum { LENGTH_SIZE = 8, BEGIN_SIZE = LENGTH_SIZE + 1 };

// Returns false only for a file that was read and is no safetensors. A file
// that cannot be read, or only once, is left to train_model_open.
static bool may_be_safetensors(const char *path)
{
    unsigned char begin[BEGIN_SIZE] = {0};
    FILE *const file = data_is_file(path) ? fopen(path, "rb") : NULL;
    if (file == NULL) {
        return true;
    }
    const size_t len = fread(begin, 1, sizeof(begin), file);
    (void)fclose(file);
    return len == sizeof(begin) && begin[LENGTH_SIZE - 1] == 0 &&
           begin[LENGTH_SIZE] == '{';
}

static lac_status not_safetensors(const char *path)
{
    char folder[DATA_PATH_SIZE], manifest[DATA_PATH_SIZE];
    const char *const slash = strrchr(path, '/');
    const int len = slash == NULL ? 0 : (int)(slash - path);
    const int written =
        slash == NULL ? snprintf(folder, sizeof(folder), ".")
                      : snprintf(folder, sizeof(folder), "%.*s", len, path);
    const bool in_run =
        written > 0 && (size_t)written < sizeof(folder) &&
        data_path_join(manifest, folder, "manifest.json") == LAC_OK &&
        data_is_file(manifest);
    return in_run ? lac_fail(
                        LAC_ERR_INVALID,
                        "%s: is not a safetensors file, expected the folder of "
                        "its run, %s",
                        path, folder)
                  : lac_fail(
                        LAC_ERR_INVALID,
                        "%s: is not a safetensors file, expected "
                        "model.safetensors of `laconic train` or its folder",
                        path);
}

lac_status cli_model_open(
    train_model *m, const char *path, uint32_t batch, uint32_t steps)
{
    if (!may_be_safetensors(path)) {
        *m = (train_model){0};
        return not_safetensors(path);
    }
    return train_model_open(m, path, batch, steps);
}
