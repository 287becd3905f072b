// SPDX-License-Identifier: MIT
// What an open algorithm reports, and its kernels and learning rate.
#include <math.h>

#include "algorithm/framework/handle.h"
#include "algorithm/framework/inner.h"
#include "base/fail.h"
#include "compress/compressor.h"

lac_family lac_algorithm_family(const lac_algorithm *a)
{
    return a->ops->family;
}

bool lac_algorithm_takes_update(const lac_algorithm *a)
{
    return a->ops->takes_update;
}

const char *lac_algorithm_warning(const lac_algorithm *a)
{
    const char *const warning = laci_sender(a)->warning;
    return warning[0] == '\0' ? NULL : warning;
}

uint64_t lac_algorithm_round(const lac_algorithm *a, size_t tensor)
{
    return a->progress[tensor].next_round;
}

bool lac_algorithm_begun(const lac_algorithm *a, size_t tensor)
{
    return a->progress[tensor].begun;
}

double lac_algorithm_gamma(const lac_algorithm *a)
{
    const lac_algorithm *const s = laci_sender(a);
    return s->ops->step == NULL ? (double)NAN : s->ops->step(s->state)->value;
}

lac_traffic lac_algorithm_traffic(const lac_algorithm *a)
{
    const laci_counts *const counts = laci_group_counts(a->round.group);
    lac_traffic sum = {counts->payload, counts->wire, counts->messages};
    if (a->worker.inner != NULL) {
        const lac_traffic inner = lac_algorithm_traffic(a->worker.inner);
        sum.payload_bytes += inner.payload_bytes;
        sum.wire_bytes += inner.wire_bytes;
        sum.messages += inner.messages;
    }
    return sum;
}

double lac_algorithm_waited(const lac_algorithm *a)
{
    return laci_group_waited(a->round.group) +
           (a->worker.inner == NULL ? 0
                                    : lac_algorithm_waited(a->worker.inner));
}

static void set_kernels(lac_compressor *c, const laci_kernels *kernels)
{
    for (; c != NULL; c = c->inner) {
        c->kernels = kernels;
    }
}

void laci_algorithm_use_kernels(lac_algorithm *a, const laci_kernels *kernels)
{
    if (a->worker.inner != NULL) {
        laci_algorithm_use_kernels(a->worker.inner, kernels);
    }
    a->worker.kernels = kernels;
    set_kernels(a->worker.identity, kernels);
    set_kernels(a->worker.compressor, kernels);
    set_kernels(a->worker.server, kernels);
}

lac_status lac_algorithm_use_kernels(lac_algorithm *a, const char *name)
{
    const laci_kernels *kernels = NULL;
    LAC_TRY(laci_kernels_find(name, &kernels));
    laci_algorithm_use_kernels(a, kernels);
    return LAC_OK;
}

lac_status lac_algorithm_set_rate(lac_algorithm *a, double rate)
{
    if (!isfinite(rate) || rate < 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: the rate is %g, expected 0 or more",
            a->worker.algorithm, rate);
    }
    a->round.rate = rate;
    return a->worker.inner == NULL
               ? LAC_OK
               : lac_algorithm_set_rate(a->worker.inner, rate);
}
