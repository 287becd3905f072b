// SPDX-License-Identifier: MIT
// Tables in the format of LIBSVM: a file for training and optionally one of the
// same name with ".t" for testing. The distinct labels in ascending order are
// the classes: -1 and +1 become 0 and 1.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/set.h"
#include "data/source.h"

enum { CLASSES_MAX = 1000, UNPACKED_MAX = INT32_MAX };

static lac_status read_table(const char *path, data_table *out)
{
    data_bytes bytes;
    lac_status status = data_file_read(path, &bytes);
    if (status == LAC_OK) {
        status = data_gunzip(&bytes, UNPACKED_MAX);
    }
    if (status == LAC_OK) {
        status = data_libsvm_parse(&bytes, out);
    }
    data_bytes_free(&bytes);
    return status;
}

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

// Collects the distinct labels of a table in ascending order.
static lac_status find_classes(
    const char *path, const data_table *t, double *classes, uint32_t *count_out)
{
    uint32_t count = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (count > 0 &&
            bsearch(&t->label[i], classes, count, sizeof(*classes), by_value) !=
                NULL) {
            continue;
        }
        if (count == CLASSES_MAX) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "%s: has more than %d different labels, expected classes", path,
                CLASSES_MAX);
        }
        classes[count++] = t->label[i];
        qsort(classes, count, sizeof(*classes), by_value);
    }
    *count_out = count;
    return LAC_OK;
}

static lac_status number_labels(
    const char *path, const double *classes, uint32_t count,
    data_part_store *part)
{
    const data_table *const t = &part->table;
    part->labels = malloc(t->count * sizeof(*part->labels));
    if (part->labels == NULL) {
        return data_no_memory(path, t->count);
    }
    for (size_t i = 0; i < t->count; i++) {
        const double *const found =
            bsearch(&t->label[i], classes, count, sizeof(*classes), by_value);
        if (found == NULL) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "%s: example %zu has label %g, expected one of the training "
                "file",
                path, i + 1, t->label[i]);
        }
        part->labels[i] = (uint32_t)(found - classes);
    }
    return LAC_OK;
}

static lac_status table_load_part(
    const char *path, data_set *set, data_part part, double *classes)
{
    data_part_store *const to = &set->parts[part];
    LAC_TRY(read_table(path, &to->table));
    if (part == DATA_TRAIN) {
        LAC_TRY(find_classes(path, &to->table, classes, &set->info.classes));
    }
    LAC_TRY(number_labels(path, classes, set->info.classes, to));
    set->info.count[part] = to->table.count;
    if (to->table.width > set->info.width) {
        set->info.width = to->table.width;
    }
    return LAC_OK;
}

static lac_status table_load(const char *path, data_set *set)
{
    char test[DATA_PATH_SIZE];
    double classes[CLASSES_MAX];
    set->info.channels = set->info.height = 1;
    set->info.width = 1;
    const int len = snprintf(test, sizeof(test), "%s.t", path);
    LAC_TRY(table_load_part(path, set, DATA_TRAIN, classes));
    return len < DATA_PATH_SIZE && data_is_file(test)
               ? table_load_part(test, set, DATA_TEST, classes)
               : LAC_OK;
}

static bool a9a_present(const char *folder)
{
    char path[DATA_PATH_SIZE];
    return data_path_join(path, folder, "a9a") == LAC_OK &&
           data_is_file(path) &&
           data_path_join(path, folder, "a9a.t") == LAC_OK &&
           data_is_file(path);
}

static lac_status a9a_load(const char *folder, data_set *set)
{
    char path[DATA_PATH_SIZE];
    LAC_TRY(data_path_join(path, folder, "a9a"));
    return table_load(path, set);
}

const data_source data_a9a = {
    .plugin =
        {.size = sizeof(data_source),
         .name = "a9a",
         .summary = "32,561 + 16,281 rows of UCI Adult, 123 columns, 2 "
                    "classes"},
    .kind = DATA_TABLE,
    .present = a9a_present,
    .load = a9a_load,
    .obtain = "a folder with a9a and a9a.t in the format of LIBSVM",
};

const data_source data_libsvm = {
    .plugin =
        {.size = sizeof(data_source),
         .name = "libsvm",
         .summary = "any file in the format of LIBSVM, named by --data-dir, "
                    "and FILE.t to test"},
    .kind = DATA_TABLE,
    .present = data_is_file,
    .load = table_load,
    .obtain = "the path of a file in the format of LIBSVM",
};
