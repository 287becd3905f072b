// SPDX-License-Identifier: MIT
// .npy files, format versions 1.0, 2.0 and 3.0:
//
//   bytes 0x93 "NUMPY", u8 major, u8 minor,
//   header length as u16 (version 1) or u32 (2 and 3), little-endian,
//   header, a Python dictionary padded with blanks and a line feed:
//     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
//   values.
//
// Accepted are little-endian float32 values, and uint8 where the caller allows
// them, in C order, exactly as many as the shape has. Of the Python dictionary
// only what NumPy writes is accepted: the three keys 'descr' (a string, or a
// list for records), 'fortran_order' (True or False) and 'shape' (a tuple of
// integers), each once and in any order.
#include "cli/files/npy.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/file.h"

enum {
    MAGIC_LEN = 6,
    PREFIX_MIN = 10,      // magic, version, shortest header length
    HEADER_MAX = 1 << 16, // NumPy writes 118 bytes, rarely more
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

// The rest of the dictionary, the name of the file and the accepted types.
typedef struct reader {
    const char *name;
    unsigned types;
    const char *at;
    const char *end;
} reader;

typedef struct string {
    const char *start;
    size_t len;
} string;

static lac_status malformed(const reader *r, const char *expected)
{
    return lac_fail(
        LAC_ERR_CORRUPT, "%s: the .npy header is malformed, expected %s",
        r->name, expected);
}

static void skip_spaces(reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at)) {
        r->at++;
    }
}

// Consumes `c` if it comes next.
static bool take_char(reader *r, char c)
{
    skip_spaces(r);
    if (r->at == r->end || *r->at != c) {
        return false;
    }
    r->at++;
    return true;
}

static bool take_keyword(reader *r, const char *word)
{
    const size_t len = strlen(word);
    skip_spaces(r);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0) {
        return false;
    }
    r->at += len;
    return true;
}

// Consumes a string in quotes of either kind. No accepted string has an escape,
// so a backslash is an ordinary character.
static bool take_string(reader *r, string *out)
{
    skip_spaces(r);
    if (r->at == r->end || (*r->at != '\'' && *r->at != '"')) {
        return false;
    }
    const char *const start = r->at + 1;
    const char *const end = memchr(start, *r->at, (size_t)(r->end - start));
    if (end == NULL) {
        return false;
    }
    *out = (string){start, (size_t)(end - start)};
    r->at = end + 1;
    return true;
}

static bool equals(string s, const char *word)
{
    return s.len == strlen(word) && memcmp(s.start, word, s.len) == 0;
}

static const char *accepted_types(const reader *r)
{
    return (r->types & CLI_NPY_U8) != 0 ? "uint8 (|u1) or float32 (<f4)"
                                        : "float32 (<f4)";
}

static lac_status wrong_type(const reader *r, string type)
{
    static const struct {
        const char *code, *word;
    } types[] = {
        {"<f8", "float64"},
        {"<f2", "float16"},
        {"<i8", "int64"},
        {"<i4", "int32"},
        {"<i2", "int16"},
        {"<u8", "uint64"},
        {"<u4", "uint32"},
        {"<u2", "uint16"},
        {"|i1", "int8"},
        {"|u1", "uint8"},
        {"|b1", "bool"},
        {"<c8", "complex64"},
        {"<c16", "complex128"},
        {"|O", "Python objects"},
        {">f4", "big-endian float32 (>f4)"},
        {">f8", "big-endian float64"},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (equals(type, types[i].code)) {
            return lac_fail(
                LAC_ERR_UNSUPPORTED, "%s: holds %s, expected %s", r->name,
                types[i].word, accepted_types(r));
        }
    }
    const size_t most = 16;
    char shown[17] = "";
    for (size_t i = 0; i < type.len && i < most; i++) {
        const unsigned char c = (unsigned char)type.start[i];
        shown[i] = isprint(c) ? (char)c : '?';
    }
    return lac_fail(
        LAC_ERR_UNSUPPORTED, "%s: holds values of type \"%s\", expected %s",
        r->name, shown, accepted_types(r));
}

static lac_status read_type(reader *r, cli_npy_type *out)
{
    string type;
    skip_spaces(r);
    if (r->at < r->end && *r->at == '[') {
        return lac_fail(
            LAC_ERR_UNSUPPORTED, "%s: holds records, expected %s", r->name,
            accepted_types(r));
    }
    if (!take_string(r, &type)) {
        return malformed(r, "a type after 'descr'");
    }
    const bool bytes = equals(type, "|u1");
    if (!equals(type, "<f4") && !(bytes && (r->types & CLI_NPY_U8) != 0)) {
        return wrong_type(r, type);
    }
    *out = bytes ? CLI_NPY_U8 : CLI_NPY_F32;
    return LAC_OK;
}

static lac_status read_order(reader *r)
{
    if (take_keyword(r, "False")) {
        return LAC_OK;
    }
    if (take_keyword(r, "True")) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "%s: holds values in Fortran order, expected C order", r->name);
    }
    return malformed(r, "True or False after 'fortran_order'");
}

static lac_status read_dimension(reader *r, uint64_t *size_out)
{
    uint64_t size = 0;
    skip_spaces(r);
    if (r->at == r->end || !isdigit((unsigned char)*r->at)) {
        return malformed(r, "a tuple of whole numbers after 'shape'");
    }
    for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++) {
        if (__builtin_mul_overflow(size, (uint64_t)10, &size) ||
            __builtin_add_overflow(size, (uint64_t)(*r->at - '0'), &size)) {
            return malformed(r, "dimensions below 2^64");
        }
    }
    *size_out = size;
    return LAC_OK;
}

static lac_status read_shape(reader *r, cli_dimensions *out)
{
    out->count = 0;
    if (!take_char(r, '(')) {
        return malformed(r, "a tuple of whole numbers after 'shape'");
    }
    while (!take_char(r, ')')) {
        if (out->count == CLI_DIMENSIONS_MAX) {
            return lac_fail(
                LAC_ERR_UNSUPPORTED, "%s: has more than %d dimensions", r->name,
                CLI_DIMENSIONS_MAX);
        }
        LAC_TRY(read_dimension(r, &out->size[out->count++]));
        if (!take_char(r, ',')) {
            // (3) is a number, not a tuple.
            if (out->count == 1 || !take_char(r, ')')) {
                return malformed(r, "a tuple of whole numbers after 'shape'");
            }
            break;
        }
    }
    return LAC_OK;
}

// Reads the value of `key`; `*seen` has a bit per key.
static lac_status read_entry(
    reader *r, string key, unsigned *seen, cli_npy *out)
{
    const unsigned bit = equals(key, "descr")           ? 1
                         : equals(key, "fortran_order") ? 2
                         : equals(key, "shape")         ? 4
                                                        : 0;
    if (bit == 0 || (*seen & bit) != 0) {
        return malformed(r, "'descr', 'fortran_order' and 'shape', each once");
    }
    *seen |= bit;
    return bit == 1   ? read_type(r, &out->type)
           : bit == 2 ? read_order(r)
                      : read_shape(r, &out->dimensions);
}

static lac_status parse_dictionary(reader *r, cli_npy *out)
{
    unsigned seen = 0;
    if (!take_char(r, '{')) {
        return malformed(r, "a dictionary");
    }
    while (!take_char(r, '}')) {
        string key;
        if (!take_string(r, &key) || !take_char(r, ':')) {
            return malformed(r, "a key in quotes and a colon");
        }
        LAC_TRY(read_entry(r, key, &seen, out));
        if (!take_char(r, ',')) {
            if (!take_char(r, '}')) {
                return malformed(r, "a comma or } after a value");
            }
            break;
        }
    }
    skip_spaces(r);
    return seen == 7 && r->at == r->end
               ? LAC_OK
               : malformed(
                     r, "'descr', 'fortran_order' and 'shape', each once");
}

static size_t get_length(const uint8_t *data, size_t count)
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
    const size_t header_len = get_length(data + 8, offset - 8);
    if (header_len > HEADER_MAX) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "%s: has a header of %zu bytes, expected at most %d", name,
            header_len, HEADER_MAX);
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
    const char *name, unsigned types, const uint8_t *data, size_t len,
    cli_npy *out)
{
    cli_npy npy = {0};
    size_t offset = 0, header_len = 0;
    LAC_TRY(find_header(name, data, len, &offset, &header_len));
    const char *const header = (const char *)data + offset;
    reader r = {name, types, header, header + header_len};
    LAC_TRY(parse_dictionary(&r, &npy));
    LAC_TRY(cli_dimensions_shape(name, &npy.dimensions, &npy.shape));
    npy.offset = offset + header_len;
    const size_t size = npy.type == CLI_NPY_U8 ? 1 : sizeof(float);
    const size_t expected = size * lac_shape_values(npy.shape);
    if (len - npy.offset != expected) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: has %zu bytes of values, expected %zu for its shape", name,
            len - npy.offset, expected);
    }
    *out = npy;
    return LAC_OK;
}

// Converts the bytes at `offset` to floats at the aligned start of the block,
// in place: a value never moves towards the end.
static float *convert_values(uint8_t *data, size_t offset, size_t n)
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

// Makes a block of n floats from n bytes.
static lac_status widen_bytes(
    const char *path, const uint8_t *bytes, size_t n, float **values_out)
{
    float *const values = calloc(n + 1, sizeof(float));
    if (values == NULL) {
        return data_no_memory(path, n);
    }
    for (size_t i = 0; i < n; i++) {
        values[i] = bytes[i];
    }
    *values_out = values;
    return LAC_OK;
}

lac_status cli_npy_read(
    const char *path, unsigned types, cli_npy *out, float **values_out)
{
    data_bytes file;
    *values_out = NULL;
    lac_status status = data_file_read_like(path, magic, MAGIC_LEN, &file);
    if (status == LAC_OK) {
        status = cli_npy_parse(path, types, file.data, file.len, out);
    }
    if (status == LAC_OK && out->type == CLI_NPY_F32) {
        *values_out = convert_values(
            file.data, out->offset, lac_shape_values(out->shape));
        return LAC_OK;
    }
    if (status == LAC_OK) {
        status = widen_bytes(
            path, file.data + out->offset, lac_shape_values(out->shape),
            values_out);
    }
    data_bytes_free(&file);
    return status;
}

size_t cli_npy_header(
    cli_npy_type type, const cli_dimensions *dimensions,
    uint8_t out[CLI_NPY_HEADER_MAX])
{
    char *const text = (char *)out + PREFIX_MIN;
    const size_t room = CLI_NPY_HEADER_MAX - PREFIX_MIN;
    // 32 sizes of 20 digits and ", " fit, so nothing below is truncated.
    size_t used = (size_t)snprintf(
        text, room, "{'descr': '%s', 'fortran_order': False, 'shape': (",
        type == CLI_NPY_F64 ? "<f8" : "<f4");
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
