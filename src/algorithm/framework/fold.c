// SPDX-License-Identifier: MIT
#include "algorithm/framework/fold.h"

#include "algorithm/framework/dtype.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/fold.h"

// Writes the tensors as the algorithm views them; returns whether any differs.
static bool fold_tensors(const lac_algorithm *a, lac_tensor *tensors)
{
    bool any = false;
    for (size_t i = 0; i < lac_layout_count(a->given); i++) {
        tensors[i] = *lac_layout_tensor(a->given, i);
        const lac_shape given = tensors[i].shape, folded = laci_fold(given);
        if (folded.rows != given.rows &&
            a->ops->folds(a->state, lac_shape_values(given), folded)) {
            tensors[i].shape = folded;
            any = true;
        }
    }
    return any;
}

lac_status laci_fold_open(lac_algorithm *a)
{
    const size_t count = lac_layout_count(a->given);
    if (a->ops->folds == NULL) {
        return LAC_OK;
    }
    lac_tensor *const tensors = laci_zalloc((count + 1) * sizeof(*tensors));
    if (tensors == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for %zu tensors", a->worker.algorithm,
            count);
    }
    lac_status status = LAC_OK;
    if (fold_tensors(a, tensors)) {
        status = lac_layout_open(&a->folded, tensors, count);
        a->worker.layout = a->folded;
    }
    laci_free(tensors);
    return status;
}

size_t laci_fold_room(const lac_algorithm *a)
{
    size_t room = 0;
    for (size_t i = 0; i < lac_layout_count(a->given); i++) {
        const size_t values =
            lac_shape_values(lac_layout_tensor(a->given, i)->shape);
        const size_t n = laci_tensor_values(&a->worker, i);
        room += n == values ? 0 : laci_stage_room(n);
    }
    // Those of updates are copied too.
    return a->ops->family == LAC_FAMILY_MODEL ? 2 * room : room;
}
