// SPDX-License-Identifier: MIT
// Compression to a server and back (natural compression's Algorithm 1, Horváth
// et al., arXiv:1905.10988): every worker sends C_W(g_i), the server sends C_M
// of their mean to all. Unbiased if both are; there is no memory.
//
// The workers share the server's work: each serves some of the shards, which
// are tensors or parts of tensors (framework/shards.h).
//
//     phase 0  every worker sends each owner the payloads of its shards;
//              owners decode them and add 1/world of each, in the order of
//              ranks
//     phase 1  owners compress the mean and send it to all
//
// All workers decode the same payload, owners included, and get the same bits.
// On the way up each worker has its own key, on the way back all share one, so
// that random indices are not sent.
//
// A worker contributes its payloads of all shards in phase 0, and those it
// serves in phase 1, once: over all workers the way back counts as one
// server's, up + back / world for each on average.
#include <float.h>
#include <math.h>
#include <string.h>

#include "algorithm/framework/round.h"
#include "kernels/vector.h"

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

// One step of a round for a shard of item `i`.
typedef lac_status shard_step(
    laci_round *round, size_t i, const laci_shard *shard);

// Takes a step for all shards of a round, in the order of all messages.
static lac_status for_shards(laci_round *round, shard_step *step)
{
    const laci_shards *const shards = &round->worker->shards;
    for (size_t i = 0; i < round->count; i++) {
        const size_t tensor = round->items[i].tensor;
        const laci_shard *const end = laci_shards_of(shards, tensor + 1);
        for (const laci_shard *s = laci_shards_of(shards, tensor); s < end;
             s++) {
            LAC_TRY(step(round, i, s));
        }
    }
    return LAC_OK;
}

static lac_status expect_ends(const laci_round *round)
{
    for (uint32_t k = 0; k < round->worker->world; k++) {
        LAC_TRY(laci_reader_done(&round->readers[k]));
    }
    return LAC_OK;
}

// Values are looked at while they are on their way through the caches.
static lac_status put_up(laci_round *round, size_t i, const laci_shard *shard)
{
    const laci_worker *const w = round->worker;
    const float *const x = round->items[i].in + shard->start;
    if (!laci_all_finite(w->kernels, x, lac_shape_values(shard->shape))) {
        return LACI_SCAN;
    }
    laci_view view =
        laci_view_shard(round, w->compressor, shard, lac_scope_worker(w->rank));
    laci_view_put(&view, x, laci_group_writer(round->group, shard->owner));
    return LAC_OK;
}

// Makes a mean finite that rounding has brought beyond the largest float.
static void limit_mean(const laci_kernels *kernels, float *mean, size_t n)
{
    if (laci_all_finite(kernels, mean, n)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        mean[i] = fmaxf(-FLT_MAX, fminf(FLT_MAX, mean[i]));
    }
}

// Takes the payloads of a shard that this worker serves and puts their mean
// into the message back.
static lac_status serve_shard(
    laci_round *round, size_t i, const laci_shard *shard)
{
    const laci_worker *const w = round->worker;
    const size_t n = lac_shape_values(shard->shape);
    const float share = (float)(1.0 / w->world);
    float *const mean = round->scratch;
    if (shard->owner != w->rank) {
        return LAC_OK;
    }
    memset(mean, 0, n * sizeof(*mean));
    for (uint32_t k = 0; k < w->world; k++) {
        laci_view view =
            laci_view_shard(round, w->compressor, shard, lac_scope_worker(k));
        LAC_TRY(laci_view_take(round, &view, k, i));
        laci_view_add(&view, share, mean);
    }
    limit_mean(w->kernels, mean, n);
    laci_view back =
        laci_view_shard(round, w->server, shard, lac_scope_shared());
    laci_view_put(&back, mean, laci_group_writer(round->group, 0));
    return LAC_OK;
}

// The buffer of the message back is not one that is still being read.
static lac_status serve_all(laci_round *round)
{
    (void)laci_group_message(round->group, 0);
    LAC_TRY(for_shards(round, serve_shard));
    return expect_ends(round);
}

static laci_view *view_of(const laci_round *round, const laci_shard *shard)
{
    return &round->views[shard - round->worker->shards.list];
}

static lac_status take_back(
    laci_round *round, size_t i, const laci_shard *shard)
{
    laci_view *const view = view_of(round, shard);
    *view = laci_view_shard(
        round, round->worker->server, shard, lac_scope_shared());
    return laci_view_take(round, view, shard->owner, i);
}

static lac_status take_all_back(laci_round *round)
{
    LAC_TRY(for_shards(round, take_back));
    return expect_ends(round);
}

static lac_status write_result(
    laci_round *round, size_t i, const laci_shard *shard)
{
    laci_view_read(view_of(round, shard), round->items[i].out + shard->start);
    return LAC_OK;
}

static lac_status compressed_reduce(void *state, laci_round *round)
{
    (void)state;
    laci_group *const group = round->group;
    for (uint32_t k = 0; k < round->worker->world; k++) {
        (void)laci_nonfinite_message(round, k);
    }
    LAC_TRY(for_shards(round, put_up));
    LAC_TRY(laci_group_scatter(group, round->number, 0, round->readers));
    LAC_TRY(laci_nonfinite_counts(round));
    LAC_TRY(laci_group_abort_on_failure(group, serve_all(round)));
    LAC_TRY(
        laci_group_gather(group, round->number, PHASE_BACK, round->readers));
    LAC_TRY(laci_group_abort_on_failure(group, take_all_back(round)));
    return for_shards(round, write_result);
}

static void compressed_cost(
    const void *state, const laci_worker *w, lac_cost *out)
{
    (void)state;
    double up = 0, back = 0;
    for (uint32_t k = 0; k < w->world; k++) {
        up += (double)w->shards.served[k].up;
        back += (double)w->shards.served[k].back;
    }
    out->payload_bytes = up + back / w->world;
    out->messages = 2;
    out->phases = 2;
}

static void compressed_exchanges(
    const void *state, const laci_worker *w, laci_listing *out)
{
    (void)state;
    laci_bodies up = {.least = SIZE_MAX}, back = {.least = SIZE_MAX};
    for (uint32_t k = 0; k < w->world; k++) {
        const laci_served *const served = &w->shards.served[k];
        const size_t lengths = served->count * LACI_LENGTH_SIZE;
        laci_bodies_include(
            &up, laci_nonfinite_count_size() + lengths + served->up);
        laci_bodies_include(&back, lengths + served->back);
    }
    laci_list_compressor(out, w->compressor, LAC_SCOPE_WORKER);
    laci_list_scatter(out, &up);
    laci_list_compressor(out, w->server, LAC_SCOPE_SHARED);
    laci_list_gather(out, &back);
}

const laci_algorithm_ops laci_compressed_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "compressed",
    .plugin.summary = "unbiased compression to a server and back, no memory",
    .plugin.example = "compressed natural",
    .plugin.params = compressed_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(compressed),
    .family = LAC_FAMILY_GRADIENT,
    .finds_nonfinite = true,
    .takes_compressor = true,
    .form = LAC_FORM_UNBIASED,
    .scratch = true,
    .sharded = true,
    .server = compressed_server,
    .plan = compressed_plan,
    .reduce = compressed_reduce,
    .cost = compressed_cost,
    .exchanges = compressed_exchanges,
};
