// SPDX-License-Identifier: MIT
// Divides the tensors of a layout into fragments of about as many values: the
// largest tensor first, each goes to the fragment with the fewest values so
// far. Ties are broken by name, so that the order of the layout does not
// matter.
#include <stdlib.h>
#include <string.h>

#include "algorithm/framework/fragments.h"
#include "base/alloc.h"
#include "base/fail.h"

typedef struct sized_tensor {
    const char *name;
    size_t n;
    size_t index; // in the layout
} sized_tensor;

static int compare_tensors(const void *a, const void *b)
{
    const sized_tensor *const x = a, *const y = b;
    if (x->n != y->n) {
        return x->n > y->n ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

static void divide(
    sized_tensor *tensors, size_t count, size_t *loads, uint32_t fragments,
    uint32_t *out)
{
    qsort(tensors, count, sizeof(*tensors), compare_tensors);
    for (size_t i = 0; i < count; i++) {
        uint32_t least = 0;
        for (uint32_t f = 1; f < fragments; f++) {
            least = loads[f] < loads[least] ? f : least;
        }
        // One more, so that tensors without values are spread too.
        loads[least] += tensors[i].n + 1;
        out[tensors[i].index] = least;
    }
}

lac_status laci_fragments_divide(
    const lac_layout *layout, uint32_t fragments, uint32_t *out)
{
    const size_t count = lac_layout_count(layout);
    sized_tensor *const tensors = laci_zalloc((count + 1) * sizeof(*tensors));
    size_t *const loads = laci_zalloc((size_t)fragments * sizeof(*loads));
    const bool complete = tensors != NULL && loads != NULL;
    for (size_t i = 0; complete && i < count; i++) {
        const lac_tensor *const t = lac_layout_tensor(layout, i);
        tensors[i] = (sized_tensor){t->name, lac_shape_values(t->shape), i};
    }
    if (complete) {
        divide(tensors, count, loads, fragments, out);
    }
    laci_free(loads);
    laci_free(tensors);
    return complete ? LAC_OK
                    : lac_fail(
                          LAC_ERR_NOMEM,
                          "algorithm: no memory for %u fragments of %zu "
                          "tensors",
                          fragments, count);
}
