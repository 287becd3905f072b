// SPDX-License-Identifier: MIT
// Algorithms by name: open, close, cost and exchanges.

#include <stdio.h>
#include <string.h>

#include "algorithm/framework/fold.h"
#include "algorithm/framework/fragments.h"
#include "algorithm/framework/handle.h"
#include "algorithm/framework/inner.h"
#include "algorithm/framework/sizes.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/settings.h"
#include "compress/compressor.h"
#include "transport/transport.h"

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

// Copies the caller's options. Members that its older struct lacks keep their
// defaults.
static lac_status read_options(
    const lac_algorithm_options *given, lac_algorithm_options *out)
{
    const size_t least = offsetof(lac_algorithm_options, timing);
    if (given == NULL) {
        return lac_fail(LAC_ERR_INVALID, "algorithm: the options are NULL");
    }
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
    if (out->spec == NULL) {
        return lac_fail(LAC_ERR_INVALID, "algorithm: the spec is NULL");
    }
    if ((int)out->nonfinite < LAC_NONFINITE_STOP ||
        out->nonfinite > LAC_NONFINITE_PROPAGATE) {
        return lac_fail(
            LAC_ERR_INVALID, "algorithm: nonfinite is %d, expected %d to %d",
            (int)out->nonfinite, LAC_NONFINITE_STOP, LAC_NONFINITE_PROPAGATE);
    }
    return LAC_OK;
}

// All that is given must agree on the number of workers.
static lac_status check_workers(
    const lac_algorithm_options *o, const char *name)
{
    const uint32_t joined =
        o->transport == NULL ? o->workers : lac_transport_world(o->transport);
    const uint32_t nodes =
        o->topology == NULL ? joined : lac_topology_workers(o->topology);
    if (o->workers != 0 && o->workers != joined) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: the options have %u workers, the transport %u", name,
            o->workers, joined);
    }
    if (joined != 0 && nodes != joined) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: the topology has %u workers, the %s %u", name,
            nodes, o->transport == NULL ? "options" : "transport", joined);
    }
    return LAC_OK;
}

// Recommends the compressor of the algorithm's example: not every one fits.
static lac_status no_compressor(const laci_algorithm_ops *ops)
{
    const lac_plugin *const plugin = &ops->plugin;
    const char *const space =
        plugin->example == NULL ? NULL : strchr(plugin->example, ' ');
    return lac_fail(
        LAC_ERR_INVALID, "%s: a compressor is needed%s%s", plugin->name,
        space == NULL ? "" : ", such as", space == NULL ? "" : space);
}

static lac_status check_options(
    const lac_algorithm_options *o, const laci_algorithm_ops *ops)
{
    const char *const name = ops->plugin.name;
    if (o->layout == NULL) {
        return lac_fail(LAC_ERR_INVALID, "%s: a layout is needed", name);
    }
    if (ops->family == LAC_FAMILY_MODEL && ops->inner == NULL &&
        o->topology == NULL) {
        return lac_fail(LAC_ERR_INVALID, "%s: a topology is needed", name);
    }
    if (ops->inner == NULL && ops->takes_compressor && o->compressor == NULL) {
        return no_compressor(ops);
    }
    if (ops->inner == NULL && !ops->takes_compressor && o->compressor != NULL) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: compressor %.60s was given, but it takes none", name,
            o->compressor);
    }
    if (ops->fixed_graph && lac_topology_period(o->topology) > 1) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: its state needs the same neighbours in every round, "
            "expected a topology that does not vary",
            name);
    }
    if (ops->family == LAC_FAMILY_MODEL && o->nonfinite != LAC_NONFINITE_STOP) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: a model algorithm supports LAC_NONFINITE_STOP only", name);
    }
    return check_workers(o, name);
}

static lac_status open_compressor(
    lac_algorithm *a, const char *spec, lac_compressor **out)
{
    const lac_form form =
        a->ops->form_of == NULL ? a->ops->form : a->ops->form_of(a->state);
    LAC_TRY(lac_compressor_open(out, spec, form));
    const lac_layout *const layout = a->worker.layout;
    bool unbiased = true;
    for (size_t t = 0; t < lac_layout_count(layout); t++) {
        const lac_shape shape = laci_tensor_shape(&a->worker, t);
        LAC_TRY(lac_compressor_reserve(*out, shape));
        unbiased = unbiased && lac_compressor_guarantee(*out, shape).unbiased;
    }
    if (form == LAC_FORM_UNBIASED && !unbiased) {
        (void)snprintf(
            a->warning, sizeof(a->warning),
            "%s is made for unbiased compressors, and %.60s is not one: its "
            "guarantees do not hold",
            a->worker.algorithm, spec);
    }
    return LAC_OK;
}

static lac_status open_compressors(
    lac_algorithm *a, const lac_algorithm_options *o)
{
    laci_worker *const w = &a->worker;
    LAC_TRY(lac_compressor_open(&w->identity, "identity", LAC_FORM_PLAIN));
    if (o->compressor == NULL || a->ops->inner != NULL) {
        return LAC_OK;
    }
    LAC_TRY(open_compressor(a, o->compressor, &w->compressor));
    if (a->ops->server == NULL) {
        return LAC_OK;
    }
    const char *const server = a->ops->server(a->state);
    return open_compressor(
        a, server[0] == '\0' ? o->compressor : server, &w->server);
}

static lac_status open_group(lac_algorithm *a, const lac_algorithm_options *o)
{
    laci_round *const round = &a->round;
    laci_group_options options;
    LAC_TRY(laci_algorithm_group_options(a, o, &options));
    LAC_TRY(laci_group_open(&round->group, &options));
    round->sums = laci_group_floats(round->group);
    a->nonfinite.raw = round->sums + (options.floats - a->nonfinite.raw_n);
    laci_nonfinite_group(a);
    return LAC_OK;
}

static lac_status allocate_round(lac_algorithm *a)
{
    const laci_worker *const w = &a->worker;
    laci_round *const r = &a->round;
    const size_t tensors = lac_layout_count(w->layout);
    a->items = laci_zalloc((tensors + 1) * sizeof(*a->items));
    a->progress = laci_zalloc((tensors + 1) * sizeof(*a->progress));
    r->worker = w;
    r->rate = 1;
    r->items = a->items;
    r->readers = laci_zalloc(((size_t)w->world + 1) * sizeof(*r->readers));
    r->views = laci_zalloc((laci_views_max(a) + 1) * sizeof(*r->views));
    r->sent = laci_zalloc((laci_sent_max(a) + 1) * sizeof(*r->sent));
    r->slices = laci_zalloc((tensors + 1) * sizeof(*r->slices));
    // Saving reads error memories through the scratch too.
    const size_t scratch =
        a->fields.errors > 0 ? laci_largest_tensor(w) : laci_scratch_max(a);
    r->scratch = laci_zalloc_aligned(scratch * sizeof(*r->scratch));
    if (a->items == NULL || a->progress == NULL || r->readers == NULL ||
        r->views == NULL || r->sent == NULL || r->slices == NULL ||
        r->scratch == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for %zu tensors", w->algorithm,
            tensors);
    }
    return LAC_OK;
}

// Fills the worker from the options. The specs follow the handle in its block.
static void fill_worker(
    lac_algorithm *a, const lac_algorithm_options *o, char *specs)
{
    const char *const compressor = o->compressor == NULL ? "" : o->compressor;
    const size_t compressor_size = strlen(compressor) + 1;
    laci_worker *const w = &a->worker;
    w->algorithm = a->ops->plugin.name;
    w->layout = o->layout;
    a->given = o->layout;
    w->topology = a->ops->family == LAC_FAMILY_MODEL ? o->topology : NULL;
    w->kernels = laci_kernels_best();
    w->seed = o->seed;
    w->training = o->training;
    w->compressor_spec = memcpy(specs, compressor, compressor_size);
    w->spec = memcpy(specs + compressor_size, o->spec, strlen(o->spec) + 1);
    if (o->transport != NULL) {
        w->rank = lac_transport_rank(o->transport);
        w->world = lac_transport_world(o->transport);
    } else if (o->topology != NULL) {
        w->world = lac_topology_workers(o->topology);
    } else {
        w->world = o->workers == 0 ? 1 : o->workers;
    }
    if (w->topology != NULL) {
        w->peer_count = lac_topology_peers(w->topology, w->rank, &w->peers);
    }
}

static lac_status make_handle(
    lac_algorithm **out, const lac_algorithm_options *o);

// The compressor of a user who named the outer algorithm alone: the message is
// about that one, and recommends an inner algorithm that compresses.
static lac_status check_inner(
    const lac_algorithm *a, const lac_algorithm_options *inner)
{
    const char *const name = a->ops->plugin.name;
    laci_spec spec = {0};
    LAC_TRY(laci_spec_find(&registry, inner->spec, strlen(inner->spec), &spec));
    const laci_algorithm_ops *const ops = (const void *)spec.plugin;
    if (inner->compressor == NULL || ops->takes_compressor ||
        ops->inner != NULL) {
        return LAC_OK;
    }
    return lac_fail(
        LAC_ERR_INVALID,
        "%s: compressor %.60s was given, but its inner algorithm %s takes "
        "none, expected one that does, such as %s:inner=(%s)",
        name, inner->compressor, ops->plugin.name, name,
        ops->family == LAC_FAMILY_MODEL ? "choco" : "error-feedback");
}

static lac_status make_inner(lac_algorithm *a, const lac_algorithm_options *o)
{
    if (a->ops->inner == NULL) {
        return LAC_OK;
    }
    const lac_algorithm_options inner = laci_inner_options(a, o);
    LAC_TRY(check_inner(a, &inner));
    return make_handle(&a->worker.inner, &inner);
}

static lac_status plan_algorithm(
    lac_algorithm *a, const lac_algorithm_options *o)
{
    LAC_TRY(laci_fold_open(a));
    LAC_TRY(open_compressors(a, o));
    LAC_TRY(make_inner(a, o));
    if (a->ops->sharded) {
        LAC_TRY(laci_shards_open(&a->worker.shards, &a->worker));
    }
    if (a->ops->configure != NULL) {
        LAC_TRY(a->ops->configure(a->state, &a->worker));
    }
    LAC_TRY(laci_fields_plan(&a->fields, a->ops, a->state, &a->worker));
    laci_nonfinite_plan(a, o->nonfinite);
    return LAC_OK;
}

// Makes a handle that knows its sizes but has no memory for rounds and no
// group: enough for the cost.
static lac_status make_handle(
    lac_algorithm **out, const lac_algorithm_options *o)
{
    laci_spec spec = {0};
    LAC_TRY(laci_spec_find(&registry, o->spec, strlen(o->spec), &spec));
    const laci_algorithm_ops *const ops = (const void *)spec.plugin;
    LAC_TRY(check_options(o, ops));
    const size_t specs_size =
        strlen(o->spec) + 1 +
        (o->compressor == NULL ? 0 : strlen(o->compressor)) + 1;
    void *handle, *state;
    LAC_TRY(laci_handle_make(
        &spec, sizeof(lac_algorithm) + specs_size, &handle, &state));
    lac_algorithm *const a = handle;
    a->ops = ops;
    a->state = state;
    fill_worker(a, o, (char *)(a + 1));
    const lac_status status = plan_algorithm(a, o);
    if (status != LAC_OK) {
        lac_algorithm_close(a);
        return status;
    }
    *out = a;
    return LAC_OK;
}

static lac_status open_pool(lac_algorithm *a, uint32_t threads)
{
    laci_worker *const w = &a->worker;
    lac_compressor *const all[] = {w->compressor, w->server, w->identity};
    LAC_TRY(laci_pool_open(&w->pool, threads == 0 ? 1 : threads));
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i] != NULL) {
            all[i]->pool = w->pool;
        }
    }
    return LAC_OK;
}

static lac_status allocate_algorithm(
    lac_algorithm *a, const lac_algorithm_options *o)
{
    void *room;
    if (a->worker.inner != NULL) {
        const lac_algorithm_options inner = laci_inner_options(a, o);
        LAC_TRY(allocate_algorithm(a->worker.inner, &inner));
    }
    LAC_TRY(laci_fields_allocate(&a->fields, a->worker.compressor));
    LAC_TRY(allocate_round(a));
    LAC_TRY(laci_round_room(&a->round, laci_fold_room(a), &room));
    LAC_TRY(laci_nonfinite_open(a));
    // The inner algorithm of an outer one does the work.
    LAC_TRY(open_pool(a, a->worker.inner != NULL ? 1 : o->threads));
    return open_group(a, o);
}

static bool can_fold(const lac_plugin *plugin)
{
    for (const lac_param *p = plugin->params; p != NULL && p->name; p++) {
        if (strcmp(p->name, "fold") == 0) {
            return true;
        }
    }
    return false;
}

static bool only_vectors(const lac_layout *layout)
{
    for (size_t i = 0; i < lac_layout_count(layout); i++) {
        const lac_shape shape = lac_layout_tensor(layout, i)->shape;
        if (shape.rows > 1 && shape.cols > 1) {
            return false;
        }
    }
    return true;
}

// Warns if a round sends no less than the values themselves, unless that is
// what was chosen.
static void warn_uncompressed(lac_algorithm *a)
{
    const laci_worker *const w = &a->worker;
    const lac_compressor *const c = w->compressor;
    const double all =
        (double)lac_layout_values(a->given) * (double)sizeof(float);
    lac_cost cost = {0};
    a->ops->cost(a->state, w, &cost);
    const bool exact =
        a->ops->baseline || (c != NULL && c->wire_id == w->identity->wire_id);
    if (a->warning[0] != '\0' || exact || cost.payload_bytes < all ||
        all == 0) {
        return;
    }
    const lac_plugin *const method =
        c == NULL ? &a->ops->plugin : &c->ops->plugin;
    const char *const spec = c == NULL ? w->spec : w->compressor_spec;
    const bool folds = can_fold(method) && only_vectors(a->given) &&
                       strstr(spec, "fold=") == NULL;
    (void)snprintf(
        a->warning, sizeof(a->warning),
        "%s sends %.0f bytes a round and the tensors have %.0f: nothing is "
        "compressed%s%s%s",
        w->algorithm, cost.payload_bytes, all, folds ? "; " : "",
        folds ? method->name : "",
        folds ? " needs matrices, or fold=yes to view vectors as such" : "");
}

lac_status lac_algorithm_open(
    lac_algorithm **out, const lac_algorithm_options *options)
{
    *out = NULL;
    lac_algorithm_options o;
    LAC_TRY(read_options(options, &o));
    if (o.transport == NULL) {
        return lac_fail(
            LAC_ERR_INVALID, "%.60s: a transport is needed", o.spec);
    }
    lac_algorithm *a = NULL;
    LAC_TRY(make_handle(&a, &o));
    if (a->ops->warn != NULL) {
        a->ops->warn(a->state, &a->worker, a->warning, sizeof(a->warning));
    }
    warn_uncompressed(a->worker.inner != NULL ? a->worker.inner : a);
    const lac_status status = allocate_algorithm(a, &o);
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
    lac_algorithm_close(a->worker.inner);
    laci_group_close(a->round.group);
    laci_fields_fini(&a->fields);
    laci_shards_fini(&a->worker.shards);
    lac_compressor_close(a->worker.compressor);
    lac_compressor_close(a->worker.server);
    lac_compressor_close(a->worker.identity);
    laci_pool_close(a->worker.pool);
    laci_free(a->round.views);
    laci_free(a->round.sent);
    laci_free(a->round.slices);
    laci_free(a->round.readers);
    laci_free_aligned(a->round.scratch);
    laci_free_aligned(a->round.room);
    laci_free(a->items);
    laci_free(a->progress);
    laci_nonfinite_fini(a);
    lac_layout_close(a->folded);
    laci_free_aligned(a);
}

static uint64_t cost_flags(const laci_algorithm_ops *ops)
{
    return (ops->plain_updates ? LAC_COST_PLAIN_UPDATES : 0U) |
           (ops->family == LAC_FAMILY_MODEL ? LAC_COST_LOCAL_STEPS : 0U);
}

lac_status lac_algorithm_cost(
    const lac_algorithm_options *options, lac_cost *out)
{
    lac_algorithm_options o;
    LAC_TRY(read_options(options, &o));
    lac_algorithm *a = NULL;
    LAC_TRY(make_handle(&a, &o));
    lac_cost cost = {
        .family = laci_sender(a)->ops->family,
        .flags = cost_flags(a->ops),
        .fragments = 1,
    };
    a->ops->cost(a->state, &a->worker, &cost);
    const lac_status status = laci_memory_bytes(a, &o, &cost.memory_bytes);
    lac_algorithm_close(a);
    LAC_TRY(status);
    *out = cost;
    return LAC_OK;
}

lac_status lac_algorithm_fragments(
    const lac_algorithm_options *options, uint32_t *out)
{
    lac_cost cost;
    LAC_TRY(lac_algorithm_cost(options, &cost));
    return laci_fragments_divide(options->layout, cost.fragments, out);
}

// Lists the rounds of a period.
static void list_rounds(
    const lac_algorithm *a, uint32_t period, laci_listing *l)
{
    for (l->round = 0; l->round < period; l->round++) {
        l->flags = laci_exchanges_in_begin(a) ? LAC_EXCHANGE_HIDDEN : 0;
        a->ops->exchanges(a->state, &a->worker, l);
    }
}

static uint32_t period_of(const lac_algorithm *a)
{
    const lac_topology *const topology = a->worker.topology;
    if (a->worker.inner != NULL) {
        return period_of(a->worker.inner);
    }
    if (a->ops->period != NULL) {
        return a->ops->period(a->state, &a->worker);
    }
    return topology == NULL ? 1 : lac_topology_period(topology);
}

// The bytes of all messages must fit in their type.
static lac_status check_listed(const laci_worker *w)
{
    enum { VALUE_BYTES_MAX = 64 };
    const size_t most = SIZE_MAX / VALUE_BYTES_MAX / w->world;
    const size_t values = lac_layout_values(w->layout);
    return values < most
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "%s: the layout has %zu values, expected less than %zu",
                     w->algorithm, values, most);
}

lac_status lac_algorithm_exchanges(
    const lac_algorithm_options *options, lac_exchange *out, size_t cap,
    size_t *count_out, uint32_t *period_out)
{
    lac_algorithm_options o;
    *count_out = 0;
    LAC_TRY(read_options(options, &o));
    lac_algorithm *a = NULL;
    laci_group_options group = {0};
    LAC_TRY(make_handle(&a, &o));
    lac_status status = check_listed(&a->worker);
    if (status == LAC_OK) {
        const lac_algorithm *const sender = laci_sender(a);
        o = sender == a ? o : laci_inner_options(a, &o);
        status = laci_algorithm_group_options(sender, &o, &group);
    }
    if (status == LAC_OK) {
        laci_listing l = {
            .rules = laci_sum_rules_make(&group, a->worker.world),
            .out = out,
            .cap = cap,
        };
        *period_out = period_of(a);
        list_rounds(a, *period_out, &l);
        *count_out = l.count;
    }
    lac_algorithm_close(a);
    return status;
}
