// SPDX-License-Identifier: MIT
// Reads safetensors: checks the checksum and parses the header of a file, then
// fills the tensors and numbers of a record. The checksum comes first: after it
// the file is as it was written, by us or by an attacker. So no number of the
// header is used as a size or an offset: each is only compared with the value
// that it must have.
#include "train/safetensors_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

enum { SHAPE_SIZE = 128, SHAPE_SHOWN = 8 };

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
            " bytes, expected at most %d and no more than the file",
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
            LAC_ERR_CORRUPT,
            "%s: the checksum of its %zu bytes is %s, expected the one in its "
            "header: it is damaged or cut short",
            b->name, b->len, digits);
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
            LAC_ERR_CORRUPT, "%s: has no format version", f->bytes.name);
    }
    if (strcmp(version->valuestring, TRAIN_FORMAT_VERSION) != 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: has format version '%s', expected '%s'",
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

static lac_status check_file(train_file *f)
{
    LAC_TRY(check_frame(&f->bytes));
    LAC_TRY(check_sum(&f->bytes));
    return parse_header(f);
}

lac_status train_file_open(train_file *f, data_bytes bytes)
{
    *f = (train_file){.bytes = bytes};
    const lac_status status = check_file(f);
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

// Whether a file lacks a number that it need not have.
static bool is_left_out(const train_file *f, const train_number *number)
{
    return number->optional &&
           cJSON_GetObjectItemCaseSensitive(
               train_file_metadata(f), number->name) == NULL;
}

static lac_status check_numbers(const train_file *f, const train_record *record)
{
    size_t count = 0, expected = TRAIN_METADATA_OWN;
    for (const cJSON *i = train_file_metadata(f)->child; i != NULL;
         i = i->next) {
        count++;
    }
    for (size_t i = 0; i < record->number_count; i++) {
        uint64_t value;
        if (!is_left_out(f, &record->numbers[i])) {
            LAC_TRY(train_file_number(f, record->numbers[i].name, &value));
            expected++;
        }
    }
    if (count != expected && !(record->has_texts && count > expected)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: has %zu metadata entries, expected %zu",
            f->bytes.name, count, expected);
    }
    return LAC_OK;
}

static bool is_equal_to(const cJSON *item, size_t number)
{
    return item != NULL && cJSON_IsNumber(item) &&
           item->valuedouble >= (double)number &&
           item->valuedouble <= (double)number;
}

static bool same_shape(const cJSON *shape, const train_tensor *t)
{
    size_t i = 0;
    const cJSON *item = shape->child;
    for (; item != NULL && i < t->dimension_count; item = item->next) {
        if (!is_equal_to(item, t->dimensions[i++])) {
            return false;
        }
    }
    return item == NULL && i == t->dimension_count;
}

// Writes a shape for a message: a few sizes, each of a few digits.
static void show_shape(const cJSON *shape, char out[SHAPE_SIZE])
{
    size_t len = 0;
    int count = 0;
    for (const cJSON *i = shape->child; i != NULL; i = i->next) {
        if (++count > SHAPE_SHOWN || len > SHAPE_SIZE / 2) {
            break;
        }
        const int added = snprintf(
            out + len, SHAPE_SIZE - len, "%s%.15g", len == 0 ? "" : " x ",
            cJSON_IsNumber(i) ? i->valuedouble : 0.0);
        len += added > 0 ? (size_t)added : 0;
    }
    if (len == 0) {
        (void)snprintf(out, SHAPE_SIZE, "scalar");
    }
}

static lac_status shape_differs(
    const train_file *f, const train_tensor *t, const cJSON *shape)
{
    char found[SHAPE_SIZE], expected[SHAPE_SIZE];
    double sizes[TRAIN_DIMENSIONS_MAX];
    for (size_t i = 0; i < t->dimension_count; i++) {
        sizes[i] = (double)t->dimensions[i];
    }
    cJSON *const required =
        cJSON_CreateDoubleArray(sizes, (int)t->dimension_count);
    if (required == NULL) {
        return data_no_memory(f->bytes.name, sizeof(sizes));
    }
    show_shape(shape, found);
    show_shape(required, expected);
    cJSON_Delete(required);
    return lac_fail(
        LAC_ERR_INVALID, "%s: the shape of tensor '%s%s' is %s, expected %s",
        f->bytes.name, train_tensor_prefix(t), t->name, found, expected);
}

// Checks one tensor of the header, whose values must begin at `*at`.
static lac_status safetensors_check_tensor(
    const train_file *f, const cJSON *item, const train_tensor *t, size_t *at)
{
    char text[TRAIN_SHOWN_SIZE];
    size_t len = 0;
    const char *const path = f->bytes.name;
    const cJSON *const dtype = cJSON_GetObjectItemCaseSensitive(item, "dtype");
    const cJSON *const shape = cJSON_GetObjectItemCaseSensitive(item, "shape");
    const cJSON *const place =
        cJSON_GetObjectItemCaseSensitive(item, "data_offsets");
    if (!cJSON_IsString(dtype) || !cJSON_IsArray(shape) ||
        !cJSON_IsArray(place)) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: tensor '%s%s' has no dtype, shape or data_offsets", path,
            train_tensor_prefix(t), t->name);
    }
    if (strcmp(dtype->valuestring, train_dtype_name(t->dtype)) != 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: tensor '%s%s' has dtype '%s', expected '%s'",
            path, train_tensor_prefix(t), t->name,
            train_shown(dtype->valuestring, text), train_dtype_name(t->dtype));
    }
    if (!same_shape(shape, t)) {
        return shape_differs(f, t, shape);
    }
    LAC_TRY(train_tensor_bytes(path, t, &len));
    const cJSON *const begin = place->child;
    const cJSON *const end = begin == NULL ? NULL : begin->next;
    if (!is_equal_to(begin, *at) || len > f->values_len - *at ||
        !is_equal_to(end, *at + len) || end->next != NULL) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: tensor '%s%s' has other data_offsets, expected %zu bytes at "
            "%zu",
            path, train_tensor_prefix(t), t->name, len, *at);
    }
    *at += len;
    return LAC_OK;
}

// Returns the index of the tensor with this name, or tensor_count if there is
// none. The search begins at `guess`, because the order usually is the same.
static size_t safetensors_find_tensor(
    const train_record *record, size_t guess, const char *name)
{
    for (size_t i = 0; i < record->tensor_count; i++) {
        const size_t at = (guess + i) % record->tensor_count;
        if (train_tensor_named(&record->tensors[at], name)) {
            return at;
        }
    }
    return record->tensor_count;
}

// Checks all tensors and writes the offset of the values of each. Entries of
// tensors that are not in the file stay SIZE_MAX.
static lac_status place_tensors(
    const train_file *f, const train_record *record, size_t *places)
{
    char text[TRAIN_SHOWN_SIZE];
    size_t at = 0, guess = 0;
    for (const cJSON *item = f->header->child; item != NULL;
         item = item->next) {
        if (item == train_file_metadata(f)) {
            continue;
        }
        const size_t i = safetensors_find_tensor(record, guess++, item->string);
        if (i == record->tensor_count) {
            return lac_fail(
                LAC_ERR_INVALID, "%s: has an unexpected tensor '%s'",
                f->bytes.name, train_shown(item->string, text));
        }
        if (places[i] != SIZE_MAX) {
            return lac_fail(
                LAC_ERR_CORRUPT, "%s: has two tensors '%s', expected one",
                f->bytes.name, train_shown(item->string, text));
        }
        places[i] = at;
        LAC_TRY(safetensors_check_tensor(f, item, &record->tensors[i], &at));
    }
    for (size_t i = 0; i < record->tensor_count; i++) {
        if (places[i] == SIZE_MAX) {
            const train_tensor *const t = &record->tensors[i];
            return lac_fail(
                LAC_ERR_INVALID, "%s: has no tensor '%s%s'", f->bytes.name,
                train_tensor_prefix(t), t->name);
        }
    }
    if (at != f->values_len) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: has %zu bytes of values, expected %zu",
            f->bytes.name, f->values_len, at);
    }
    return LAC_OK;
}

static void copy_values(
    const train_file *f, const train_tensor *t, const uint8_t *from)
{
    size_t len = 0;
    (void)train_tensor_bytes(f->bytes.name, t, &len);
    if (t->dtype == TRAIN_U8 && len > 0) {
        memcpy(t->data, from, len);
    }
    if (t->dtype == TRAIN_U8) {
        return;
    }
    float *const x = t->data;
    for (size_t i = 0; i < len / sizeof(float); i++, from += sizeof(float)) {
        const uint32_t bits = (uint32_t)from[0] | (uint32_t)from[1] << 8 |
                              (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
        memcpy(&x[i], &bits, sizeof(bits));
    }
}

lac_status train_file_load(const train_file *f, const train_record *record)
{
    size_t *const places = calloc(record->tensor_count + 1, sizeof(*places));
    if (places == NULL) {
        return data_no_memory(f->bytes.name, record->tensor_count);
    }
    for (size_t i = 0; i < record->tensor_count; i++) {
        places[i] = SIZE_MAX;
    }
    lac_status status = check_numbers(f, record);
    if (status == LAC_OK) {
        status = place_tensors(f, record, places);
    }
    for (size_t i = 0; status == LAC_OK && i < record->tensor_count; i++) {
        copy_values(f, &record->tensors[i], f->values + places[i]);
    }
    for (size_t i = 0; status == LAC_OK && i < record->number_count; i++) {
        const train_number *const number = &record->numbers[i];
        if (!is_left_out(f, number)) {
            status = train_file_number(f, number->name, number->value);
        }
    }
    free(places);
    return status;
}
