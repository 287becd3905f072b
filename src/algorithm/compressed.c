// SPDX-License-Identifier: MIT
// Compression to a server and back (natural compression's Algorithm 1, Horváth
// et al., arXiv:1905.10988): every worker sends C_W(g_i), the server sends
// C_M of their mean to all. Unbiased if both are; nothing is remembered.
//
// The server is spread over the workers: tensor t is served by worker t mod
// world.
//
//     phase 0  every worker sends each owner the payloads of its tensors
//              owners decode, add up in the order of ranks, divide by world
//     phase 1  owners send what they compress of that to all
//
// All decode the same payload, owners included, and so have the same bits. The
// way up is drawn by each worker for itself, the way back with a shared key, so
// that random indices need not be sent.
//
// A worker contributes its payloads of all tensors in phase 0, and those it
// serves in phase 1, once: over all workers the way back counts as one
// server's, up + back / world for each on average.
#include <string.h>

#include "algorithm/gradient.h"
#include "algorithm/nonfinite.h"
#include "base/fail.h"
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
        laci_gradient_bound(w, w->compressor, tensor, LAC_SCOPE_WORKER);
    const size_t back =
        laci_gradient_bound(w, w->server, tensor, LAC_SCOPE_SHARED);
    return up > back ? up : back;
}

static lac_key key_up(
    const laci_worker *w, const laci_round *round, size_t i, uint32_t from)
{
    return laci_tensor_key(
        w, round->items[i].tensor, round->number, lac_scope_worker(from));
}

static lac_key key_back(const laci_worker *w, const laci_round *round, size_t i)
{
    return laci_tensor_key(
        w, round->items[i].tensor, round->number, lac_scope_shared());
}

static bool serves(
    const laci_worker *w, const laci_round *round, uint32_t worker, size_t i)
{
    return laci_owner(w, round->items[i].tensor) == worker;
}

static void put_up(laci_worker *w, const laci_round *round)
{
    for (uint32_t k = 0; k < w->world; k++) {
        laci_writer *const message = laci_first_message(w, round, k);
        for (size_t i = 0; i < round->count; i++) {
            if (serves(w, round, k, i)) {
                const laci_item *const item = &round->items[i];
                const lac_key key = key_up(w, round, i, w->rank);
                laci_gradient_put(w->compressor, &key, item, item->in, message);
            }
        }
    }
}

// Looks at what the workers sent this one to serve.
static lac_status check_up(laci_worker *w, const laci_round *round)
{
    for (uint32_t k = 0; k < w->world; k++) {
        for (size_t i = 0; i < round->count; i++) {
            if (!serves(w, round, w->rank, i)) {
                continue;
            }
            const lac_key key = key_up(w, round, i, k);
            LAC_TRY(laci_gradient_take(w, w->compressor, &key, round, k, i));
        }
        LAC_TRY(laci_reader_done(&w->readers[k]));
    }
    return LAC_OK;
}

// The message back. Its buffer is not one that is still read.
static void put_back(laci_worker *w, const laci_round *round)
{
    laci_writer *const message = laci_group_message(w->group, 0);
    float *const mean = w->scratch;
    for (size_t i = 0; i < round->count; i++) {
        if (!serves(w, round, w->rank, i)) {
            continue;
        }
        const laci_item *const item = &round->items[i];
        memset(mean, 0, item->n * sizeof(*mean));
        for (uint32_t k = 0; k < w->world; k++) {
            const laci_view *const view = laci_gradient_view(w, round, k, i);
            const lac_key key = key_up(w, round, i, k);
            // Checked before: adding cannot fail.
            (void)!lac_compressor_decode_add(
                w->compressor, &key, item->shape, view->bytes, view->len, 1,
                mean);
        }
        w->kernels->gossip->scale((float)(1.0 / w->world), mean, mean, item->n);
        const lac_key key = key_back(w, round, i);
        laci_gradient_put(w->server, &key, item, mean, message);
    }
}

static lac_status check_back(laci_worker *w, const laci_round *round)
{
    for (uint32_t k = 0; k < w->world; k++) {
        for (size_t i = 0; i < round->count; i++) {
            if (!serves(w, round, k, i)) {
                continue;
            }
            const lac_key key = key_back(w, round, i);
            LAC_TRY(laci_gradient_take(w, w->server, &key, round, k, i));
        }
        LAC_TRY(laci_reader_done(&w->readers[k]));
    }
    return LAC_OK;
}

static lac_status compressed_reduce(
    void *state, laci_worker *w, const laci_round *round)
{
    (void)state;
    put_up(w, round);
    LAC_TRY(laci_group_scatter(w->group, round->number, 0, w->readers));
    LAC_TRY(laci_first_counts(w, round, w->readers, w->world));
    LAC_TRY(laci_group_abort_on_failure(w->group, check_up(w, round)));
    put_back(w, round);
    LAC_TRY(laci_group_gather(w->group, round->number, PHASE_BACK, w->readers));
    LAC_TRY(laci_group_abort_on_failure(w->group, check_back(w, round)));
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        const laci_view *const view =
            laci_gradient_view(w, round, laci_owner(w, item->tensor), i);
        const lac_key key = key_back(w, round, i);
        // Checked before: decoding cannot fail.
        (void)!lac_compressor_decode(
            w->server, &key, item->shape, view->bytes, view->len, item->out);
    }
    return LAC_OK;
}

static void compressed_cost(
    const void *state, const laci_worker *w, lac_cost *out)
{
    (void)state;
    double up = 0, back = 0;
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        up +=
            (double)laci_gradient_bound(w, w->compressor, t, LAC_SCOPE_WORKER);
        back += (double)laci_gradient_bound(w, w->server, t, LAC_SCOPE_SHARED);
    }
    out->payload_bytes = up + back / w->world;
    out->messages = 2;
    out->phases = 2;
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
    .sharded = true,
    .server = compressed_server,
    .plan = compressed_plan,
    .message_bound = compressed_message_bound,
    .reduce = compressed_reduce,
    .cost = compressed_cost,
};
