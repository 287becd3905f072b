// SPDX-License-Identifier: MIT
// Converts PNG sprites to the binary batches of CIFAR-10.
#include "data/sprites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/cifar.h"
#include "data/dataset.h"
#include "data/png.h"
#include "data/sha256.h"

enum {
    AREA = DATA_CIFAR_SIDE * DATA_CIFAR_SIDE,
    BATCH_SIZE = DATA_CIFAR_BATCH * DATA_CIFAR_RECORD,
    LABELS = DATA_CIFAR_FILES * DATA_CIFAR_BATCH,
};

static const char *const sums[DATA_CIFAR_FILES] = {
    "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
};

// Every digit of a list "[6,9,9,...]" is a label.
static lac_status read_labels(
    const char *folder, const char *name, size_t count, uint8_t *out)
{
    char path[DATA_PATH_SIZE];
    data_bytes bytes = {0};
    size_t found = 0;
    lac_status status = data_path_join(path, folder, name);
    if (status == LAC_OK) {
        status = data_file_read(path, &bytes);
    }
    for (size_t i = 0; status == LAC_OK && i < bytes.len; i++) {
        const uint8_t c = bytes.data[i];
        if (c >= '0' && c <= '9') {
            if (found < count) {
                out[found] = (uint8_t)(c - '0');
            }
            found++;
        }
    }
    if (status == LAC_OK && found != count) {
        status = lac_fail(
            LAC_ERR_CORRUPT, "%s: has %zu labels, expected %zu", path, found,
            count);
    }
    data_bytes_free(&bytes);
    return status;
}

static void write_records(
    const uint8_t *pixels, const uint8_t *labels, uint8_t *out)
{
    for (size_t i = 0; i < DATA_CIFAR_BATCH; i++) {
        const uint8_t *const row = pixels + i * AREA * DATA_PNG_CHANNELS;
        *out++ = labels[i];
        for (size_t c = 0; c < DATA_PNG_CHANNELS; c++) {
            for (size_t k = 0; k < AREA; k++) {
                *out++ = row[k * DATA_PNG_CHANNELS + c];
            }
        }
    }
}

static lac_status write_batch(const data_bytes *bytes)
{
    FILE *const file = fopen(bytes->name, "wb");
    bool good =
        file != NULL && fwrite(bytes->data, 1, bytes->len, file) == bytes->len;
    if (file != NULL) {
        good = fclose(file) == 0 && good;
    }
    return good ? LAC_OK
                : lac_fail(
                      LAC_ERR_INVALID, "%s: cannot write: %s", bytes->name,
                      strerror(errno));
}

static lac_status read_sprite(
    const char *folder, size_t file, uint8_t **pixels_out)
{
    char name[32], path[DATA_PATH_SIZE];
    data_bytes bytes = {0};
    (void)snprintf(name, sizeof(name), "%s.png", data_cifar_name(file));
    lac_status status = data_path_join(path, folder, name);
    if (status == LAC_OK) {
        status = data_file_read(path, &bytes);
    }
    if (status == LAC_OK) {
        status = data_png_read(&bytes, AREA, DATA_CIFAR_BATCH, pixels_out);
    }
    data_bytes_free(&bytes);
    return status;
}

static lac_status convert_batch(
    const char *from, const char *to, size_t file, const uint8_t *labels)
{
    char name[32], path[DATA_PATH_SIZE];
    uint8_t *pixels = NULL;
    (void)snprintf(name, sizeof(name), "%s.bin", data_cifar_name(file));
    LAC_TRY(data_path_join(path, to, name));
    LAC_TRY(read_sprite(from, file, &pixels));
    lac_status status = LAC_OK;
    data_bytes batch = {path, malloc(BATCH_SIZE), BATCH_SIZE};
    if (batch.data == NULL) {
        status = data_no_memory(path, BATCH_SIZE);
    } else {
        write_records(pixels, labels, batch.data);
        status = data_sha256_check(&batch, sums[file]);
    }
    if (status == LAC_OK) {
        status = write_batch(&batch);
    }
    data_bytes_free(&batch);
    free(pixels);
    return status;
}

lac_status data_sprites_convert(
    const char *from, const char *to,
    void (*progress)(void *context, const char *what), void *context)
{
    const size_t training = LABELS - DATA_CIFAR_BATCH;
    uint8_t *const labels = calloc(1, LABELS);
    if (labels == NULL) {
        return data_no_memory(from, LABELS);
    }
    lac_status status =
        read_labels(from, "train_lables.json", training, labels);
    if (status == LAC_OK) {
        status = read_labels(
            from, "test_lables.json", DATA_CIFAR_BATCH, labels + training);
    }
    for (size_t i = 0; status == LAC_OK && i < DATA_CIFAR_FILES; i++) {
        char what[64];
        (void)snprintf(what, sizeof(what), "converting %s", data_cifar_name(i));
        progress(context, what);
        status = convert_batch(from, to, i, labels + i * DATA_CIFAR_BATCH);
    }
    free(labels);
    return status;
}
