// SPDX-License-Identifier: MIT
// Gradient descent by workers in threads, with any algorithm, on quadratics
// that differ from worker to worker:
//
//     f_i(x) = sum_j a_ij (x_j - b_ij)^2 / 2
//
// A round is `steps` local steps and one call of the algorithm. Steps are
// computed in float, from gradients that are computed in double.
#ifndef LACONIC_TESTS_QUADRATICS_H
#define LACONIC_TESTS_QUADRATICS_H

#include "workers.h"

#include <math.h>

enum { QUADRATICS_WORKERS = 16, QUADRATICS_VALUES = 1024 };

typedef struct quadratics {
    const char *algorithm;
    const char *compressor; // or NULL
    const char *topology;   // or NULL, for algorithms that average gradients
    uint32_t workers;
    uint32_t values;
    double rate;
    uint32_t steps;   // of a round; 1 for algorithms that average gradients
    bool with_update; // the last of them is the update of the round
    uint32_t rounds;
    double noise; // standard deviation of a value of a gradient
    uint64_t seed;
    double a[QUADRATICS_WORKERS][QUADRATICS_VALUES];
    double b[QUADRATICS_WORKERS][QUADRATICS_VALUES];
    float x[QUADRATICS_WORKERS][QUADRATICS_VALUES];
    // Optional: called by every worker after each round, from its own thread.
    void (*after)(
        struct quadratics *q, uint32_t rank, uint32_t round,
        const lac_algorithm *a);
    void *user;
    uint64_t payload; // bytes that worker 0 sent
} quadratics;

// Curvatures are uniform from `least` to 1, equal on all workers or not, and
// minima are normal with a standard deviation of `spread` around a point at
// `away` in all values. x is 0.
typedef struct quadratics_kind {
    double least;
    bool equal;
    double away;
    double spread;
} quadratics_kind;

static inline void quadratics_fill(quadratics *q, const quadratics_kind *kind)
{
    for (uint32_t k = 0; k < q->workers; k++) {
        const lac_scope own = lac_scope_worker(k);
        const lac_scope all = lac_scope_worker(0);
        const lac_key curvatures = lac_key_make(
            q->seed, LAC_PURPOSE_DATA, 0, kind->equal ? all : own, 0);
        const lac_key minima =
            lac_key_make(q->seed, LAC_PURPOSE_DATA, 1, own, 0);
        for (uint32_t j = 0; j < q->values; j++) {
            const double part = (double)lac_key_draw(&curvatures, j) * 0x1p-32;
            q->a[k][j] = kind->least + (1 - kind->least) * part;
            q->b[k][j] =
                kind->away + kind->spread * (double)lac_key_normal(&minima, j);
            q->x[k][j] = 0;
        }
    }
}

// The gradient at x in local step number `step` of the run.
static inline void quadratics_gradient(
    const quadratics *q, uint32_t rank, uint64_t step, float *g)
{
    const lac_key noise = lac_key_make(
        q->seed, LAC_PURPOSE_DATA, 2 + step, lac_scope_worker(rank), 0);
    for (uint32_t j = 0; j < q->values; j++) {
        const double off = (double)q->x[rank][j] - q->b[rank][j];
        const double error =
            q->noise > 0 ? q->noise * (double)lac_key_normal(&noise, j) : 0;
        g[j] = (float)(q->a[rank][j] * off + error);
    }
}

static inline lac_status quadratics_reduce(
    quadratics *q, uint32_t rank, uint32_t round, lac_algorithm *a)
{
    float g[QUADRATICS_VALUES];
    const lac_slice slice = {0, LAC_F32, g, g};
    quadratics_gradient(q, rank, round, g);
    LAC_TRY(lac_algorithm_reduce(a, round, &slice, 1));
    for (uint32_t j = 0; j < q->values; j++) {
        q->x[rank][j] -= (float)q->rate * g[j];
    }
    return LAC_OK;
}

static inline lac_status quadratics_mix(
    quadratics *q, uint32_t rank, uint32_t round, lac_algorithm *a)
{
    float update[QUADRATICS_VALUES];
    float *const x = q->x[rank];
    const lac_slice slice = {0, LAC_F32, x, x};
    const float *const updates[] = {update};
    for (uint32_t s = 0; s < q->steps; s++) {
        const bool late = q->with_update && s + 1 == q->steps;
        quadratics_gradient(q, rank, (uint64_t)round * q->steps + s, update);
        for (uint32_t j = 0; j < q->values; j++) {
            update[j] *= -(float)q->rate;
            x[j] += late ? 0 : update[j];
        }
    }
    return lac_algorithm_mix(
        a, round, &slice, q->with_update ? updates : NULL, 1);
}

static inline lac_status quadratics_rounds(test_worker *w, lac_algorithm *a)
{
    quadratics *const q = w->context;
    const uint32_t rank = w->rank;
    const bool model = lac_algorithm_family(a) == LAC_FAMILY_MODEL;
    const lac_slice slice = {0, LAC_F32, q->x[rank], q->x[rank]};
    LAC_TRY(lac_algorithm_set_rate(a, q->rate));
    if (model) {
        LAC_TRY(lac_algorithm_start(a, &slice, 1));
    }
    for (uint32_t round = 0; round < q->rounds; round++) {
        LAC_TRY(
            model ? quadratics_mix(q, rank, round, a)
                  : quadratics_reduce(q, rank, round, a));
        if (q->after != NULL) {
            q->after(q, rank, round, a);
        }
    }
    if (rank == 0) {
        q->payload = lac_algorithm_traffic(a).payload_bytes;
    }
    return LAC_OK;
}

static inline lac_status quadratics_body(test_worker *w)
{
    const quadratics *const q = w->context;
    const lac_tensor tensor = {.name = "x", .shape = {q->values, 1}};
    lac_algorithm_options o = options_for(q->algorithm, q->compressor);
    o.seed = q->seed;
    return with_algorithm(w, o, q->topology, &tensor, 1, quadratics_rounds);
}

static inline void quadratics_run(quadratics *q)
{
    test_worker workers[QUADRATICS_WORKERS] = {0};
    run_workers(q->workers, quadratics_body, q, workers);
    assert_all_ok(workers, q->workers);
}

// Value j of the minimum of the mean of all functions.
static inline double quadratics_minimum(const quadratics *q, uint32_t j)
{
    double pull = 0, sum = 0;
    for (uint32_t k = 0; k < q->workers; k++) {
        pull += q->a[k][j] * q->b[k][j];
        sum += q->a[k][j];
    }
    return pull / sum;
}

// The root of the mean over workers of the squared distance to that minimum.
static inline double quadratics_distance(const quadratics *q)
{
    double sum = 0;
    for (uint32_t j = 0; j < q->values; j++) {
        const double minimum = quadratics_minimum(q, j);
        for (uint32_t k = 0; k < q->workers; k++) {
            sum += pow((double)q->x[k][j] - minimum, 2) / q->workers;
        }
    }
    return sqrt(sum);
}

#endif
