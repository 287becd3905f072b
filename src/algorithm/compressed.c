// SPDX-License-Identifier: MIT
// Compression to a server and back (natural compression's Algorithm 1, Horváth
// et al., arXiv:1905.10988): every worker sends C_W(g_i), the server sends C_M
// of their mean to all. Unbiased if both are; there is no memory.
//
// The workers share the server's work: tensor t is served by worker t mod
// world.
//
//     phase 0  every worker sends each owner the payloads of its tensors;
//              owners decode, add in the order of ranks, divide by world
//     phase 1  owners compress the mean and send it to all
//
// All workers decode the same payload, owners included, and get the same bits.
// On the way up each worker has its own key, on the way back all share one, so
// that random indices are not sent.
//
// A worker contributes its payloads of all tensors in phase 0, and those it
// serves in phase 1, once: over all workers the way back counts as one
// server's, up + back / world for each on average.
#include <string.h>

#include "algorithm/framework/round.h"
#include "kernels/gossip.h"

enum { PHASE_BACK = 1 };

typedef struct compressed {
    const char *server;
} compressed;

static const lac_param compressed_params[] = {
    {.name = "server",
     .type = LAC_PARAM_SPEC,
     .offset = offsetof(compressed, server),
     .default_value = "",
     .help = "compressor of the way back; the same if not given"},
    {0},
};

static const char *compressed_server(const void *state)
{
    const compressed *const settings = state;
    return settings->server == NULL ? "" : settings->server;
}

static void compressed_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state, (void)w, (void)tensor, (void)plan;
}

static size_t compressed_message_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    const size_t up =
        laci_tensor_bound(w, w->compressor, tensor, LAC_SCOPE_WORKER);
    const size_t back =
        laci_tensor_bound(w, w->server, tensor, LAC_SCOPE_SHARED);
    return up > back ? up : back;
}

static bool serves(const laci_round *round, uint32_t worker, size_t i)
{
    return laci_owner(round->worker, round->items[i].tensor) == worker;
}

static void put_up(laci_round *round)
{
    const laci_worker *const w = round->worker;
    for (uint32_t k = 0; k < w->world; k++) {
        laci_writer *const message = laci_nonfinite_message(round, k);
        for (size_t i = 0; i < round->count; i++) {
            if (serves(round, k, i)) {
                laci_put(
                    round, w->compressor, lac_scope_worker(w->rank), i,
                    round->items[i].in, message);
            }
        }
    }
}

// Takes the payloads of the tensors that `owner` serves from reader `k`.
static lac_status take_served(
    laci_round *round, const lac_compressor *c, lac_scope scope, uint32_t k,
    uint32_t owner)
{
    for (size_t i = 0; i < round->count; i++) {
        if (serves(round, owner, i)) {
            LAC_TRY(laci_take(round, c, scope, k, i));
        }
    }
    return laci_reader_done(&round->readers[k]);
}

static lac_status take_up(laci_round *round)
{
    const laci_worker *const w = round->worker;
    for (uint32_t k = 0; k < w->world; k++) {
        LAC_TRY(
            take_served(round, w->compressor, lac_scope_worker(k), k, w->rank));
    }
    return LAC_OK;
}

// Writes the message back. Its buffer is not one that is still being read.
static void put_back(laci_round *round)
{
    const laci_worker *const w = round->worker;
    laci_writer *const message = laci_group_message(round->group, 0);
    float *const mean = round->scratch;
    for (size_t i = 0; i < round->count; i++) {
        if (!serves(round, w->rank, i)) {
            continue;
        }
        const size_t n = round->items[i].n;
        memset(mean, 0, n * sizeof(*mean));
        for (uint32_t k = 0; k < w->world; k++) {
            laci_view_add(laci_received(round, k, i), 1, mean);
        }
        w->kernels->gossip->scale((float)(1.0 / w->world), mean, mean, n);
        laci_put(round, w->server, lac_scope_shared(), i, mean, message);
    }
}

static lac_status take_back(laci_round *round)
{
    const laci_worker *const w = round->worker;
    for (uint32_t k = 0; k < w->world; k++) {
        LAC_TRY(take_served(round, w->server, lac_scope_shared(), k, k));
    }
    return LAC_OK;
}

static lac_status compressed_reduce(void *state, laci_round *round)
{
    (void)state;
    laci_group *const group = round->group;
    put_up(round);
    LAC_TRY(laci_group_scatter(group, round->number, 0, round->readers));
    LAC_TRY(laci_nonfinite_counts(round));
    LAC_TRY(laci_group_abort_on_failure(group, take_up(round)));
    put_back(round);
    LAC_TRY(
        laci_group_gather(group, round->number, PHASE_BACK, round->readers));
    LAC_TRY(laci_group_abort_on_failure(group, take_back(round)));
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        const uint32_t owner = laci_owner(round->worker, item->tensor);
        laci_view_read(laci_received(round, owner, i), item->out);
    }
    return LAC_OK;
}

static void compressed_cost(
    const void *state, const laci_worker *w, lac_cost *out)
{
    (void)state;
    double up = 0, back = 0;
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        up += (double)laci_tensor_bound(w, w->compressor, t, LAC_SCOPE_WORKER);
        back += (double)laci_tensor_bound(w, w->server, t, LAC_SCOPE_SHARED);
    }
    out->payload_bytes = up + back / w->world;
    out->messages = 2;
    out->phases = 2;
}

// The bodies of messages with the payloads of each owner's tensors, and `extra`
// bytes.
static laci_bodies owner_bodies(
    const laci_worker *w, const lac_compressor *c, lac_scope_kind scope,
    size_t extra)
{
    laci_bodies bodies = {.least = SIZE_MAX};
    for (uint32_t k = 0; k < w->world; k++) {
        size_t body = extra;
        for (size_t t = k; t < lac_layout_count(w->layout); t += w->world) {
            body += LACI_LENGTH_SIZE + laci_tensor_bound(w, c, t, scope);
        }
        laci_bodies_include(&bodies, body);
    }
    return bodies;
}

static void compressed_exchanges(
    const void *state, const laci_worker *w, laci_listing *out)
{
    (void)state;
    (void)laci_body_listed(w, w->compressor, LAC_SCOPE_WORKER, out);
    const laci_bodies up = owner_bodies(
        w, w->compressor, LAC_SCOPE_WORKER, laci_nonfinite_count_size());
    laci_list_scatter(out, &up);
    (void)laci_body_listed(w, w->server, LAC_SCOPE_SHARED, out);
    const laci_bodies back = owner_bodies(w, w->server, LAC_SCOPE_SHARED, 0);
    laci_list_gather(out, &back);
}

const laci_algorithm_ops laci_compressed_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "compressed",
    .plugin.summary = "unbiased compression to a server and back, no memory",
    .plugin.params = compressed_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(compressed),
    .family = LAC_FAMILY_GRADIENT,
    .takes_compressor = true,
    .form = LAC_FORM_UNBIASED,
    .scratch = true,
    .sharded = true,
    .server = compressed_server,
    .plan = compressed_plan,
    .message_bound = compressed_message_bound,
    .reduce = compressed_reduce,
    .cost = compressed_cost,
    .exchanges = compressed_exchanges,
};
