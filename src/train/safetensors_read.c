// SPDX-License-Identifier: MIT
// Takes the tensors of a record from a file. Nothing that the header says is
// used as a number: each is compared with what it has to be, so no size and no
// place can be made up.
#include "train/safetensors_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPE_SIZE = 128, SHAPE_SHOWN = 8 };

static lac_status check_numbers(const train_file *f, const train_record *record)
{
    size_t count = 0;
    for (const cJSON *i = train_file_metadata(f)->child; i != NULL;
         i = i->next) {
        count++;
    }
    for (size_t i = 0; i < record->number_count; i++) {
        uint64_t value;
        const lac_status status =
            train_file_number(f, record->numbers[i].name, &value);
        if (status != LAC_OK) {
            return status;
        }
    }
    if (count != record->number_count + TRAIN_METADATA_OWN) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: has %zu texts beside its tensors, expected %zu", f->bytes.name,
            count, record->number_count + TRAIN_METADATA_OWN);
    }
    return LAC_OK;
}

static bool holds_number(const cJSON *item, size_t number)
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
        if (!holds_number(item, t->dimensions[i++])) {
            return false;
        }
    }
    return item == NULL && i == t->dimension_count;
}

// Writes a shape as it may be shown: a few sizes, each of a few digits.
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
        (void)snprintf(out, SHAPE_SIZE, "that of one value");
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
    cJSON *const wanted =
        cJSON_CreateDoubleArray(sizes, (int)t->dimension_count);
    if (wanted == NULL) {
        return data_no_memory(f->bytes.name, sizeof(sizes));
    }
    show_shape(shape, found);
    show_shape(wanted, expected);
    cJSON_Delete(wanted);
    return lac_fail(
        LAC_ERR_INVALID, "%s: the shape of tensor '%s%s' is %s, expected %s",
        f->bytes.name, train_tensor_prefix(t), t->name, found, expected);
}

// Looks at one tensor of the header, whose values have to begin at `at`.
static lac_status check_tensor(
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
            "%s: tensor '%s%s' lacks a dtype, a shape or its place", path,
            train_tensor_prefix(t), t->name);
    }
    if (strcmp(dtype->valuestring, train_dtype_name(t->dtype)) != 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: tensor '%s%s' is of type '%s', expected '%s'",
            path, train_tensor_prefix(t), t->name,
            train_shown(dtype->valuestring, text), train_dtype_name(t->dtype));
    }
    if (!same_shape(shape, t)) {
        return shape_differs(f, t, shape);
    }
    const lac_status status = train_tensor_bytes(path, t, &len);
    if (status != LAC_OK) {
        return status;
    }
    const cJSON *const begin = place->child;
    const cJSON *const end = begin == NULL ? NULL : begin->next;
    if (!holds_number(begin, *at) || len > f->values_len - *at ||
        !holds_number(end, *at + len) || end->next != NULL) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: tensor '%s%s' is out of place, expected %zu bytes from %zu on",
            path, train_tensor_prefix(t), t->name, len, *at);
    }
    *at += len;
    return LAC_OK;
}

// Finds the tensor that an item of the header names, beginning at `guess`:
// they usually come in order. Returns tensor_count if there is none.
static size_t find_tensor(
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

// Checks all tensors and writes where the values of each begin. Tensors that
// are not in the file keep SIZE_MAX.
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
        const size_t i = find_tensor(record, guess++, item->string);
        if (i == record->tensor_count) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: has a tensor '%s', expected none so named", f->bytes.name,
                train_shown(item->string, text));
        }
        if (places[i] != SIZE_MAX) {
            return lac_fail(
                LAC_ERR_CORRUPT, "%s: has two tensors '%s', expected one",
                f->bytes.name, train_shown(item->string, text));
        }
        places[i] = at;
        const lac_status status =
            check_tensor(f, item, &record->tensors[i], &at);
        if (status != LAC_OK) {
            return status;
        }
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

static void take_values(
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
        take_values(f, &record->tensors[i], f->values + places[i]);
    }
    for (size_t i = 0; status == LAC_OK && i < record->number_count; i++) {
        const train_number *const number = &record->numbers[i];
        status = train_file_number(f, number->name, number->value);
    }
    free(places);
    return status;
}

lac_status train_safetensors_read(const char *path, const train_record *record)
{
    data_bytes bytes;
    train_file f;
    lac_status status = data_file_read(path, &bytes);
    if (status == LAC_OK) {
        status = train_file_open(&f, bytes);
    }
    if (status == LAC_OK) {
        status = train_file_load(&f, record);
        train_file_close(&f);
    }
    return status;
}
