// SPDX-License-Identifier: MIT
// Stands in for libFuzzer: runs every file of the folders it is given through
// the target, with any compiler.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { PATH_SIZE = 4096 };

static int run_file(const char *path)
{
    FILE *const file = fopen(path, "rb");
    long size = -1;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        size = ftell(file);
        rewind(file);
    }
    uint8_t *const data = size < 0 ? NULL : malloc((size_t)size + 1);
    const int good =
        data != NULL && fread(data, 1, (size_t)size, file) == (size_t)size;
    if (good) {
        (void)printf("%s\n", path);
        (void)fflush(stdout);
        (void)LLVMFuzzerTestOneInput(data, (size_t)size);
    } else {
        (void)fprintf(stderr, "replay: cannot read %s\n", path);
    }
    free(data);
    if (file != NULL) {
        (void)fclose(file);
    }
    return good ? 0 : 1;
}

static int run_folder(const char *folder, size_t *count)
{
    DIR *const dir = opendir(folder);
    if (dir == NULL) {
        (void)fprintf(stderr, "replay: cannot open %s\n", folder);
        return 1;
    }
    int failed = 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[PATH_SIZE];
        if (entry->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        failed |= run_file(path);
        ++*count;
    }
    (void)closedir(dir);
    return failed;
}

int main(int argc, char **argv)
{
    size_t count = 0;
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        failed |= run_folder(argv[i], &count);
    }
    (void)printf("%zu inputs\n", count);
    return failed != 0 || count == 0;
}
