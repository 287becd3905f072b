// SPDX-License-Identifier: MIT
#include "folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

enum { FILES_MAX = 8 }; // open ones of a walk

static char folder[FUZZ_PATH_SIZE / 2];

static int remove_one(
    const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info;
    (void)type;
    (void)place;
    return remove(path);
}

static void remove_folder(void)
{
    (void)nftw(folder, remove_one, FILES_MAX, FTW_DEPTH | FTW_PHYS);
}

static bool make_folder(const char *parent)
{
    (void)snprintf(folder, sizeof(folder), "%s/laconic-fuzz-XXXXXX", parent);
    return mkdtemp(folder) != NULL;
}

// Memory is preferred to a disk, on which some parsers flush files.
const char *fuzz_folder(void)
{
    if (folder[0] == '\0') {
        fuzz_require(
            make_folder("/dev/shm") || make_folder("/tmp"),
            "no folder for files");
        fuzz_require(atexit(remove_folder) == 0, "no handler for the exit");
    }
    return folder;
}

const char *fuzz_path(const char *name, char path[FUZZ_PATH_SIZE])
{
    (void)snprintf(path, FUZZ_PATH_SIZE, "%s/%s", fuzz_folder(), name);
    return path;
}

void fuzz_write(const char *name, const void *bytes, size_t size)
{
    char path[FUZZ_PATH_SIZE];
    FILE *const file = fopen(fuzz_path(name, path), "wb");
    fuzz_require(
        file != NULL && fwrite(bytes, 1, size, file) == size &&
            fclose(file) == 0,
        "a file cannot be written");
}
