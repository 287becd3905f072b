// SPDX-License-Identifier: MIT
#include "algorithm/framework/inner.h"

lac_algorithm_options laci_inner_options(
    const lac_algorithm *a, const lac_algorithm_options *o)
{
    lac_algorithm_options inner = *o;
    inner.spec = a->ops->inner(a->state);
    return inner;
}

void laci_inner_cost(const void *state, const laci_worker *w, lac_cost *out)
{
    (void)state;
    const lac_algorithm *const inner = w->inner;
    inner->ops->cost(inner->state, &inner->worker, out);
}

void laci_inner_exchanges(
    const void *state, const laci_worker *w, laci_listing *out)
{
    (void)state;
    const lac_algorithm *const inner = w->inner;
    inner->ops->exchanges(inner->state, &inner->worker, out);
}

double laci_inner_gossip_rate(const laci_worker *w)
{
    const lac_algorithm *const inner = w->inner;
    return inner->ops->gossip_rate == NULL
               ? 0
               : inner->ops->gossip_rate(inner->state);
}

void laci_inner_set_step(const laci_worker *w, laci_outer_step step)
{
    w->inner->worker.outer = step;
}
