// SPDX-License-Identifier: MIT
#include "algorithm/gradient.h"

#include "base/fail.h"

void laci_gradient_put(
    lac_compressor *c, const lac_key *key, const laci_item *item,
    const float *values, laci_writer *message)
{
    const size_t bound = lac_compressor_bound(c, item->shape, key->scope);
    uint8_t *const out = laci_writer_room(message, bound);
    size_t len = 0;
    // Sizes were reserved at open: encoding cannot fail.
    (void)!lac_compressor_encode(c, key, item->shape, values, out, bound, &len);
    laci_writer_commit(message, len);
}

lac_status laci_gradient_take(
    laci_worker *w, lac_compressor *c, const lac_key *key,
    const laci_round *round, uint32_t k, size_t i)
{
    laci_view *const view = laci_gradient_view(w, round, k, i);
    LAC_TRY(laci_reader_next(&w->readers[k], &view->bytes, &view->len));
    return lac_compressor_check(
        c, key, round->items[i].shape, view->bytes, view->len);
}

size_t laci_gradient_bound(
    const laci_worker *w, const lac_compressor *c, size_t tensor,
    lac_scope_kind scope)
{
    return lac_compressor_bound(
        c, lac_layout_tensor(w->layout, tensor)->shape, scope);
}
