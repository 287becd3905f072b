// SPDX-License-Identifier: MIT
// Algorithms by name: open, close, cost and queries.

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "algorithm/framework/handle.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/settings.h"
#include "compress/compressor.h"

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
            "%s: its state needs the same neighbours in every round, "
            "expected a topology that does not vary",
            name);
    }
    if (ops->family == LAC_FAMILY_MODEL && o->nonfinite != LAC_NONFINITE_STOP) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: a model algorithm supports LAC_NONFINITE_STOP only", name);
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

static lac_status open_compressor(
    lac_algorithm *a, const char *spec, lac_compressor **out)
{
    LAC_TRY(lac_compressor_open(out, spec, a->ops->form));
    const lac_layout *const layout = a->worker.layout;
    bool unbiased = true;
    for (size_t t = 0; t < lac_layout_count(layout); t++) {
        const lac_shape shape = laci_tensor_shape(&a->worker, t);
        LAC_TRY(lac_compressor_reserve(*out, shape));
        unbiased = unbiased && lac_compressor_guarantee(*out, shape).unbiased;
    }
    if (a->ops->form == LAC_FORM_UNBIASED && !unbiased) {
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
    if (o->compressor == NULL) {
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

// The group: what its workers must have in common, and the room that the
// largest messages and sums of all tensors take.

static uint64_t identity_of(const lac_algorithm_options *o)
{
    uint8_t source[48];
    const char *const compressor = o->compressor == NULL ? "" : o->compressor;
    laci_put_u64(source, lac_layout_hash(o->layout));
    laci_put_u64(source + 8, lac_name_hash(o->spec));
    laci_put_u64(source + 16, lac_name_hash(compressor));
    laci_put_u64(source + 24, o->seed);
    laci_put_u64(source + 32, (uint64_t)o->nonfinite);
    laci_put_u64(
        source + 40, o->topology == NULL ? 0 : lac_topology_hash(o->topology));
    return XXH3_64bits(source, sizeof(source));
}

// The most payload bytes in a message of a round to worker `owner`.
static size_t message_to(const lac_algorithm *a, uint32_t owner)
{
    const laci_worker *const w = &a->worker;
    size_t sum = 0;
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        if (a->ops->message_bound != NULL &&
            (!a->ops->sharded || laci_owner(w, t) == owner)) {
            sum += a->ops->message_bound(a->state, w, t);
        }
    }
    return sum;
}

// The payload bytes of the start's message.
static size_t start_message(const lac_algorithm *a)
{
    size_t sum = 0;
    for (size_t t = 0; t < lac_layout_count(a->worker.layout); t++) {
        sum += a->ops->start_bound == NULL
                   ? 0
                   : a->ops->start_bound(a->state, &a->worker, t);
    }
    return sum;
}

static size_t message_max(const lac_algorithm *a)
{
    size_t most = message_to(a, 0);
    for (uint32_t k = 1; a->ops->sharded && k < a->worker.world; k++) {
        const size_t size = message_to(a, k);
        most = size > most ? size : most;
    }
    const size_t start = start_message(a);
    return start > most ? start : most;
}

static uint32_t messages_max(const lac_algorithm *a)
{
    return a->ops->sharded            ? a->worker.world
           : a->ops->message_per_peer ? a->worker.peer_count
                                      : 1;
}

// The most floats of a sum, without notes.
static size_t sum_max(const lac_algorithm *a)
{
    size_t sum = 0;
    for (size_t t = 0; t < lac_layout_count(a->worker.layout); t++) {
        sum += a->ops->sum_bound == NULL
                   ? 0
                   : a->ops->sum_bound(a->state, &a->worker, t);
    }
    return sum;
}

// The floats of round->sums, of which `options` has the rest set.
static size_t sums_room(
    const lac_algorithm *a, const laci_group_options *options)
{
    if (!a->ops->streams_sums) {
        return options->sum_max;
    }
    const size_t n = laci_group_copied(options, a->worker.world);
    return n < options->sum_max ? n + LACI_SUM_NOTES : n;
}

static laci_group_options group_options(
    const lac_algorithm *a, const lac_algorithm_options *o)
{
    const bool gradient = a->ops->family == LAC_FAMILY_GRADIENT;
    laci_group_options options = {
        .transport = o->transport,
        .session = o->session,
        .identity = identity_of(o),
        .timeout = o->timeout,
        .peers_max = gradient ? a->worker.world - 1 : a->worker.peer_count,
        .messages_max = messages_max(a),
        .message_max = message_max(a) + (gradient ? laci_nonfinite_room(a) : 0),
        .tensors_max = lac_layout_count(o->layout) + gradient,
        .native_sums = a->ops->native_sums,
        .timing = o->timing,
        .sum_max = sum_max(a) + LACI_SUM_NOTES,
    };
    const size_t sums = sums_room(a, &options) * sizeof(float);
    options.floats = laci_aligned(sums) / sizeof(float) + a->nonfinite.raw_n;
    return options;
}

static lac_status open_group(lac_algorithm *a, const lac_algorithm_options *o)
{
    laci_round *const round = &a->round;
    const laci_group_options options = group_options(a, o);
    LAC_TRY(laci_group_open(&round->group, &options));
    round->sums = laci_group_floats(round->group);
    a->nonfinite.raw = round->sums + (options.floats - a->nonfinite.raw_n);
    return LAC_OK;
}

// The working memory of a round.

static size_t scratch_max(const lac_algorithm *a)
{
    return a->ops->scratch ? laci_largest_tensor(&a->worker) : 0;
}

// The most payloads that arrive in an exchange.
static size_t views_max(const laci_worker *w)
{
    const size_t peers = w->topology == NULL ? w->world : w->peer_count;
    return peers * lac_layout_count(w->layout);
}

static lac_status allocate_round(lac_algorithm *a)
{
    const laci_worker *const w = &a->worker;
    laci_round *const r = &a->round;
    const size_t tensors = lac_layout_count(w->layout);
    a->items = laci_zalloc((tensors + 1) * sizeof(*a->items));
    a->progress = laci_zalloc((tensors + 1) * sizeof(*a->progress));
    r->worker = w;
    r->items = a->items;
    r->readers = laci_zalloc(((size_t)w->world + 1) * sizeof(*r->readers));
    r->views = laci_zalloc((views_max(w) + 1) * sizeof(*r->views));
    r->sent = laci_zalloc((tensors + 1) * sizeof(*r->sent));
    // Saving reads error memories through the scratch too.
    const size_t scratch =
        a->fields.errors > 0 ? laci_largest_tensor(w) : scratch_max(a);
    r->scratch = laci_zalloc_aligned(scratch * sizeof(*r->scratch));
    if (a->items == NULL || a->progress == NULL || r->readers == NULL ||
        r->views == NULL || r->sent == NULL || r->scratch == NULL) {
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
    w->topology = a->ops->family == LAC_FAMILY_MODEL ? o->topology : NULL;
    w->kernels = laci_kernels_best();
    w->seed = o->seed;
    w->training = o->training;
    w->compressor_spec = memcpy(specs, compressor, compressor_size);
    w->spec = memcpy(specs + compressor_size, o->spec, strlen(o->spec) + 1);
    if (o->transport != NULL) {
        w->rank = lac_transport_rank(o->transport);
        w->world = lac_transport_world(o->transport);
    } else {
        w->world = o->topology == NULL ? 1 : lac_topology_workers(o->topology);
    }
    if (w->topology != NULL) {
        w->peer_count = lac_topology_peers(w->topology, w->rank, &w->peers);
    }
}

static lac_status plan_algorithm(
    lac_algorithm *a, const lac_algorithm_options *o)
{
    LAC_TRY(open_compressors(a, o));
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

static lac_status allocate_algorithm(
    lac_algorithm *a, const lac_algorithm_options *o)
{
    LAC_TRY(laci_fields_allocate(&a->fields, a->worker.compressor));
    LAC_TRY(allocate_round(a));
    LAC_TRY(laci_nonfinite_open(a));
    return open_group(a, o);
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
    laci_group_close(a->round.group);
    laci_fields_fini(&a->fields);
    lac_compressor_close(a->worker.compressor);
    lac_compressor_close(a->worker.server);
    lac_compressor_close(a->worker.identity);
    laci_free(a->round.views);
    laci_free(a->round.sent);
    laci_free(a->round.readers);
    laci_free_aligned(a->round.scratch);
    laci_free_aligned(a->round.room);
    laci_free(a->items);
    laci_free(a->progress);
    laci_nonfinite_fini(a);
    laci_free_aligned(a);
}

static size_t compressor_scratch(const lac_compressor *c)
{
    size_t size = 0;
    for (; c != NULL; c = c->inner) {
        size += c->scratch_size;
    }
    return size;
}

// The bytes of messages that rounds touch, in two sets of buffers: both hold
// the messages of a round, and one that of the start; a sharded algorithm sends
// to all owners from one set, and its own shard from the other.
static size_t message_bytes(const lac_algorithm *a)
{
    size_t round = 0;
    for (uint32_t k = 0; k < messages_max(a); k++) {
        round += message_to(a, k);
    }
    assert(a->worker.world > 0);
    if (a->ops->sharded) {
        return round + round / a->worker.world;
    }
    const size_t start = start_message(a);
    return round + (start > round ? start : round);
}

// The bytes of a handle that rounds touch. Those of nonfinite.raw are touched
// only when a value is not finite.
static size_t memory_bytes(
    const lac_algorithm *a, const lac_algorithm_options *o)
{
    const laci_group_options options = group_options(a, o);
    const size_t floats = a->fields.values + a->nonfinite.saved_n +
                          scratch_max(a) + sums_room(a, &options) -
                          LACI_SUM_NOTES;
    const size_t views = views_max(&a->worker) * sizeof(laci_view);
    return floats * sizeof(float) + views + a->fields.errors +
           compressor_scratch(a->worker.compressor) +
           compressor_scratch(a->worker.server) + message_bytes(a) +
           laci_group_sum_bytes(&options, a->worker.world);
}

lac_status lac_algorithm_cost(
    const lac_algorithm_options *options, lac_cost *out)
{
    lac_algorithm_options o;
    LAC_TRY(read_options(options, &o));
    lac_algorithm *a = NULL;
    LAC_TRY(make_handle(&a, &o));
    lac_cost cost = {.family = a->ops->family};
    a->ops->cost(a->state, &a->worker, &cost);
    cost.memory_bytes += memory_bytes(a, &o);
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

uint64_t lac_algorithm_round(const lac_algorithm *a, size_t tensor)
{
    return a->progress[tensor].next_round;
}

double lac_algorithm_gamma(const lac_algorithm *a)
{
    return a->ops->step == NULL ? (double)NAN : a->ops->step(a->state)->value;
}

lac_traffic lac_algorithm_traffic(const lac_algorithm *a)
{
    const laci_counts *const counts = laci_group_counts(a->round.group);
    return (lac_traffic){counts->payload, counts->wire, counts->messages};
}

double lac_algorithm_waited(const lac_algorithm *a)
{
    return laci_group_waited(a->round.group);
}

static void set_kernels(lac_compressor *c, const laci_kernels *kernels)
{
    for (; c != NULL; c = c->inner) {
        c->kernels = kernels;
    }
}

void laci_algorithm_use_kernels(lac_algorithm *a, const laci_kernels *kernels)
{
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
