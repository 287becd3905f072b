// SPDX-License-Identifier: MIT
// The dictionary in the header of a .npy file. It is a Python literal of which
// only what NumPy writes is understood: the three keys 'descr' (a text, or a
// list for records), 'fortran_order' (True or False) and 'shape' (a tuple of
// whole numbers), each once and in any order.
#include "cli/files/npy_header.h"

#include <ctype.h>
#include <string.h>

// What is left to read, and whose header it is.
typedef struct reader {
    const char *name;
    const char *at;
    const char *end;
} reader;

typedef struct text {
    const char *start;
    size_t len;
} text;

static lac_status malformed(const reader *r, const char *expected)
{
    return lac_fail(
        LAC_ERR_CORRUPT, "%s: the .npy header is malformed, expected %s",
        r->name, expected);
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at)) {
        r->at++;
    }
}

// Takes `c` if it comes next.
static bool take(reader *r, char c)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != c) {
        return false;
    }
    r->at++;
    return true;
}

static bool take_word(reader *r, const char *word)
{
    const size_t len = strlen(word);
    skip_blanks(r);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0) {
        return false;
    }
    r->at += len;
    return true;
}

// Takes a text in quotes of either kind. Escapes never occur in what is
// understood, so a backslash is nothing special.
static bool take_text(reader *r, text *out)
{
    skip_blanks(r);
    if (r->at == r->end || (*r->at != '\'' && *r->at != '"')) {
        return false;
    }
    const char *const start = r->at + 1;
    const char *const end = memchr(start, *r->at, (size_t)(r->end - start));
    if (end == NULL) {
        return false;
    }
    *out = (text){start, (size_t)(end - start)};
    r->at = end + 1;
    return true;
}

static bool is(text t, const char *word)
{
    return t.len == strlen(word) && memcmp(t.start, word, t.len) == 0;
}

static lac_status wrong_type(const reader *r, text type)
{
    static const struct {
        const char *code, *word;
    } types[] = {
        {"<f8", "float64"},
        {"<f2", "float16"},
        {"<i8", "int64"},
        {"<i4", "int32"},
        {"<i2", "int16"},
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
        if (is(type, types[i].code)) {
            return lac_fail(
                LAC_ERR_UNSUPPORTED, "%s: holds %s, expected float32 (<f4)",
                r->name, types[i].word);
        }
    }
    const size_t most = 16;
    char shown[17] = "";
    for (size_t i = 0; i < type.len && i < most; i++) {
        const unsigned char c = (unsigned char)type.start[i];
        shown[i] = isprint(c) ? (char)c : '?';
    }
    return lac_fail(
        LAC_ERR_UNSUPPORTED,
        "%s: holds values of type \"%s\", expected float32 (<f4)", r->name,
        shown);
}

static lac_status read_type(reader *r)
{
    text type;
    skip_blanks(r);
    if (r->at < r->end && *r->at == '[') {
        return lac_fail(
            LAC_ERR_UNSUPPORTED, "%s: holds records, expected float32 (<f4)",
            r->name);
    }
    if (!take_text(r, &type)) {
        return malformed(r, "a type after 'descr'");
    }
    return is(type, "<f4") ? LAC_OK : wrong_type(r, type);
}

static lac_status read_order(reader *r)
{
    if (take_word(r, "False")) {
        return LAC_OK;
    }
    if (take_word(r, "True")) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "%s: holds values in Fortran order, expected C order", r->name);
    }
    return malformed(r, "True or False after 'fortran_order'");
}

static lac_status read_size(reader *r, uint64_t *size_out)
{
    uint64_t size = 0;
    skip_blanks(r);
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
    if (!take(r, '(')) {
        return malformed(r, "a tuple of whole numbers after 'shape'");
    }
    while (!take(r, ')')) {
        if (out->count == CLI_DIMENSIONS_MAX) {
            return lac_fail(
                LAC_ERR_UNSUPPORTED, "%s: has more than %d dimensions", r->name,
                CLI_DIMENSIONS_MAX);
        }
        const lac_status status = read_size(r, &out->size[out->count]);
        if (status != LAC_OK) {
            return status;
        }
        out->count++;
        if (!take(r, ',')) {
            // (3) is a number and not a tuple.
            if (out->count == 1 || !take(r, ')')) {
                return malformed(r, "a tuple of whole numbers after 'shape'");
            }
            break;
        }
    }
    return LAC_OK;
}

// Reads the value that belongs to `key`; `*seen` has a bit for each key.
static lac_status read_value(
    reader *r, text key, unsigned *seen, cli_dimensions *out)
{
    const unsigned bit = is(key, "descr")           ? 1
                         : is(key, "fortran_order") ? 2
                         : is(key, "shape")         ? 4
                                                    : 0;
    if (bit == 0 || (*seen & bit) != 0) {
        return malformed(r, "'descr', 'fortran_order' and 'shape', each once");
    }
    *seen |= bit;
    return bit == 1   ? read_type(r)
           : bit == 2 ? read_order(r)
                      : read_shape(r, out);
}

lac_status cli_npy_header_parse(
    const char *name, const char *start, size_t len, cli_dimensions *out)
{
    reader r = {name, start, start + len};
    cli_dimensions dimensions = {0};
    unsigned seen = 0;
    if (!take(&r, '{')) {
        return malformed(&r, "a dictionary");
    }
    while (!take(&r, '}')) {
        text key;
        if (!take_text(&r, &key) || !take(&r, ':')) {
            return malformed(&r, "a key in quotes and a colon");
        }
        const lac_status status = read_value(&r, key, &seen, &dimensions);
        if (status != LAC_OK) {
            return status;
        }
        if (!take(&r, ',')) {
            if (!take(&r, '}')) {
                return malformed(&r, "a comma or } after a value");
            }
            break;
        }
    }
    skip_blanks(&r);
    if (seen != 7 || r.at != r.end) {
        return malformed(&r, "'descr', 'fortran_order' and 'shape', each once");
    }
    *out = dimensions;
    return LAC_OK;
}
