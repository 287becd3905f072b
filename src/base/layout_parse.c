// SPDX-License-Identifier: MIT
// Layouts as text: a line a tensor, with its name, rows and columns.
#include <laconic/layout.h>

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/words.h"

enum { DIGITS_MAX = 19, SHOWN_MAX = 40 };

static bool read_size(laci_words word, size_t *out)
{
    uint64_t value;
    const bool whole = laci_read_whole(word, DIGITS_MAX, &value);
    *out = whole ? (size_t)value : *out;
    return whole;
}

// Reads "name rows [columns]" and puts the name, with its NUL, at `name`.
static lac_status read_tensor(
    laci_words line, size_t number, char *name, lac_tensor *out)
{
    const laci_words whole = line;
    const laci_words title = laci_next_word(&line);
    const laci_words rows = laci_next_word(&line);
    const laci_words cols = laci_next_word(&line);
    const laci_words rest = laci_next_word(&line);
    lac_shape shape = {0, 1};
    if (!read_size(rows, &shape.rows) ||
        (cols.len > 0 && !read_size(cols, &shape.cols)) || rest.len > 0 ||
        memchr(title.start, '\0', title.len) != NULL) {
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

static lac_status read_all(
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
    // Every tensor takes at least "a 1" and a line end, so a quarter of the
    // text is enough of them; their names, NULs included, fit in its length.
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
        read_all(text, len, tensors, (char *)&tensors[most], &count);
    if (status == LAC_OK) {
        status = lac_layout_open(out, tensors, count);
    }
    laci_free(tensors);
    return status;
}
