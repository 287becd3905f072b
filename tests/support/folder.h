// SPDX-License-Identifier: MIT
// A temporary folder for tests of files, which is their working directory.
#ifndef LACONIC_TESTS_FOLDER_H
#define LACONIC_TESTS_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/dataset.h"
#include "data/file.h"
#include "data/output.h"
#include "lac_test.h"

static char folder[64];

static inline int enter_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/lac_test_XXXXXX");
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

// Removes a file, or a folder with its contents. Returns the number of entries.
static inline size_t remove_all(const char *path)
{
    size_t count = 0;
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    if (!S_ISDIR(info.st_mode)) {
        assert_int_equal(unlink(path), 0);
        return 1;
    }
    DIR *const list = opendir(path);
    assert_non_null(list);
    for (struct dirent *d = readdir(list); d != NULL; d = readdir(list)) {
        char inside[DATA_PATH_SIZE];
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0) {
            assert_ok(data_path_join(inside, path, d->d_name));
            count += remove_all(inside);
        }
    }
    (void)closedir(list);
    if (strcmp(path, ".") == 0) {
        return count;
    }
    assert_int_equal(rmdir(path), 0);
    return count + 1;
}

// Empties the folder and returns the number of files and folders in it.
static inline size_t empty_folder(void)
{
    return remove_all(".");
}

static inline int leave_folder(void **state)
{
    (void)state;
    (void)empty_folder();
    return chdir("/") != 0 || rmdir(folder) != 0;
}

// A test with a folder of its own.
#define IN_FOLDER(test)                                                        \
    cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

// Writes a file directly, without flush and rename.
static inline void put_file(const char *path, const void *data, size_t len)
{
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static inline void put_text(const char *path, const char *text)
{
    put_file(path, text, strlen(text));
}

static inline lac_status write_text(const char *path, const char *text)
{
    return data_file_write(path, (const uint8_t *)text, strlen(text));
}

static inline void assert_holds(const char *path, const char *text)
{
    data_bytes file;
    assert_ok(data_file_read(path, &file));
    assert_int_equal(file.len, strlen(text));
    assert_memory_equal(file.data, text, file.len);
    data_bytes_free(&file);
}

#endif
