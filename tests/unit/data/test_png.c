// SPDX-License-Identifier: MIT
// PNG images with every filter are read; damaged ones are rejected.
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "data/png.h"
#include "lac_test.h"

enum {
    WIDTH = 5,
    HEIGHT = 12,
    ROW = WIDTH * DATA_PNG_CHANNELS,
    FILE_SIZE = 4096,
};

static uint8_t pixels[HEIGHT * ROW];
static uint8_t file[FILE_SIZE];
static size_t file_len;

static void put(uint32_t number)
{
    for (int i = 3; i >= 0; i--) {
        file[file_len++] = (uint8_t)(number >> 8 * i);
    }
}

static void put_chunk(const char *type, const void *data, size_t len)
{
    put((uint32_t)len);
    memcpy(file + file_len, type, 4);
    if (len > 0) {
        memcpy(file + file_len + 4, data, len);
    }
    const uLong sum = crc32(0, file + file_len, (uInt)len + 4);
    file_len += len + 4;
    put((uint32_t)sum);
}

static int guess(int filter, int left, int up, int corner)
{
    const int p = left + up - corner;
    const int a = abs(p - left), b = abs(p - up), c = abs(p - corner);
    switch (filter) {
    case 1:
        return left;
    case 2:
        return up;
    case 3:
        return (left + up) / 2;
    case 4:
        return a <= b && a <= c ? left : b <= c ? up : corner;
    default:
        return 0;
    }
}

// Writes the file with filters first, first + 1, ... modulo 5.
static void make_file(int first)
{
    static const uint8_t header[] = {0,      0, 0, WIDTH, 0, 0, 0,
                                     HEIGHT, 8, 2, 0,     0, 0};
    uint8_t raw[HEIGHT * (ROW + 1)], packed[FILE_SIZE];
    for (int y = 0; y < HEIGHT; y++) {
        const int filter = (y + first) % 5;
        raw[y * (ROW + 1)] = (uint8_t)filter;
        for (int i = 0; i < ROW; i++) {
            const uint8_t *const at = pixels + y * ROW + i;
            const int left = i < 3 ? 0 : at[-3], up = y == 0 ? 0 : at[-ROW];
            const int corner = i < 3 || y == 0 ? 0 : at[-ROW - 3];
            raw[y * (ROW + 1) + 1 + i] =
                (uint8_t)(*at - guess(filter, left, up, corner));
        }
    }
    uLongf len = sizeof(packed);
    assert_int_equal(compress(packed, &len, raw, sizeof(raw)), Z_OK);
    file_len = 0;
    memcpy(file, "\x89PNG\r\n\x1a\n", 8);
    file_len = 8;
    put_chunk("IHDR", header, sizeof(header));
    put_chunk("tEXt", "hello", 5);
    put_chunk("IDAT", packed, 10);
    put_chunk("IDAT", NULL, 0);
    put_chunk("IDAT", packed + 10, len - 10);
    put_chunk("IEND", NULL, 0);
}

static int make_pixels(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sizeof(pixels); i++) {
        pixels[i] = (uint8_t)(i * i * 2654435761U >> 20);
    }
    return 0;
}

// The block ends with the file, so that a sanitizer detects a read beyond it.
static lac_status read_file(size_t len, uint8_t **out)
{
    data_bytes bytes = {"file", malloc(len + (len == 0)), len};
    memcpy(bytes.data, file, len);
    const lac_status status = data_png_read(&bytes, WIDTH, HEIGHT, out);
    data_bytes_free(&bytes);
    return status;
}

static void all_filters_are_undone(void **state)
{
    (void)state;
    for (int first = 0; first < 5; first++) {
        uint8_t *found = NULL;
        make_file(first);
        assert_ok(read_file(file_len, &found));
        assert_memory_equal(found, pixels, sizeof(pixels));
        free(found);
    }
}

static void every_truncation_is_corrupt(void **state)
{
    (void)state;
    uint8_t *found = NULL;
    make_file(0);
    for (size_t len = 0; len < file_len; len++) {
        assert_status(read_file(len, &found), LAC_ERR_CORRUPT);
        assert_null(found);
    }
}

static void every_altered_byte_is_corrupt(void **state)
{
    (void)state;
    uint8_t *found = NULL;
    make_file(1);
    for (size_t i = 0; i < file_len; i++) {
        file[i] ^= 1;
        assert_status(read_file(file_len, &found), LAC_ERR_CORRUPT);
        file[i] ^= 1;
    }
}

static void another_size_is_corrupt(void **state)
{
    (void)state;
    uint8_t *found = NULL;
    make_file(0);
    data_bytes bytes = {"file", file, file_len};
    assert_fails(
        data_png_read(&bytes, WIDTH + 1, HEIGHT, &found), LAC_ERR_CORRUPT,
        "file: has another format, expected 6 x 12 pixels of 8-bit "
        "red, green and blue");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_filters_are_undone),
        cmocka_unit_test(every_truncation_is_corrupt),
        cmocka_unit_test(every_altered_byte_is_corrupt),
        cmocka_unit_test(another_size_is_corrupt),
    };
    return cmocka_run_group_tests(tests, make_pixels, NULL);
}
