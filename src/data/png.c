// SPDX-License-Identifier: MIT
// PNG, second edition (ISO/IEC 15948): chunks with checksums; the image data of
// all IDAT chunks is one zlib stream; every row begins with its filter.
#include "data/png.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

enum {
    SIGNATURE = 8,
    FRAME = 12, // length, type and checksum of a chunk
    HEADER = 13,
    BITS = 8,
    TRUE_COLOUR = 2,
    FILTERS = 5,
    STEP = DATA_PNG_CHANNELS, // bytes to the pixel on the left
};

// A chunk; it points into the file.
typedef struct chunk {
    const uint8_t *type, *data;
    uint32_t len;
} chunk;

static lac_status next_chunk(const data_bytes *b, size_t *at, chunk *out)
{
    const size_t left = b->len - *at;
    const uint8_t *const start = b->data + *at;
    if (left < FRAME || data_read_be32(start) > left - FRAME) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: ends within a chunk at byte %zu, expected "
            "a whole PNG image",
            b->name, *at);
    }
    *out = (chunk){start + 4, start + 8, data_read_be32(start)};
    const uLong sum = crc32(crc32(0, NULL, 0), out->type, out->len + 4);
    if (sum != data_read_be32(out->data + out->len)) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: the checksum of the chunk at byte %zu is wrong, expected "
            "%08lx",
            b->name, *at, sum);
    }
    *at += FRAME + out->len;
    return LAC_OK;
}

static lac_status check_image_header(
    const data_bytes *b, const chunk *c, uint32_t width, uint32_t height)
{
    const uint8_t *const h = c->data;
    if (c->len != HEADER || memcmp(c->type, "IHDR", 4) != 0 ||
        data_read_be32(h) != width || data_read_be32(h + 4) != height ||
        h[8] != BITS || h[9] != TRUE_COLOUR || h[10] != 0 || h[11] != 0 ||
        h[12] != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: has another format, expected %u x %u pixels of 8-bit "
            "red, green and blue",
            b->name, width, height);
    }
    return LAC_OK;
}

// Inflates all IDAT chunks to the output of the stream.
static lac_status inflate_chunks(const data_bytes *b, size_t at, z_stream *z)
{
    chunk c;
    int code = Z_OK;
    do {
        LAC_TRY(next_chunk(b, &at, &c));
        if (memcmp(c.type, "IDAT", 4) == 0 && c.len > 0) {
            // zlib does not write to its input.
            z->next_in = b->data + (c.data - b->data);
            z->avail_in = c.len;
            code = code == Z_OK ? inflate(z, Z_NO_FLUSH) : Z_DATA_ERROR;
        }
        if (code != Z_OK && code != Z_STREAM_END) {
            break;
        }
    } while (memcmp(c.type, "IEND", 4) != 0);
    if (code != Z_STREAM_END || z->avail_out != 0 || z->avail_in != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: damaged image data, expected one zlib stream of %lu bytes",
            b->name, z->total_out + z->avail_out);
    }
    return LAC_OK;
}

static int paeth(int left, int up, int corner)
{
    const int p = left + up - corner;
    const int a = abs(p - left), b = abs(p - up), c = abs(p - corner);
    return a <= b && a <= c ? left : b <= c ? up : corner;
}

// Reverses the filter of one row; `up` is the row above, or zeros.
static void unfilter(
    int filter, const uint8_t *in, const uint8_t *up, size_t len, uint8_t *out)
{
    for (size_t i = 0; i < len; i++) {
        const int left = i < STEP ? 0 : out[i - STEP];
        const int corner = i < STEP ? 0 : up[i - STEP];
        const int guess[FILTERS] = {
            0, left, up[i], (left + up[i]) / 2, paeth(left, up[i], corner)};
        out[i] = (uint8_t)(in[i] + guess[filter]);
    }
}

static lac_status unfilter_all(
    const data_bytes *b, const uint8_t *raw, size_t row, uint32_t height,
    uint8_t *pixels)
{
    uint8_t *const zeros = calloc(1, row);
    if (zeros == NULL) {
        return data_no_memory(b->name, row);
    }
    lac_status status = LAC_OK;
    const uint8_t *up = zeros;
    for (uint32_t y = 0; y < height && status == LAC_OK; y++) {
        const uint8_t *const in = raw + y * (row + 1);
        if (in[0] >= FILTERS) {
            status = lac_fail(
                LAC_ERR_CORRUPT, "%s: row %u has filter %u, expected 0 to 4",
                b->name, y, in[0]);
        } else {
            unfilter(in[0], in + 1, up, row, pixels + y * row);
            up = pixels + y * row;
        }
    }
    free(zeros);
    return status;
}

static lac_status inflate_rows(
    const data_bytes *b, size_t at, uint32_t width, uint32_t height,
    uint8_t *pixels)
{
    const size_t row = (size_t)width * DATA_PNG_CHANNELS;
    const size_t len = height * (row + 1);
    uint8_t *const raw = malloc(len);
    z_stream z = {.next_out = raw, .avail_out = (uInt)len};
    if (raw == NULL || inflateInit(&z) != Z_OK) {
        free(raw);
        return data_no_memory(b->name, len);
    }
    lac_status status = inflate_chunks(b, at, &z);
    (void)inflateEnd(&z);
    if (status == LAC_OK) {
        status = unfilter_all(b, raw, row, height, pixels);
    }
    free(raw);
    return status;
}

lac_status data_png_read(
    const data_bytes *bytes, uint32_t width, uint32_t height,
    uint8_t **pixels_out)
{
    static const uint8_t signature[SIGNATURE] = {0x89, 'P',  'N',  'G',
                                                 '\r', '\n', 0x1a, '\n'};
    chunk c;
    size_t at = SIGNATURE;
    *pixels_out = NULL;
    if (bytes->len < SIGNATURE ||
        memcmp(bytes->data, signature, SIGNATURE) != 0) {
        return lac_fail(LAC_ERR_CORRUPT, "%s: is not a PNG image", bytes->name);
    }
    LAC_TRY(next_chunk(bytes, &at, &c));
    LAC_TRY(check_image_header(bytes, &c, width, height));
    uint8_t *const pixels = malloc((size_t)width * height * DATA_PNG_CHANNELS);
    if (pixels == NULL) {
        return data_no_memory(bytes->name, (size_t)width * height);
    }
    const lac_status status = inflate_rows(bytes, at, width, height, pixels);
    if (status != LAC_OK) {
        free(pixels);
        return status;
    }
    *pixels_out = pixels;
    return LAC_OK;
}
