// SPDX-License-Identifier: MIT
// The arithmetic is that of choco.c and deepsqueeze.c, without messages and
// with s computed anew from all copies. What
// workers start from and what compressors draw is always the same, so that the
// outcome depends on nothing but the arguments.
#include "algorithm/shared/rehearsal.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "compress/compressor.h"
#include "kernels/gossip.h"
#include "kernels/kernels.h"
#include "kernels/vector.h"

// Disagreement is looked at when this part of the rounds so far has passed
// again, and taken for divergence above so many times the first.
enum { LOOKS = 32, DIVERGED = 3 };

// One worker. What it says is seen by all others: the copy xhat in choco, the
// message in deepsqueeze.
typedef struct actor {
    float *x;
    float *said;
    float *error; // deepsqueeze alone
} actor;

struct laci_rehearsal {
    laci_gamma_kind kind;
    lac_compressor *c;
    const lac_topology *topology;
    const laci_kernels *kernels;
    lac_shape shape;
    size_t n;
    size_t bound;
    uint32_t workers;
    actor *actors;
    float *values; // of all actors, then scratch and mean
    uint8_t *payload;
    float *scratch;
    float *mean;
    uint64_t name_hash; // of the tensor
};

static lac_status allocate(laci_rehearsal *r)
{
    const size_t stride = laci_aligned(r->n * sizeof(float));
    size_t vectors, bytes = 0;
    const bool fits = laci_mul(r->workers, 3, &vectors) &&
                      laci_add(vectors, 2, &vectors) &&
                      laci_mul(vectors, stride, &bytes);
    r->actors = laci_zalloc(((size_t)r->workers + 1) * sizeof(actor));
    r->values = fits ? laci_zalloc_aligned(bytes) : NULL;
    r->payload = laci_zalloc(r->bound + 1);
    if (r->actors == NULL || r->values == NULL || r->payload == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "gamma: no memory to rehearse %u workers",
            r->workers);
    }
    float *next = r->values;
    const size_t step = stride / sizeof(float);
    for (uint32_t i = 0; i < r->workers; i++, next += 3 * step) {
        r->actors[i] = (actor){
            .x = next,
            .said = next + step,
            .error = next + 2 * step,
        };
    }
    r->scratch = next;
    r->mean = next + step;
    return LAC_OK;
}

lac_status laci_rehearsal_open(
    laci_rehearsal **out, laci_gamma_kind kind, const char *compressor,
    const lac_topology *topology, lac_shape shape)
{
    *out = NULL;
    laci_rehearsal *const r = laci_zalloc(sizeof(*r));
    if (r == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "gamma: no memory for a rehearsal");
    }
    r->kind = kind;
    r->topology = topology;
    r->kernels = laci_kernels_best();
    r->name_hash = lac_name_hash("rehearsal");
    r->shape = shape;
    r->n = shape.rows * shape.cols;
    r->workers = lac_topology_workers(topology);
    lac_status status =
        lac_compressor_open(&r->c, compressor, LAC_FORM_CONTRACTIVE);
    if (status == LAC_OK) {
        status = lac_compressor_reserve(r->c, shape);
    }
    if (status == LAC_OK) {
        r->bound = lac_compressor_bound(r->c, shape, LAC_SCOPE_WORKER);
        status = allocate(r);
    }
    if (status != LAC_OK) {
        laci_rehearsal_close(r);
        return status;
    }
    *out = r;
    return LAC_OK;
}

void laci_rehearsal_close(laci_rehearsal *r)
{
    if (r == NULL) {
        return;
    }
    lac_compressor_close(r->c);
    laci_free(r->payload);
    laci_free_aligned(r->values);
    laci_free(r->actors);
    laci_free(r);
}

static void restart(laci_rehearsal *r)
{
    memset(r->mean, 0, r->n * sizeof(float));
    for (uint32_t k = 0; k < r->workers; k++) {
        const actor *const a = &r->actors[k];
        const lac_key key = lac_key_make(
            0, LAC_PURPOSE_DATA, 0, lac_scope_worker(k), r->name_hash);
        for (size_t i = 0; i < r->n; i++) {
            a->x[i] = lac_key_normal(&key, (uint32_t)i);
        }
        memset(a->said, 0, r->n * sizeof(float));
        memset(a->error, 0, r->n * sizeof(float));
        r->kernels->vector->add_scaled(
            1 / (float)r->workers, a->x, r->mean, r->n);
    }
}

static double disagreement(laci_rehearsal *r)
{
    double sum = 0;
    for (uint32_t k = 0; k < r->workers; k++) {
        r->kernels->gossip->subtract(r->actors[k].x, r->mean, r->scratch, r->n);
        sum += r->kernels->vector->sum_squares(r->scratch, r->n);
    }
    return sum;
}

// y += C(values). Shapes were reserved: nothing here can fail.
static void add_compressed(
    laci_rehearsal *r, const lac_key *key, const float *values, float *y)
{
    size_t len = 0;
    (void)!lac_compressor_encode(
        r->c, key, r->shape, values, r->payload, r->bound, &len);
    (void)!lac_compressor_decode_add(
        r->c, key, r->shape, r->payload, len, 1, y);
}

// What worker k says in a round.
static void speak(laci_rehearsal *r, uint64_t round, uint32_t k)
{
    const actor *const a = &r->actors[k];
    const lac_key key = lac_key_make(
        0, LAC_PURPOSE_COMPRESS, round, lac_scope_worker(k), r->name_hash);
    const laci_gossip_kernels *const gossip = r->kernels->gossip;
    if (r->kind == laci_gamma_choco) {
        gossip->subtract(a->x, a->said, r->scratch, r->n);
        add_compressed(r, &key, r->scratch, a->said);
    } else {
        r->kernels->vector->add(a->x, a->error, r->n);
        memset(a->said, 0, r->n * sizeof(float));
        add_compressed(r, &key, a->error, a->said);
        gossip->subtract(a->error, a->said, a->error, r->n);
    }
}

// x_k += gamma (sum_j w_kj said_j - said_k)
static void follow(laci_rehearsal *r, uint64_t round, uint32_t k, double gamma)
{
    const actor *const a = &r->actors[k];
    const lac_edge *edges;
    const uint32_t count = lac_topology_edges(r->topology, k, round, &edges);
    const double self = lac_topology_self_weight(r->topology, k, round);
    r->kernels->gossip->scale((float)(self - 1), a->said, r->scratch, r->n);
    for (uint32_t e = 0; e < count; e++) {
        r->kernels->vector->add_scaled(
            (float)edges[e].weight, r->actors[edges[e].peer].said, r->scratch,
            r->n);
    }
    r->kernels->gossip->pull((float)gamma, r->scratch, a->x, NULL, a->x, r->n);
}

// Where two looks at the disagreement place the crossing of `target`.
static double crossing(
    double round, double error, double last_round, double last_error,
    double target)
{
    const double rate = log(last_error / error) / (round - last_round);
    return rate > 0 ? round + log(error / target) / rate : (double)INFINITY;
}

double laci_rehearsal_rounds(
    laci_rehearsal *r, double gamma, double limit, double *done_out)
{
    restart(r);
    const double first = disagreement(r);
    const double target = first * LACI_REHEARSAL_RATIO;
    double last_round = 0, last_error = first;
    double half_round = 0, half_error = first;
    uint64_t next = 1;
    for (uint64_t round = 1;; round++) {
        for (uint32_t k = 0; k < r->workers; k++) {
            speak(r, round - 1, k);
        }
        for (uint32_t k = 0; k < r->workers; k++) {
            follow(r, round - 1, k, gamma);
        }
        const bool over = (double)round >= limit;
        if (round < next && !over) {
            continue;
        }
        next = round + 1 + round / LOOKS;
        const double now = (double)round, error = disagreement(r);
        *done_out = now;
        if (!(error <= DIVERGED * first)) {
            return (double)INFINITY;
        }
        if (error <= target) {
            return crossing(now, error, last_round, last_error, target);
        }
        if (over) {
            return crossing(now, error, half_round, half_error, target);
        }
        last_round = now;
        last_error = error;
        if (2 * now <= limit) {
            half_round = now;
            half_error = error;
        }
    }
}
