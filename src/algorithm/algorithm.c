// SPDX-License-Identifier: MIT
// Algorithms by name: open, close, and what can be asked of a handle.
#include "algorithm/containment.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/settings.h"

#define LAC_ALGORITHM(name)                                                    \
    extern const laci_algorithm_ops laci_##name##_algorithm;
#include "algorithm/algorithms.def"
#undef LAC_ALGORITHM

static const lac_plugin *const plugins[] = {
#define LAC_ALGORITHM(name) &laci_##name##_algorithm.plugin,
#include "algorithm/algorithms.def"
#undef LAC_ALGORITHM
};

enum { PLUGIN_COUNT = sizeof(plugins) / sizeof(plugins[0]) };

static const laci_registry registry = {
    .kind = "algorithm",
    .plugins = plugins,
    .plugin_count = PLUGIN_COUNT,
};

const lac_plugin *const *lac_algorithms(size_t *count_out)
{
    *count_out = PLUGIN_COUNT;
    return plugins;
}

void lac_algorithm_options_init(lac_algorithm_options *options, size_t size)
{
    const lac_algorithm_options defaults = {
        .size = size,
        .spec = "allreduce",
        .seed = 1,
        .timeout = 60,
    };
    memset(options, 0, size);
    memcpy(
        options, &defaults, size < sizeof(defaults) ? size : sizeof(defaults));
}

// What the caller says, with the defaults for what its struct does not have
// yet.
static lac_status whole_options(
    const lac_algorithm_options *given, lac_algorithm_options *out)
{
    const size_t least = offsetof(lac_algorithm_options, timing);
    if (given->size < least) {
        return lac_fail(
            LAC_ERR_INVALID,
            "algorithm: the options have a size of %zu bytes, expected %zu; "
            "fill them with lac_algorithm_options_init",
            given->size, sizeof(*out));
    }
    lac_algorithm_options_init(out, sizeof(*out));
    memcpy(out, given, given->size < sizeof(*out) ? given->size : sizeof(*out));
    out->size = sizeof(*out);
    return LAC_OK;
}

static lac_status check_options(
    const lac_algorithm_options *o, const laci_algorithm_ops *ops)
{
    const char *const name = ops->plugin.name;
    if (o->layout == NULL) {
        return lac_fail(LAC_ERR_INVALID, "%s: a layout is needed", name);
    }
    if (ops->family == LAC_FAMILY_MODEL && o->topology == NULL) {
        return lac_fail(LAC_ERR_INVALID, "%s: a topology is needed", name);
    }
    if (ops->takes_compressor && o->compressor == NULL) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: a compressor is needed, such as top-k", name);
    }
    if (!ops->takes_compressor && o->compressor != NULL) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: compressor %.60s was given, but it takes none", name,
            o->compressor);
    }
    if (ops->fixed_graph && lac_topology_period(o->topology) > 1) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: its replicas need the same neighbours in every round, "
            "expected a topology that does not vary",
            name);
    }
    if (ops->family == LAC_FAMILY_MODEL && o->nonfinite != LAC_NONFINITE_STOP) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: gossip cannot leave out a round or a tensor, expected to stop "
            "at values that are not finite",
            name);
    }
    if (o->transport != NULL && o->topology != NULL &&
        lac_topology_workers(o->topology) !=
            lac_transport_world(o->transport)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: the topology has %u workers, the transport %u", name,
            lac_topology_workers(o->topology),
            lac_transport_world(o->transport));
    }
    return LAC_OK;
}

// The most payloads that can arrive in an exchange.
static size_t views_max(const laci_worker *w)
{
    const size_t peers = w->topology == NULL ? w->world : w->peer_count;
    return peers * lac_layout_count(w->layout);
}

static size_t largest_tensor(const lac_layout *layout)
{
    size_t largest = 0;
    for (size_t t = 0; t < lac_layout_count(layout); t++) {
        const lac_shape shape = lac_layout_tensor(layout, t)->shape;
        const size_t n = shape.rows * shape.cols;
        largest = n > largest ? n : largest;
    }
    return largest;
}

static lac_status open_one(
    lac_algorithm *a, const char *spec, lac_compressor **out)
{
    LAC_TRY(lac_compressor_open(out, spec, a->ops->form));
    const lac_layout *const layout = a->worker.layout;
    bool unbiased = true;
    for (size_t t = 0; t < lac_layout_count(layout); t++) {
        const lac_shape shape = lac_layout_tensor(layout, t)->shape;
        LAC_TRY(lac_compressor_reserve(*out, shape));
        unbiased = unbiased && lac_compressor_guarantee(*out, shape).unbiased;
    }
    if (a->ops->form == LAC_FORM_UNBIASED && !unbiased) {
        (void)snprintf(
            a->warning, sizeof(a->warning),
            "%s is made for unbiased compressors, and %.60s is not one: its "
            "guarantees do not hold",
            a->ops->plugin.name, spec);
    }
    return LAC_OK;
}

static lac_status open_compressor(
    lac_algorithm *a, const lac_algorithm_options *o)
{
    LAC_TRY(lac_compressor_open(&a->worker.raw, "identity", LAC_FORM_PLAIN));
    if (o->compressor == NULL) {
        return LAC_OK;
    }
    LAC_TRY(open_one(a, o->compressor, &a->worker.compressor));
    if (a->ops->server == NULL) {
        return LAC_OK;
    }
    const char *const server = a->ops->server(a->state);
    return open_one(
        a, server[0] == '\0' ? o->compressor : server, &a->worker.server);
}

static lac_status allocate(lac_algorithm *a)
{
    laci_worker *const w = &a->worker;
    const size_t tensors = lac_layout_count(w->layout);
    const size_t largest = largest_tensor(w->layout);
    LAC_TRY(laci_memory_allocate(&a->memory, w->compressor));
    w->fields = a->memory.fields;
    w->first_field = a->memory.first;
    a->items = laci_zalloc((tensors + 1) * sizeof(*a->items));
    a->progress = laci_zalloc((tensors + 1) * sizeof(*a->progress));
    w->readers = laci_zalloc(((size_t)w->world + 1) * sizeof(*w->readers));
    w->scratch = laci_zalloc_aligned(
        2 * laci_memory_field_size(largest) * sizeof(float));
    w->views = laci_zalloc((views_max(w) + 1) * sizeof(*w->views));
    w->own = laci_zalloc((tensors + 1) * sizeof(*w->own));
    w->sums = laci_zalloc_aligned(
        (laci_algorithm_sum_max(a) + LACI_SUM_NOTES) * sizeof(*w->sums));
    if (a->items == NULL || a->progress == NULL || w->readers == NULL ||
        w->scratch == NULL || w->views == NULL || w->own == NULL ||
        w->sums == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for %zu tensors", a->ops->plugin.name,
            tensors);
    }
    return a->ops->family == LAC_FAMILY_GRADIENT ? laci_containment_open(a)
                                                 : LAC_OK;
}

// Everything but what needs a transport.
static lac_status prepare(lac_algorithm **out, const lac_algorithm_options *o)
{
    *out = NULL;
    laci_spec spec = {0};
    LAC_TRY(laci_spec_find(&registry, o->spec, strlen(o->spec), &spec));
    const laci_algorithm_ops *const ops = (const void *)spec.plugin;
    LAC_TRY(check_options(o, ops));
    const char *const compressor = o->compressor == NULL ? "" : o->compressor;
    const size_t compressor_size = strlen(compressor) + 1;
    const size_t spec_size = strlen(o->spec) + 1;
    void *handle, *state;
    LAC_TRY(laci_handle_make(
        &spec, sizeof(lac_algorithm) + compressor_size + spec_size, &handle,
        &state));
    lac_algorithm *const a = handle;
    char *const texts = (char *)(a + 1); // the specs, behind the handle
    a->ops = ops;
    a->state = state;
    a->nonfinite = o->nonfinite;
    laci_worker *const w = &a->worker;
    w->layout = o->layout;
    w->topology = ops->family == LAC_FAMILY_MODEL ? o->topology : NULL;
    w->kernels = laci_kernels_best();
    w->seed = o->seed;
    w->training = o->training;
    w->compressor_spec = memcpy(texts, compressor, compressor_size);
    w->spec = memcpy(texts + compressor_size, o->spec, spec_size);
    if (o->transport != NULL) {
        w->rank = lac_transport_rank(o->transport);
        w->world = lac_transport_world(o->transport);
    } else {
        w->world = o->topology == NULL ? 1 : lac_topology_workers(o->topology);
    }
    if (w->topology != NULL) {
        w->peer_count = lac_topology_peers(w->topology, w->rank, &w->peers);
    }
    lac_status status = open_compressor(a, o);
    if (status == LAC_OK && ops->configure != NULL) {
        status = ops->configure(a->state, w);
    }
    if (status == LAC_OK) {
        status = laci_memory_plan(&a->memory, ops, a->state, w);
    }
    if (status != LAC_OK) {
        lac_algorithm_close(a);
        return status;
    }
    *out = a;
    return LAC_OK;
}

lac_status lac_algorithm_open(
    lac_algorithm **out, const lac_algorithm_options *options)
{
    *out = NULL;
    lac_algorithm_options o;
    LAC_TRY(whole_options(options, &o));
    if (o.transport == NULL) {
        return lac_fail(
            LAC_ERR_INVALID, "%.60s: a transport is needed", o.spec);
    }
    lac_algorithm *a = NULL;
    LAC_TRY(prepare(&a, &o));
    lac_status status = allocate(a);
    if (status == LAC_OK) {
        status = laci_algorithm_open_group(a, &o);
    }
    if (status != LAC_OK) {
        lac_algorithm_close(a);
        return status;
    }
    *out = a;
    return LAC_OK;
}

void lac_algorithm_close(lac_algorithm *a)
{
    if (a == NULL) {
        return;
    }
    laci_group_close(a->worker.group);
    laci_memory_fini(&a->memory);
    lac_compressor_close(a->worker.compressor);
    lac_compressor_close(a->worker.server);
    lac_compressor_close(a->worker.raw);
    laci_free(a->worker.views);
    laci_free(a->worker.own);
    laci_free(a->items);
    laci_free(a->progress);
    laci_free(a->worker.readers);
    laci_free_aligned(a->worker.scratch);
    laci_free_aligned(a->worker.sums);
    laci_containment_fini(a);
    laci_free_aligned(a);
}

lac_status lac_algorithm_cost(
    const lac_algorithm_options *options, lac_cost *out)
{
    lac_algorithm_options o;
    LAC_TRY(whole_options(options, &o));
    lac_algorithm *a = NULL;
    LAC_TRY(prepare(&a, &o));
    lac_cost cost = {.family = a->ops->family};
    a->ops->cost(a->state, &a->worker, &cost);
    cost.memory_bytes += a->memory.values * sizeof(float) + a->memory.errors +
                         laci_algorithm_sum_max(a) * sizeof(float) +
                         laci_containment_size(a);
    lac_algorithm_close(a);
    *out = cost;
    return LAC_OK;
}

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
    return a->warning[0] == '\0' ? NULL : a->warning;
}

double lac_algorithm_gamma(const lac_algorithm *a)
{
    return a->ops->step == NULL ? (double)NAN : *a->ops->step(a->state);
}

lac_traffic lac_algorithm_traffic(const lac_algorithm *a)
{
    const laci_counts *const counts = laci_group_counts(a->worker.group);
    return (lac_traffic){counts->payload, counts->wire, counts->messages};
}

double lac_algorithm_waited(const lac_algorithm *a)
{
    return laci_group_waited(a->worker.group);
}

void laci_algorithm_use_kernels(lac_algorithm *a, const laci_kernels *kernels)
{
    a->worker.kernels = kernels;
    (void)!lac_compressor_use_kernels(a->worker.raw, kernels->name);
    if (a->worker.compressor != NULL) {
        (void)!lac_compressor_use_kernels(a->worker.compressor, kernels->name);
    }
    if (a->worker.server != NULL) {
        (void)!lac_compressor_use_kernels(a->worker.server, kernels->name);
    }
}

lac_status lac_algorithm_use_kernels(lac_algorithm *a, const char *name)
{
    const laci_kernels *kernels = NULL;
    LAC_TRY(laci_kernels_find(name, &kernels));
    laci_algorithm_use_kernels(a, kernels);
    return LAC_OK;
}
