// SPDX-License-Identifier: MIT
// Layouts: the ordered list of a model's tensors, from an array or from text.
#include <laconic/layout.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include <laconic/random.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/words.h"

enum { DIGITS_MAX = 19, SHOWN_MAX = 40 };

struct lac_layout {
    size_t count;
    size_t values;
    uint64_t hash;
    const lac_tensor **by_name; // sorted, for look-ups
    char *names;
    lac_tensor tensors[];
};

static int compare_names(const void *a, const void *b)
{
    const lac_tensor *const *const left = a;
    const lac_tensor *const *const right = b;
    return strcmp((*left)->name, (*right)->name);
}

static bool printable(const char *name)
{
    for (; *name != '\0'; name++) {
        if ((unsigned char)*name <= ' ' || *name == 0x7f || *name == ',' ||
            *name == '#') {
            return false;
        }
    }
    return true;
}

static lac_status check_name(const lac_tensor *tensor, size_t index)
{
    if (tensor->name == NULL || tensor->name[0] == '\0' ||
        !printable(tensor->name)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "layout: tensor %zu has a name that is empty or has a blank, comma "
            "or #",
            index);
    }
    return LAC_OK;
}

// One block holds everything: the tensors, the order by name, the names.
static lac_status layout_allocate(
    lac_layout **out, const lac_tensor *tensors, size_t count)
{
    size_t names = 0;
    for (size_t i = 0; i < count; i++) {
        LAC_TRY(check_name(&tensors[i], i));
        names += strlen(tensors[i].name) + 1;
    }
    size_t size, order;
    lac_layout *layout = NULL;
    if (laci_mul(count, sizeof(lac_tensor), &size) &&
        laci_mul(count, sizeof(*layout->by_name), &order) &&
        laci_add(size, order, &size) && laci_add(size, names, &size) &&
        laci_add(size, sizeof(*layout), &size)) {
        layout = laci_zalloc(size);
    }
    if (layout == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "layout: no memory for %zu tensors", count);
    }
    layout->count = count;
    layout->by_name = (void *)&layout->tensors[count];
    layout->names = (char *)&layout->by_name[count];
    *out = layout;
    return LAC_OK;
}

static lac_status layout_fill(lac_layout *layout, const lac_tensor *tensors)
{
    char *name = layout->names;
    for (size_t i = 0; i < layout->count; i++) {
        const lac_shape shape = tensors[i].shape;
        const size_t name_size = strlen(tensors[i].name) + 1;
        memcpy(name, tensors[i].name, name_size);
        layout->tensors[i] = (lac_tensor){
            .name = name,
            .shape = shape,
            .offset = layout->values,
            .name_hash = lac_name_hash(name),
        };
        layout->by_name[i] = &layout->tensors[i];
        name += name_size;
        size_t values;
        if (!laci_mul(shape.rows, shape.cols, &values) ||
            !laci_add(layout->values, values, &layout->values) ||
            layout->values > LAC_VALUES_MAX) {
            return lac_fail(
                LAC_ERR_INVALID,
                "layout: %s of %zu x %zu values makes more than %zu in all",
                tensors[i].name, shape.rows, shape.cols,
                (size_t)LAC_VALUES_MAX);
        }
    }
    return LAC_OK;
}

static lac_status sort_by_name(lac_layout *layout)
{
    if (layout->count == 0) {
        return LAC_OK;
    }
    qsort(
        layout->by_name, layout->count, sizeof(*layout->by_name),
        compare_names);
    for (size_t i = 1; i < layout->count; i++) {
        if (strcmp(layout->by_name[i - 1]->name, layout->by_name[i]->name) ==
            0) {
            return lac_fail(
                LAC_ERR_INVALID, "layout: two tensors are named %s",
                layout->by_name[i]->name);
        }
    }
    return LAC_OK;
}

// Each tensor is hashed with the hash so far, so that the order matters.
static uint64_t layout_hash_of(const lac_layout *layout)
{
    uint64_t hash = layout->count;
    for (size_t i = 0; i < layout->count; i++) {
        uint8_t item[32];
        laci_put_u64(item, hash);
        laci_put_u64(item + 8, layout->tensors[i].name_hash);
        laci_put_u64(item + 16, layout->tensors[i].shape.rows);
        laci_put_u64(item + 24, layout->tensors[i].shape.cols);
        hash = XXH3_64bits(item, sizeof(item));
    }
    return hash;
}

lac_status lac_layout_open(
    lac_layout **out, const lac_tensor *tensors, size_t count)
{
    *out = NULL;
    lac_layout *layout = NULL;
    if (tensors == NULL && count > 0) {
        return lac_fail(
            LAC_ERR_INVALID, "layout: the array of %zu tensors is NULL", count);
    }
    LAC_TRY(layout_allocate(&layout, tensors, count));
    lac_status status = layout_fill(layout, tensors);
    if (status == LAC_OK) {
        status = sort_by_name(layout);
    }
    if (status != LAC_OK) {
        lac_layout_close(layout);
        return status;
    }
    layout->hash = layout_hash_of(layout);
    *out = layout;
    return LAC_OK;
}

static bool layout_read_size(laci_words word, size_t *out)
{
    uint64_t value;
    const bool whole = laci_read_whole(word, DIGITS_MAX, &value);
    *out = whole ? (size_t)value : *out;
    return whole;
}

// Reads "name rows [columns]" and writes the name, with its NUL, to `name`.
static lac_status read_tensor(
    laci_words line, size_t number, char *name, lac_tensor *out)
{
    const laci_words whole = line;
    const laci_words title = laci_next_word(&line);
    const laci_words rows = laci_next_word(&line);
    const laci_words cols = laci_next_word(&line);
    const laci_words rest = laci_next_word(&line);
    lac_shape shape = {0, 1};
    if (!layout_read_size(rows, &shape.rows) ||
        (cols.len > 0 && !layout_read_size(cols, &shape.cols)) ||
        rest.len > 0 || memchr(title.start, '\0', title.len) != NULL) {
        return lac_fail(
            LAC_ERR_INVALID,
            "layout: line %zu is \"%.*s\", expected a name, rows and columns",
            number, (int)(whole.len < SHOWN_MAX ? whole.len : SHOWN_MAX),
            whole.start);
    }
    memcpy(name, title.start, title.len);
    name[title.len] = '\0';
    *out = (lac_tensor){.name = name, .shape = shape};
    return LAC_OK;
}

static lac_status layout_read_all(
    const char *text, size_t len, lac_tensor *tensors, char *names,
    size_t *count_out)
{
    const char *const end = text + len;
    size_t number = 0, count = 0;
    for (const char *cursor = text; cursor < end;) {
        const laci_words line = laci_next_line(&cursor, end);
        laci_words probe = line;
        number++;
        if (laci_next_word(&probe).len == 0) {
            continue;
        }
        LAC_TRY(read_tensor(line, number, names, &tensors[count]));
        names += strlen(names) + 1;
        count++;
    }
    *count_out = count;
    return LAC_OK;
}

lac_status lac_layout_parse(lac_layout **out, const char *text, size_t len)
{
    *out = NULL;
    if (text == NULL && len > 0) {
        return lac_fail(
            LAC_ERR_INVALID, "layout: the text of %zu bytes is NULL", len);
    }
    // Every tensor takes at least "a 1" and a line end, so there are at most
    // len / 4 + 1. Their names, NULs included, fit in `len` bytes.
    const size_t most = len / 4 + 1;
    size_t size;
    lac_tensor *const tensors =
        laci_mul(most, sizeof(*tensors), &size) && laci_add(size, len, &size)
            ? laci_zalloc(size + 1)
            : NULL;
    if (tensors == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "layout: no memory for %zu bytes of text", len);
    }
    size_t count;
    lac_status status =
        layout_read_all(text, len, tensors, (char *)&tensors[most], &count);
    if (status == LAC_OK) {
        status = lac_layout_open(out, tensors, count);
    }
    laci_free(tensors);
    return status;
}

void lac_layout_close(lac_layout *layout)
{
    laci_free(layout);
}

size_t lac_layout_count(const lac_layout *layout)
{
    return layout->count;
}

size_t lac_layout_values(const lac_layout *layout)
{
    return layout->values;
}

const lac_tensor *lac_layout_tensor(const lac_layout *layout, size_t index)
{
    return &layout->tensors[index];
}

const lac_tensor *lac_layout_find(const lac_layout *layout, const char *name)
{
    const lac_tensor wanted = {.name = name};
    const lac_tensor *const key = &wanted;
    const lac_tensor *const *const found =
        layout->count == 0 ? NULL
                           : bsearch(
                                 &key, layout->by_name, layout->count,
                                 sizeof(*layout->by_name), compare_names);
    return found == NULL ? NULL : *found;
}

uint64_t lac_layout_hash(const lac_layout *layout)
{
    return layout->hash;
}
