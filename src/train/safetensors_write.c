// SPDX-License-Identifier: MIT
// Writes safetensors. Two passes go over the caller's values in small pieces:
// the first computes the checksum, which precedes them in the file, the second
// writes them.
#include "train/safetensors.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "data/output.h"
#include "train/safetensors_file.h"

enum {
    ALIGNMENT = 64,
    PIECE_VALUES = 4096,
    NUMBER_SIZE = 32,
};

// cJSON writes larger numbers with an exponent.
static const double LARGEST_OFFSET = 1e15;

const char *train_dtype_name(train_dtype dtype)
{
    return dtype == TRAIN_F32 ? "F32" : "U8";
}

const char *train_tensor_prefix(const train_tensor *t)
{
    return t->prefix == NULL ? "" : t->prefix;
}

bool train_tensor_named(const train_tensor *t, const char *name)
{
    const char *const prefix = train_tensor_prefix(t);
    const size_t len = strlen(prefix);
    return strncmp(name, prefix, len) == 0 && strcmp(name + len, t->name) == 0;
}

lac_status train_tensor_bytes(
    const char *path, const train_tensor *t, size_t *bytes_out)
{
    size_t bytes = t->dtype == TRAIN_F32 ? sizeof(float) : 1;
    bool empty = false, fits = true;
    assert(t->dimension_count <= TRAIN_DIMENSIONS_MAX);
    for (size_t i = 0; i < t->dimension_count; i++) {
        empty = empty || t->dimensions[i] == 0;
        fits = fits && !__builtin_mul_overflow(bytes, t->dimensions[i], &bytes);
    }
    if (!empty && (!fits || (double)bytes > LARGEST_OFFSET)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: tensor '%s%s' is too large", path,
            train_tensor_prefix(t), t->name);
    }
    *bytes_out = empty ? 0 : bytes;
    return LAC_OK;
}

// Receives the bytes of a file: to hash or to write them.
typedef lac_status train_sink(void *to, const void *data, size_t len);

static lac_status to_hash(void *to, const void *data, size_t len)
{
    (void)XXH3_64bits_update(to, data, len);
    return LAC_OK;
}

static lac_status to_output(void *to, const void *data, size_t len)
{
    return data_output_append(to, data, len);
}

static lac_status emit_floats(
    const float *x, size_t n, train_sink *emit, void *to)
{
    uint8_t piece[PIECE_VALUES * sizeof(float)];
    for (size_t at = 0; at < n; at += PIECE_VALUES) {
        const size_t count = n - at < PIECE_VALUES ? n - at : PIECE_VALUES;
        for (size_t i = 0; i < count; i++) {
            uint32_t bits;
            memcpy(&bits, &x[at + i], sizeof(bits));
            const uint8_t bytes[] = {
                (uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                (uint8_t)(bits >> 24)};
            memcpy(piece + i * sizeof(float), bytes, sizeof(bytes));
        }
        LAC_TRY(emit(to, piece, count * sizeof(float)));
    }
    return LAC_OK;
}

// Returns tensor number `at` of the file. Floats come first, so that they are
// aligned, which some readers need.
static const train_tensor *tensor_at(const train_record *record, size_t at)
{
    size_t floats = 0;
    for (size_t i = 0; i < record->tensor_count; i++) {
        floats += record->tensors[i].dtype == TRAIN_F32;
    }
    const train_dtype dtype = at < floats ? TRAIN_F32 : TRAIN_U8;
    size_t left = at < floats ? at : at - floats;
    const train_tensor *t = record->tensors;
    while (t->dtype != dtype || left-- > 0) {
        t++;
    }
    return t;
}

static lac_status emit_tensors(
    const char *path, const train_record *record, train_sink *emit, void *to)
{
    for (size_t i = 0; i < record->tensor_count; i++) {
        const train_tensor *const t = tensor_at(record, i);
        size_t len = 0;
        LAC_TRY(train_tensor_bytes(path, t, &len));
        if (len > 0 && t->dtype == TRAIN_F32) {
            LAC_TRY(emit_floats(t->data, len / sizeof(float), emit, to));
        } else if (len > 0) {
            LAC_TRY(emit(to, t->data, len));
        }
    }
    return LAC_OK;
}

static bool add_metadata(cJSON *header, const train_record *record)
{
    cJSON *const o = cJSON_AddObjectToObject(header, TRAIN_METADATA);
    bool good =
        o != NULL &&
        cJSON_AddStringToObject(o, "checksum", "0000000000000000") != NULL &&
        cJSON_AddStringToObject(o, "format", "pt") != NULL &&
        cJSON_AddStringToObject(o, "laconic", TRAIN_FORMAT_VERSION) != NULL;
    for (size_t i = 0; good && i < record->number_count; i++) {
        const train_number *const number = &record->numbers[i];
        char text[NUMBER_SIZE];
        assert(cJSON_GetObjectItemCaseSensitive(o, number->name) == NULL);
        (void)snprintf(text, sizeof(text), "%" PRIu64, *number->value);
        good = cJSON_AddStringToObject(o, number->name, text) != NULL;
    }
    for (size_t i = 0; good && i < record->text_count; i++) {
        const train_text *const text = &record->texts[i];
        good = cJSON_AddStringToObject(o, text->name, text->value) != NULL;
    }
    return good;
}

static bool add_number(cJSON *array, size_t number)
{
    return cJSON_AddItemToArray(array, cJSON_CreateNumber((double)number));
}

static bool add_tensor(
    cJSON *header, const train_tensor *t, size_t begin, size_t end)
{
    const char *const prefix = train_tensor_prefix(t);
    const size_t size = strlen(prefix) + strlen(t->name) + 1;
    char *const name = malloc(size);
    if (name == NULL) {
        return false;
    }
    (void)snprintf(name, size, "%s%s", prefix, t->name);
    assert(cJSON_GetObjectItemCaseSensitive(header, name) == NULL);
    cJSON *const o = cJSON_AddObjectToObject(header, name);
    free(name);
    if (o == NULL || cJSON_AddStringToObject(
                         o, "dtype", train_dtype_name(t->dtype)) == NULL) {
        return false;
    }
    cJSON *const shape = cJSON_AddArrayToObject(o, "shape");
    cJSON *const offsets = cJSON_AddArrayToObject(o, "data_offsets");
    bool good = shape != NULL && offsets != NULL &&
                add_number(offsets, begin) && add_number(offsets, end);
    for (size_t i = 0; good && i < t->dimension_count; i++) {
        good = add_number(shape, t->dimensions[i]);
    }
    return good;
}

static lac_status fill_header(
    const char *path, const train_record *record, cJSON *header)
{
    bool good = header != NULL && add_metadata(header, record);
    size_t at = 0;
    for (size_t i = 0; good && i < record->tensor_count; i++) {
        const train_tensor *const t = tensor_at(record, i);
        size_t len = 0;
        LAC_TRY(train_tensor_bytes(path, t, &len));
        if ((double)at + (double)len > LARGEST_OFFSET) {
            return lac_fail(
                LAC_ERR_INVALID, "%s: the tensors together are too large",
                path);
        }
        good = add_tensor(header, t, at, at + len);
        at += len;
    }
    return good ? LAC_OK
                : lac_fail(LAC_ERR_NOMEM, "%s: no memory for a header", path);
}

// Adds the length before the header and spaces after it. The caller frees
// `*head_out`.
static lac_status frame_header(
    const char *path, const char *text, uint8_t **head_out, size_t *len_out)
{
    const size_t text_len = strlen(text);
    const size_t len =
        (TRAIN_LENGTH_SIZE + text_len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const uint64_t header_len = len - TRAIN_LENGTH_SIZE;
    if (header_len > TRAIN_HEADER_MAX) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: the header would have %" PRIu64 " bytes, expected at most %d",
            path, header_len, TRAIN_HEADER_MAX);
    }
    uint8_t *const head = malloc(len);
    if (head == NULL) {
        return data_no_memory(path, len);
    }
    for (int i = 0; i < TRAIN_LENGTH_SIZE; i++) {
        head[i] = (uint8_t)(header_len >> 8 * i);
    }
    memcpy(head + TRAIN_LENGTH_SIZE, text, text_len);
    memset(
        head + TRAIN_LENGTH_SIZE + text_len, ' ',
        len - TRAIN_LENGTH_SIZE - text_len);
    *head_out = head;
    *len_out = len;
    return LAC_OK;
}

static lac_status make_header(
    const char *path, const train_record *record, uint8_t **head_out,
    size_t *len_out)
{
    cJSON *const header = cJSON_CreateObject();
    lac_status status = fill_header(path, record, header);
    if (status == LAC_OK) {
        char *const text = cJSON_PrintUnformatted(header);
        status =
            text == NULL
                ? lac_fail(LAC_ERR_NOMEM, "%s: no memory for a header", path)
                : frame_header(path, text, head_out, len_out);
        cJSON_free(text);
    }
    cJSON_Delete(header);
    return status;
}

static lac_status put_checksum(
    const char *path, const train_record *record, uint8_t *head, size_t len)
{
    assert(head != NULL);
    XXH3_state_t *const state = XXH3_createState();
    if (state == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "%s: no memory for a checksum", path);
    }
    (void)XXH3_64bits_reset(state);
    (void)XXH3_64bits_update(state, head, len);
    const lac_status status = emit_tensors(path, record, to_hash, state);
    char digits[TRAIN_DIGITS + 1];
    (void)snprintf(
        digits, sizeof(digits), "%016" PRIx64, XXH3_64bits_digest(state));
    memcpy(head + TRAIN_DIGITS_AT, digits, TRAIN_DIGITS);
    (void)XXH3_freeState(state);
    return status;
}

static lac_status write_file(
    const char *path, const train_record *record, const uint8_t *head,
    size_t len)
{
    data_output output;
    LAC_TRY(data_output_begin(&output, path));
    // A failure of these ends the output.
    LAC_TRY(data_output_append(&output, head, len));
    LAC_TRY(emit_tensors(path, record, to_output, &output));
    return data_output_commit(&output);
}

lac_status train_safetensors_write(const char *path, const train_record *record)
{
    uint8_t *head = NULL;
    size_t len = 0;
    lac_status status = make_header(path, record, &head, &len);
    if (status == LAC_OK) {
        status = put_checksum(path, record, head, len);
    }
    if (status == LAC_OK) {
        status = write_file(path, record, head, len);
    }
    free(head);
    return status;
}
