// SPDX-License-Identifier: MIT
// A file as a whole: its checksum, its header, its numbers. The checksum comes
// first: past it, what is not as expected was meant to be so, or is hostile.
#include "train/safetensors_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

const char *train_shown(const char *text, char out[TRAIN_SHOWN_SIZE])
{
    size_t i = 0;
    for (; text[i] != '\0' && i + 1 < TRAIN_SHOWN_SIZE; i++) {
        out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    }
    out[i] = '\0';
    return out;
}

static uint64_t header_len_of(const uint8_t *data)
{
    uint64_t len = 0;
    for (int i = TRAIN_LENGTH_SIZE - 1; i >= 0; i--) {
        len = len << 8 | data[i];
    }
    return len;
}

static lac_status check_frame(const data_bytes *b)
{
    if (b->len < TRAIN_LENGTH_SIZE) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: has %zu bytes, expected at least %d", b->name,
            b->len, TRAIN_LENGTH_SIZE);
    }
    const uint64_t len = header_len_of(b->data);
    if (len > b->len - TRAIN_LENGTH_SIZE || len > TRAIN_HEADER_MAX) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: the header has %" PRIu64
            " bytes, expected at most %d and not more than there are",
            b->name, len, TRAIN_HEADER_MAX);
    }
    const size_t begin_len = TRAIN_DIGITS_AT - TRAIN_LENGTH_SIZE;
    if (len < begin_len + TRAIN_DIGITS ||
        memcmp(b->data + TRAIN_LENGTH_SIZE, TRAIN_HEADER_BEGIN, begin_len) !=
            0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: has no checksum, expected a file written by laconic", b->name);
    }
    return LAC_OK;
}

static lac_status check_sum(const data_bytes *b)
{
    static const char zeros[] = "0000000000000000";
    char digits[TRAIN_DIGITS + 1];
    const size_t behind = TRAIN_DIGITS_AT + TRAIN_DIGITS;
    XXH3_state_t *const state = XXH3_createState();
    if (state == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "%s: no memory for a checksum", b->name);
    }
    (void)XXH3_64bits_reset(state);
    (void)XXH3_64bits_update(state, b->data, TRAIN_DIGITS_AT);
    (void)XXH3_64bits_update(state, zeros, TRAIN_DIGITS);
    (void)XXH3_64bits_update(state, b->data + behind, b->len - behind);
    (void)snprintf(
        digits, sizeof(digits), "%016" PRIx64, XXH3_64bits_digest(state));
    (void)XXH3_freeState(state);
    if (memcmp(b->data + TRAIN_DIGITS_AT, digits, TRAIN_DIGITS) != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: the checksum does not match, expected %s",
            b->name, digits);
    }
    return LAC_OK;
}

const cJSON *train_file_metadata(const train_file *f)
{
    return cJSON_GetObjectItemCaseSensitive(f->header, TRAIN_METADATA);
}

static lac_status check_version(const train_file *f)
{
    char text[TRAIN_SHOWN_SIZE];
    const cJSON *const version =
        cJSON_GetObjectItemCaseSensitive(train_file_metadata(f), "laconic");
    if (!cJSON_IsString(version)) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: names no version of its format",
            f->bytes.name);
    }
    if (strcmp(version->valuestring, TRAIN_FORMAT_VERSION) != 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: is of version '%s' of its format, expected '%s'",
            f->bytes.name, train_shown(version->valuestring, text),
            TRAIN_FORMAT_VERSION);
    }
    return LAC_OK;
}

static lac_status parse_header(train_file *f)
{
    const size_t len = (size_t)header_len_of(f->bytes.data);
    const char *const text = (const char *)f->bytes.data + TRAIN_LENGTH_SIZE;
    const char *end = NULL;
    f->header = cJSON_ParseWithLengthOpts(text, len, &end, 0);
    while (f->header != NULL && end < text + len && *end == ' ') {
        end++;
    }
    if (f->header == NULL || end != text + len) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: the header is not JSON", f->bytes.name);
    }
    f->values = f->bytes.data + TRAIN_LENGTH_SIZE + len;
    f->values_len = f->bytes.len - TRAIN_LENGTH_SIZE - len;
    return check_version(f);
}

lac_status train_file_open(train_file *f, data_bytes bytes)
{
    *f = (train_file){.bytes = bytes};
    lac_status status = check_frame(&bytes);
    if (status == LAC_OK) {
        status = check_sum(&bytes);
    }
    if (status == LAC_OK) {
        status = parse_header(f);
    }
    if (status != LAC_OK) {
        train_file_close(f);
    }
    return status;
}

void train_file_close(train_file *f)
{
    cJSON_Delete(f->header);
    f->header = NULL;
    data_bytes_free(&f->bytes);
}

bool train_take_number(const char **text, uint64_t *out)
{
    const char *const first = *text;
    uint64_t value = 0;
    bool fits = true;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        fits = fits && !__builtin_mul_overflow(value, UINT64_C(10), &value) &&
               !__builtin_add_overflow(value, (uint64_t)(**text - '0'), &value);
    }
    *out = value;
    return fits && *text > first && (*first != '0' || *text == first + 1);
}

static bool is_number(const cJSON *item, uint64_t *out)
{
    const char *text = cJSON_IsString(item) ? item->valuestring : "";
    return train_take_number(&text, out) && *text == '\0';
}

lac_status train_file_number(
    const train_file *f, const char *name, uint64_t *value_out)
{
    char text[TRAIN_SHOWN_SIZE];
    uint64_t value;
    const cJSON *const item =
        cJSON_GetObjectItemCaseSensitive(train_file_metadata(f), name);
    if (item == NULL) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: has no number '%s'", f->bytes.name, name);
    }
    if (!is_number(item, &value)) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: '%s' is '%s', expected a whole number",
            f->bytes.name, name,
            train_shown(cJSON_IsString(item) ? item->valuestring : "", text));
    }
    *value_out = value;
    return LAC_OK;
}
