// SPDX-License-Identifier: MIT
// .lac files, version 1. All numbers are little-endian.
//
//   offset  bytes  content
//   0       8      0x89 "LACONIC"
//   8       4      version of this layout: 1
//   12      4      H, offset of the payload: 56 + 8 D + S
//   16      4      wire id of the payload format
//   20      4      form: 0 plain, 1 unbiased, 2 contractive
//   24      8      low half of the key, whose scope is shared
//   32      8      high half of the key
//   40      8      P, bytes of payload
//   48      4      D, number of dimensions, at most 32
//   52      4      S, bytes of the spec, 1 to 1024
//   56      8 D    dimensions, the outermost first
//   ...     S      spec of the compressor, printable ASCII
//   H       P      payload
//   H + P   8      XXH3, 64 bits, seed 0, of all bytes before
//
// `encode` makes the key from its seed, purpose 1, round 0, the shared scope
// and the name "x". The tensor is compressed as a matrix: the first dimension
// by the product of the others. A decoder ignores the form. The spec is the
// user's; the wire id detects a spec that has another meaning in another
// version.
#include "cli/files/lac_file.h"

#include <stdio.h>
#include <string.h>

#include <xxhash.h>

enum {
    MAGIC_LEN = 8,
    VERSION = 1,
    FIXED_LEN = 56,
    CHECKSUM_LEN = 8,
};

static const uint8_t magic[MAGIC_LEN] = {0x89, 'L', 'A', 'C',
                                         'O',  'N', 'I', 'C'};

static void put_le(uint8_t *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        out[i] = (uint8_t)(value >> 8 * i);
    }
}

static uint64_t get_le(const uint8_t *in, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)in[i] << 8 * i;
    }
    return value;
}

lac_key cli_lac_key(uint64_t seed)
{
    return lac_key_make(
        seed, LAC_PURPOSE_COMPRESS, 0, lac_scope_shared(), lac_name_hash("x"));
}

size_t cli_lac_payload_offset(const cli_lac *lac)
{
    return FIXED_LEN + 8 * lac->dimensions.count + lac->spec_len;
}

size_t cli_lac_finish(const cli_lac *lac, uint8_t *out)
{
    const size_t offset = cli_lac_payload_offset(lac);
    memcpy(out, magic, MAGIC_LEN);
    put_le(out + 8, VERSION, 4);
    put_le(out + 12, offset, 4);
    put_le(out + 16, lac->wire_id, 4);
    put_le(out + 20, (uint64_t)lac->form, 4);
    put_le(out + 24, lac->key.low, 8);
    put_le(out + 32, lac->key.high, 8);
    put_le(out + 40, lac->payload_len, 8);
    put_le(out + 48, lac->dimensions.count, 4);
    put_le(out + 52, lac->spec_len, 4);
    for (size_t i = 0; i < lac->dimensions.count; i++) {
        put_le(out + FIXED_LEN + 8 * i, lac->dimensions.size[i], 8);
    }
    memcpy(out + offset - lac->spec_len, lac->spec, lac->spec_len);
    const size_t end = offset + lac->payload_len;
    put_le(out + end, XXH3_64bits(out, end), CHECKSUM_LEN);
    return end + CHECKSUM_LEN;
}

// Checks that the lengths in the header add up to that of the file, and then
// the checksum.
static lac_status check_whole(const char *name, const uint8_t *data, size_t len)
{
    if (len < MAGIC_LEN || memcmp(data, magic, MAGIC_LEN) != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: is not a .lac file, expected it to begin with 0x89 LACONIC",
            name);
    }
    if (len < FIXED_LEN + CHECKSUM_LEN) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: has %zu bytes, expected at least %d", name,
            len, FIXED_LEN + CHECKSUM_LEN);
    }
    const uint64_t version = get_le(data + 8, 4);
    if (version != VERSION) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED, "%s: has .lac version %u, expected %d", name,
            (unsigned)version, VERSION);
    }
    const uint64_t room = len - CHECKSUM_LEN;
    const uint64_t offset = get_le(data + 12, 4),
                   payload = get_le(data + 40, 8);
    if (offset > room || payload != room - offset) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: has %zu bytes, which contradicts its header; it is truncated "
            "or altered",
            name, len);
    }
    if (get_le(data + room, CHECKSUM_LEN) != XXH3_64bits(data, (size_t)room)) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: the checksum does not match, it is altered",
            name);
    }
    return LAC_OK;
}

// A hostile file can have a correct checksum, so every field is checked.
static lac_status check_fields(
    const char *name, uint64_t offset, uint64_t dimensions, uint64_t spec_len,
    uint64_t form)
{
    if (dimensions > CLI_DIMENSIONS_MAX) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: has %u dimensions, expected at most %d", name,
            (unsigned)dimensions, CLI_DIMENSIONS_MAX);
    }
    if (offset != FIXED_LEN + 8 * dimensions + spec_len) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: has a header of %u bytes, expected %u", name,
            (unsigned)offset,
            (unsigned)(FIXED_LEN + 8 * dimensions + spec_len));
    }
    if (form > LAC_FORM_CONTRACTIVE) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: has form %u, expected 0, 1 or 2", name,
            (unsigned)form);
    }
    return LAC_OK;
}

lac_status cli_lac_check_spec(const char *name, const char *spec, size_t len)
{
    if (len < 1 || len > CLI_LAC_SPEC_MAX) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: has a spec of %zu bytes, expected 1 to %d",
            name, len, CLI_LAC_SPEC_MAX);
    }
    for (size_t i = 0; i < len; i++) {
        if (spec[i] < ' ' || spec[i] > '~') {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "%s: byte %zu of its spec is 0x%02x, expected printable ASCII",
                name, i, (unsigned)(unsigned char)spec[i]);
        }
    }
    return LAC_OK;
}

lac_status cli_check_apart(const char *in, const char *out)
{
    return data_is_same_file(in, out)
               ? lac_fail(
                     LAC_ERR_INVALID,
                     "%s: is both read and written, expected another file to "
                     "write to",
                     out)
               : LAC_OK;
}

lac_status cli_lac_read(const char *path, data_bytes *out)
{
    return data_file_read_like(path, magic, MAGIC_LEN, out);
}

lac_status cli_lac_parse(
    const char *name, const uint8_t *data, size_t len, cli_lac *out)
{
    LAC_TRY(check_whole(name, data, len));
    const uint64_t offset = get_le(data + 12, 4), form = get_le(data + 20, 4);
    const uint64_t dimensions = get_le(data + 48, 4),
                   spec_len = get_le(data + 52, 4);
    LAC_TRY(check_fields(name, offset, dimensions, spec_len, form));
    cli_lac lac = {
        .wire_id = (uint32_t)get_le(data + 16, 4),
        .form = (lac_form)form,
        .key = {get_le(data + 24, 8), get_le(data + 32, 8), LAC_SCOPE_SHARED},
        .dimensions.count = (size_t)dimensions,
        .spec = (const char *)data + FIXED_LEN + 8 * dimensions,
        .spec_len = (size_t)spec_len,
        .payload = data + offset,
        .payload_len = len - CHECKSUM_LEN - (size_t)offset,
    };
    for (size_t i = 0; i < lac.dimensions.count; i++) {
        lac.dimensions.size[i] = get_le(data + FIXED_LEN + 8 * i, 8);
    }
    LAC_TRY(cli_lac_check_spec(name, lac.spec, lac.spec_len));
    LAC_TRY(cli_dimensions_shape(name, &lac.dimensions, &lac.shape));
    *out = lac;
    return LAC_OK;
}

// Puts the name of the file before the message of the library.
static lac_status failed_in(const char *name, lac_status status)
{
    char message[512];
    (void)snprintf(message, sizeof(message), "%s", lac_error_message());
    return lac_fail(status, "%s: %s", name, message);
}

// The payload may be longer than the one that our encoder would choose: the
// format allows it.
static lac_status check_lac_payload(
    const char *name, const cli_lac *lac, lac_compressor *c)
{
    if (lac_compressor_wire_id(c) != lac->wire_id) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "%s: has payload format %u, but \"%.*s\" has format %u", name,
            lac->wire_id, (int)lac->spec_len, lac->spec,
            lac_compressor_wire_id(c));
    }
    lac_status status = lac_compressor_reserve(c, lac->shape);
    if (status == LAC_OK) {
        status = lac_compressor_check(
            c, &lac->key, lac->shape, lac->payload, lac->payload_len);
    }
    return status == LAC_OK ? LAC_OK : failed_in(name, status);
}

lac_status cli_lac_open(
    const char *name, const cli_lac *lac, lac_compressor **out)
{
    char spec[CLI_LAC_SPEC_MAX + 1];
    lac_compressor *c = NULL;
    *out = NULL;
    memcpy(spec, lac->spec, lac->spec_len);
    spec[lac->spec_len] = '\0';
    lac_status status = lac_compressor_open(&c, spec, lac->form);
    if (status != LAC_OK) {
        return failed_in(name, status);
    }
    status = check_lac_payload(name, lac, c);
    if (status != LAC_OK) {
        lac_compressor_close(c);
        return status;
    }
    *out = c;
    return LAC_OK;
}
