// SPDX-License-Identifier: MIT
#include "collective/finite.h"

#include <inttypes.h>

#include "base/fail.h"

static bool finite(
    const laci_group *g, const laci_number *type, const void *x, size_t n)
{
    return type->finite == NULL || type->finite(g->kernels, x, n);
}

static bool finite_bytes(
    const laci_group *g, const laci_number *type, const uint8_t *in, size_t n)
{
    return type->finite_bytes == NULL || type->finite_bytes(g->kernels, in, n);
}

static void note(laci_group *g, size_t at)
{
    g->nonfinite = at < g->nonfinite ? at : g->nonfinite;
}

void laci_finite_send(
    const laci_group *g, const laci_number *type, void *x, size_t n)
{
    if (g->expects_finite && !finite(g, type, x, n)) {
        type->mark(x, n);
    }
}

static bool is_mark(const laci_number *type, const uint8_t *in)
{
    return type->is_mark != NULL && type->is_mark(in);
}

// Numbers of which one is not finite.
static lac_status expect_marks(
    laci_group *g, const laci_number *type, uint32_t peer, const uint8_t *in,
    size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *const one = in + i * type->size;
        if (!finite_bytes(g, type, one, 1) && !is_mark(type, one)) {
            return laci_group_abort_on_failure(
                g, lac_fail(
                       LAC_ERR_CORRUPT,
                       "worker %" PRIu32
                       " sent a value in a sum that is not finite",
                       peer));
        }
    }
    return LAC_OK;
}

lac_status laci_finite_receive(
    laci_group *g, const laci_number *type, uint32_t peer, const uint8_t *in,
    size_t n)
{
    return !g->expects_finite || finite_bytes(g, type, in, n)
               ? LAC_OK
               : expect_marks(g, type, peer, in, n);
}

void laci_finite_end(
    laci_group *g, const laci_number *type, size_t at, void *x, size_t n)
{
    if (finite(g, type, x, n)) {
        return;
    }
    if (g->expects_finite) {
        type->mark(x, n);
    } else {
        type->unify_nan(x, n);
    }
    const uint8_t *const bytes = x;
    size_t first = 0;
    while (finite(g, type, bytes + first * type->size, 1)) {
        first++;
    }
    note(g, at + first);
}

lac_status laci_finite_end_received(
    laci_group *g, const laci_number *type, uint32_t peer, size_t at,
    const uint8_t *in, size_t n)
{
    if (finite_bytes(g, type, in, n)) {
        return LAC_OK;
    }
    size_t first = 0;
    while (finite_bytes(g, type, in + first * type->size, 1)) {
        first++;
    }
    note(g, at + first);
    return g->expects_finite ? expect_marks(g, type, peer, in, n) : LAC_OK;
}
