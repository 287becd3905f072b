// SPDX-License-Identifier: MIT
// The arithmetic is that of choco.c and deepsqueeze.c without messages:
//
//     choco        v_k += C(x_k - v_k)
//     deepsqueeze  e_k += x_k;  v_k = C(e_k);  e_k -= v_k
//     both         x_k += gamma (sum_j w_kj v_j - (1 - w_kk) v_k)
//
// v_k is the part of worker k that its neighbours see: the replica in choco,
// the message in deepsqueeze. With an outer step the last line is the D of
// outer.c, whose step follows, without local steps. Initial values and the keys
// of compressors are fixed, so a result depends on the arguments only.
#include "algorithm/shared/gamma_trial.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "compress/compressor.h"
#include "kernels/gossip.h"
#include "kernels/kernels.h"
#include "kernels/vector.h"

enum {
    VECTORS = 5,       // of a worker
    MEASUREMENTS = 32, // the error is measured every 1/32 of the rounds so far
    DIVERGED = 3,      // times the initial error
};

// The tensor's name in keys. Another number gives other random draws, and the
// search then finds slightly different values.
static const uint64_t NAME_HASH = 0x460ab434d10d2c41;

typedef struct trial_worker {
    float *x;
    float *visible;
    float *error;             // deepsqueeze only
    float *anchor, *momentum; // of outer
} trial_worker;

struct laci_gamma_trial {
    laci_gamma_kind kind;
    lac_compressor *c;
    const lac_topology *topology;
    laci_outer_step outer;
    const laci_kernels *kernels;
    lac_shape shape;
    size_t n;
    size_t bound;
    uint32_t world;
    trial_worker *workers;
    float *values; // of all workers, then scratch and mean
    uint8_t *payload;
    float *scratch;
    float *mean;
};

// The squared distance to the mean, summed over all workers, after a round.
typedef struct measurement {
    double round;
    double error;
} measurement;

static lac_status trial_allocate(laci_gamma_trial *t)
{
    const size_t stride = laci_aligned(t->n * sizeof(float));
    size_t vectors, bytes = 0;
    const bool fits = laci_mul(t->world, VECTORS, &vectors) &&
                      laci_add(vectors, 2, &vectors) &&
                      laci_mul(vectors, stride, &bytes);
    t->workers = laci_zalloc(((size_t)t->world + 1) * sizeof(*t->workers));
    t->values = fits ? laci_zalloc_aligned(bytes) : NULL;
    t->payload = laci_zalloc(t->bound + 1);
    if (t->workers == NULL || t->values == NULL || t->payload == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "gamma: no memory for a trial with %u workers",
            t->world);
    }
    float *next = t->values;
    const size_t step = stride / sizeof(float);
    for (uint32_t k = 0; k < t->world; k++, next += VECTORS * step) {
        t->workers[k] = (trial_worker){
            .x = next,
            .visible = next + step,
            .error = next + 2 * step,
            .anchor = next + 3 * step,
            .momentum = next + 4 * step,
        };
    }
    t->scratch = next;
    t->mean = next + step;
    return LAC_OK;
}

lac_status laci_gamma_trial_open(
    laci_gamma_trial **out, laci_gamma_kind kind, const char *compressor,
    const lac_topology *topology, lac_shape shape, const laci_outer_step *outer)
{
    *out = NULL;
    laci_gamma_trial *const t = laci_zalloc(sizeof(*t));
    if (t == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "gamma: no memory for a trial");
    }
    t->kind = kind;
    t->topology = topology;
    t->outer = outer == NULL ? (laci_outer_step){0} : *outer;
    t->kernels = laci_kernels_best();
    t->shape = shape;
    t->n = lac_shape_values(shape);
    t->world = lac_topology_workers(topology);
    lac_status status =
        lac_compressor_open(&t->c, compressor, LAC_FORM_CONTRACTIVE);
    if (status == LAC_OK) {
        status = lac_compressor_reserve(t->c, shape);
    }
    if (status == LAC_OK) {
        t->bound = lac_compressor_bound(t->c, shape, LAC_SCOPE_WORKER);
        status = trial_allocate(t);
    }
    if (status != LAC_OK) {
        laci_gamma_trial_close(t);
        return status;
    }
    *out = t;
    return LAC_OK;
}

void laci_gamma_trial_close(laci_gamma_trial *t)
{
    if (t == NULL) {
        return;
    }
    lac_compressor_close(t->c);
    laci_free(t->payload);
    laci_free_aligned(t->values);
    laci_free(t->workers);
    laci_free(t);
}

static void trial_reset(laci_gamma_trial *t)
{
    memset(t->mean, 0, t->n * sizeof(float));
    for (uint32_t k = 0; k < t->world; k++) {
        const trial_worker *const w = &t->workers[k];
        const lac_key key = lac_key_make(
            0, LAC_PURPOSE_DATA, 0, lac_scope_worker(k), NAME_HASH);
        for (size_t i = 0; i < t->n; i++) {
            w->x[i] = lac_key_normal(&key, (uint32_t)i);
        }
        memset(w->visible, 0, t->n * sizeof(float));
        memset(w->error, 0, t->n * sizeof(float));
        memcpy(w->anchor, w->x, t->n * sizeof(float));
        memset(w->momentum, 0, t->n * sizeof(float));
        t->kernels->vector->add_scaled(
            1 / (float)t->world, w->x, t->mean, t->n);
    }
}

static measurement trial_measure(laci_gamma_trial *t, uint64_t round)
{
    double sum = 0;
    for (uint32_t k = 0; k < t->world; k++) {
        t->kernels->gossip->subtract(
            t->workers[k].x, t->mean, t->scratch, t->n);
        sum += t->kernels->vector->sum_squares(t->scratch, t->n);
    }
    return (measurement){(double)round, sum};
}

// y += C(values). open has reserved the shape.
static void add_compressed(
    laci_gamma_trial *t, const lac_key *key, const float *values, float *y)
{
    const lac_call call = laci_call_make(t->c, key, t->shape);
    const size_t len = laci_payload_encode(t->c, &call, values, t->payload);
    laci_payload_decode_add(t->c, &call, t->payload, len, 1, y);
}

static void update_visible(laci_gamma_trial *t, uint64_t round, uint32_t k)
{
    const trial_worker *const w = &t->workers[k];
    const lac_key key = lac_key_make(
        0, LAC_PURPOSE_COMPRESS, round, lac_scope_worker(k), NAME_HASH);
    const laci_gossip_kernels *const gossip = t->kernels->gossip;
    if (t->kind == laci_gamma_choco) {
        gossip->subtract(w->x, w->visible, t->scratch, t->n);
        add_compressed(t, &key, t->scratch, w->visible);
    } else {
        t->kernels->vector->add(w->x, w->error, t->n);
        memset(w->visible, 0, t->n * sizeof(float));
        add_compressed(t, &key, w->error, w->visible);
        gossip->subtract(w->error, w->visible, w->error, t->n);
    }
}

// The step of outer, with the distance to the neighbours in the scratch.
static void step_anchor(
    const laci_gamma_trial *t, const trial_worker *w, double gamma)
{
    const laci_outer_step *const s = &t->outer;
    const float lr = (float)s->lr, a = (float)s->momentum;
    const float alpha = (float)s->alpha;
    for (size_t i = 0; i < t->n; i++) {
        const float mixed = w->x[i] + (float)gamma * t->scratch[i];
        const float d = w->anchor[i] - mixed;
        const float m = a * w->momentum[i] + d;
        w->momentum[i] = m;
        w->anchor[i] -= lr * (s->nesterov ? d + a * m : m);
        w->x[i] = w->anchor[i] + alpha * (w->x[i] - w->anchor[i]);
    }
}

static void mix_visible(
    laci_gamma_trial *t, uint64_t round, uint32_t k, double gamma)
{
    const trial_worker *const w = &t->workers[k];
    const lac_edge *edges;
    const uint32_t count = lac_topology_edges(t->topology, k, round, &edges);
    const double self = lac_topology_self_weight(t->topology, k, round);
    t->kernels->gossip->scale((float)(self - 1), w->visible, t->scratch, t->n);
    for (uint32_t e = 0; e < count; e++) {
        t->kernels->vector->add_scaled(
            (float)edges[e].weight, t->workers[edges[e].peer].visible,
            t->scratch, t->n);
    }
    if (t->outer.lr > 0) {
        step_anchor(t, w, gamma);
    } else {
        t->kernels->gossip->pull(
            (float)gamma, t->scratch, w->x, NULL, w->x, t->n);
    }
}

static void trial_round(laci_gamma_trial *t, uint64_t round, double gamma)
{
    for (uint32_t k = 0; k < t->world; k++) {
        update_visible(t, round, k);
    }
    for (uint32_t k = 0; k < t->world; k++) {
        mix_visible(t, round, k, gamma);
    }
}

// Estimates the round in which the error reaches `goal`, from the rate between
// two measurements.
static double crossing(measurement now, measurement before, double goal)
{
    if (!(now.error > 0)) {
        return now.round;
    }
    const double rate =
        log(before.error / now.error) / (now.round - before.round);
    return rate > 0 ? now.round + log(now.error / goal) / rate
                    : (double)INFINITY;
}

laci_gamma_result laci_gamma_trial_run(
    laci_gamma_trial *t, double gamma, double target, double limit)
{
    trial_reset(t);
    const measurement first = trial_measure(t, 0);
    const double goal = first.error * target;
    measurement last = first, half = first;
    uint64_t next = 1;
    for (uint64_t round = 1;; round++) {
        trial_round(t, round - 1, gamma);
        const bool over = (double)round >= limit;
        if (round < next && !over) {
            continue;
        }
        next = round + 1 + round / MEASUREMENTS;
        const measurement now = trial_measure(t, round);
        if (!(now.error <= DIVERGED * first.error)) {
            return (laci_gamma_result){
                now.round, (double)INFINITY, (double)INFINITY};
        }
        if (now.error <= goal || over) {
            return (laci_gamma_result){
                now.round, now.error / first.error,
                crossing(now, now.error <= goal ? last : half, goal)};
        }
        last = now;
        if (2 * now.round <= limit) {
            half = now;
        }
    }
}
