// SPDX-License-Identifier: MIT
// .npy files, format versions 1.0, 2.0 and 3.0:
//
//   bytes 0x93 "NUMPY", u8 major, u8 minor,
//   header length as u16 (version 1) or u32 (2 and 3), little-endian,
//   header, a Python dictionary padded with blanks and a line feed:
//     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
//   values.
//
// Accepted are little-endian float32 values in C order, exactly as many as the
// shape says. npy_header.c reads the dictionary.
#include "cli/files/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files/npy_header.h"
#include "data/file.h"

enum {
    MAGIC_LEN = 6,
    PREFIX_MIN = 10,       // magic, version, shortest header length
    HEADER_MOST = 1 << 16, // NumPy writes 118 bytes, rarely some more
    ALIGNMENT = 64,
};

static const uint8_t magic[MAGIC_LEN] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

lac_status cli_dimensions_shape(
    const char *name, const cli_dimensions *dimensions, lac_shape *shape_out)
{
    lac_shape shape = {1, 1};
    uint64_t most = 1; // the product with 1 in place of 0
    for (size_t i = 0; i < dimensions->count; i++) {
        const uint64_t size = dimensions->size[i];
        if (__builtin_mul_overflow(most, size == 0 ? 1 : size, &most) ||
            most > LAC_VALUES_MAX) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: the shape has too many values, at most %zu fit", name,
                (size_t)LAC_VALUES_MAX);
        }
        if (i == 0) {
            shape.rows = (size_t)size;
        } else {
            shape.cols *= (size_t)size;
        }
    }
    *shape_out = shape;
    return LAC_OK;
}

const char *cli_dimensions_text(
    const cli_dimensions *dimensions, char text[CLI_DIMENSIONS_SIZE])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < dimensions->count; i++) {
        const int len = snprintf(
            text + used, CLI_DIMENSIONS_SIZE - used, "%s%" PRIu64,
            i == 0 ? "" : " x ", dimensions->size[i]);
        used += (size_t)len;
        if (used >= CLI_DIMENSIONS_SIZE) {
            memcpy(text + CLI_DIMENSIONS_SIZE - 4, "...", 4);
            break;
        }
    }
    return text;
}

static size_t get_bytes(const uint8_t *data, size_t count)
{
    size_t value = 0;
    for (size_t i = 0; i < count; i++) {
        value |= (size_t)data[i] << 8 * i;
    }
    return value;
}

// Finds the dictionary: header[0..*header_len_out) at `*offset_out`.
static lac_status find_header(
    const char *name, const uint8_t *data, size_t len, size_t *offset_out,
    size_t *header_len_out)
{
    if (len < PREFIX_MIN || memcmp(data, magic, MAGIC_LEN) != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: is not a .npy file, expected it to begin with 0x93 NUMPY",
            name);
    }
    const unsigned major = data[MAGIC_LEN], minor = data[MAGIC_LEN + 1];
    if (major < 1 || major > 3 || minor != 0) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "%s: has .npy format version %u.%u, expected 1.0, 2.0 or 3.0", name,
            major, minor);
    }
    const size_t offset = major == 1 ? PREFIX_MIN : PREFIX_MIN + 2;
    if (len < offset) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: has %zu bytes, which end in its header", name,
            len);
    }
    const size_t header_len = get_bytes(data + 8, offset - 8);
    if (header_len > HEADER_MOST) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "%s: has a header of %zu bytes, expected at most %d", name,
            header_len, HEADER_MOST);
    }
    if (header_len > len - offset) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: ends after %zu bytes of a header of %zu bytes", name,
            len - offset, header_len);
    }
    *offset_out = offset;
    *header_len_out = header_len;
    return LAC_OK;
}

lac_status cli_npy_parse(
    const char *name, const uint8_t *data, size_t len, cli_npy *out)
{
    cli_npy npy = {0};
    size_t offset = 0, header_len = 0;
    lac_status status = find_header(name, data, len, &offset, &header_len);
    if (status == LAC_OK) {
        status = cli_npy_header_parse(
            name, (const char *)data + offset, header_len, &npy.dimensions);
    }
    if (status == LAC_OK) {
        status = cli_dimensions_shape(name, &npy.dimensions, &npy.shape);
    }
    if (status != LAC_OK) {
        return status;
    }
    npy.offset = offset + header_len;
    const size_t expected = sizeof(float) * npy.shape.rows * npy.shape.cols;
    if (len - npy.offset != expected) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: has %zu bytes of values, expected %zu for its shape", name,
            len - npy.offset, expected);
    }
    *out = npy;
    return LAC_OK;
}

// Bytes to floats, from anywhere in a block to its aligned start: in place,
// since a value never lands beyond where it came from.
static float *take_values(uint8_t *data, size_t offset, size_t n)
{
    float *const values = (void *)data;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *const from = data + offset + sizeof(float) * i;
        const uint32_t bits = (uint32_t)from[0] | (uint32_t)from[1] << 8 |
                              (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
        memcpy(&values[i], &bits, sizeof(bits));
    }
    return values;
}

lac_status cli_npy_read(const char *path, cli_npy *out, float **values_out)
{
    data_bytes file;
    *values_out = NULL;
    lac_status status = data_file_read_like(path, magic, MAGIC_LEN, &file);
    if (status == LAC_OK) {
        status = cli_npy_parse(path, file.data, file.len, out);
    }
    if (status != LAC_OK) {
        data_bytes_free(&file);
        return status;
    }
    *values_out =
        take_values(file.data, out->offset, out->shape.rows * out->shape.cols);
    return LAC_OK;
}

static size_t write_header(
    const char *descr, const cli_dimensions *dimensions,
    uint8_t out[CLI_NPY_HEADER_MAX])
{
    char *const text = (char *)out + PREFIX_MIN;
    const size_t room = CLI_NPY_HEADER_MAX - PREFIX_MIN;
    // 32 sizes of 20 digits and ", " fit, so nothing below is cut.
    size_t used = (size_t)snprintf(
        text, room, "{'descr': '%s', 'fortran_order': False, 'shape': (",
        descr);
    for (size_t i = 0; i < dimensions->count; i++) {
        const char *const after =
            dimensions->count == 1 || i + 1 < dimensions->count ? "," : "";
        used += (size_t)snprintf(
            text + used, room - used, "%s%" PRIu64 "%s", i == 0 ? "" : " ",
            dimensions->size[i], after);
    }
    used += (size_t)snprintf(text + used, room - used, "), }");
    const size_t total =
        (PREFIX_MIN + used + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    memset(text + used, ' ', total - PREFIX_MIN - used);
    out[total - 1] = '\n';
    memcpy(out, magic, MAGIC_LEN);
    out[6] = 1;
    out[7] = 0;
    out[8] = (uint8_t)(total - PREFIX_MIN);
    out[9] = (uint8_t)((total - PREFIX_MIN) >> 8);
    return total;
}

size_t cli_npy_header(
    const cli_dimensions *dimensions, uint8_t out[CLI_NPY_HEADER_MAX])
{
    return write_header("<f4", dimensions, out);
}

size_t cli_npy_header_f64(
    const cli_dimensions *dimensions, uint8_t out[CLI_NPY_HEADER_MAX])
{
    return write_header("<f8", dimensions, out);
}

void cli_npy_put_values(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof(bits));
        const uint8_t bytes[] = {
            (uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
            (uint8_t)(bits >> 24)};
        memcpy(&values[i], bytes, sizeof(bytes));
    }
}
