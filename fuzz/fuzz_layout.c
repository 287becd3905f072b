// SPDX-License-Identifier: MIT
// Arbitrary text as a layout. What parses must hold together.
#include <stdlib.h>

#include "fuzz.h"

static void look_at(const lac_layout *layout)
{
    size_t values = 0;
    for (size_t i = 0; i < lac_layout_count(layout); i++) {
        const lac_tensor *const t = lac_layout_tensor(layout, i);
        fuzz_require(t->offset == values, "tensors do not follow each other");
        fuzz_require(
            lac_layout_find(layout, t->name) == t, "a name is not found");
        fuzz_require(t->name_hash == lac_name_hash(t->name), "a hash is wrong");
        values += lac_shape_values(t->shape);
    }
    fuzz_require(lac_layout_values(layout) == values, "the sum is wrong");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = fuzz_copy(data, size);
    lac_layout *layout = NULL;
    if (lac_layout_parse(&layout, text, size) == LAC_OK) {
        look_at(layout);
    } else {
        fuzz_require(layout == NULL, "a failed parse leaves a layout");
        fuzz_require(lac_error_message()[0] != '\0', "no message");
    }
    lac_layout_close(layout);
    free(text);
    return 0;
}
