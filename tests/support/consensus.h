// SPDX-License-Identifier: MIT
// Gossip without local updates, in threads: workers start from different values
// and mix them for a number of rounds. The distance to the mean is measured.
#ifndef LACONIC_TESTS_CONSENSUS_H
#define LACONIC_TESTS_CONSENSUS_H

#include "workers.h"

enum { CONSENSUS_WORKERS_MAX = 64, RING_WORKERS = 8 };

typedef struct consensus {
    const char *algorithm;
    const char *compressor; // or NULL
    const char *topology;
    uint32_t workers;
    lac_shape shape; // of the one tensor, named "x"
    uint32_t rounds;
    uint64_t seed;
    double rate; // of local steps, see lac_algorithm_set_rate; 0: not set
    float *x;    // workers * values; the initial ones, then the final ones
    // Optional: called by every worker after each round (and once before the
    // first, with round 0), from its own thread.
    void (*after)(
        const struct consensus *c, uint32_t rank, uint32_t round,
        const lac_algorithm *a, const float *x);
    void *user;
    double gamma; // set by the run
    lac_traffic traffic[CONSENSUS_WORKERS_MAX];
} consensus;

static inline size_t consensus_values(const consensus *c)
{
    return lac_shape_values(c->shape);
}

static inline lac_status consensus_rounds(test_worker *w, lac_algorithm *a)
{
    consensus *const c = w->context;
    const uint32_t rank = w->rank;
    float *const x = c->x + rank * consensus_values(c);
    const lac_slice slice = {0, LAC_F32, x, x};
    if (c->rate > 0) {
        LAC_TRY(lac_algorithm_set_rate(a, c->rate));
    }
    LAC_TRY(lac_algorithm_start(a, &slice, 1));
    if (c->after != NULL) {
        c->after(c, rank, 0, a, x);
    }
    for (uint32_t round = 0; round < c->rounds; round++) {
        LAC_TRY(lac_algorithm_mix(a, round, &slice, NULL, 1));
        if (c->after != NULL) {
            c->after(c, rank, round + 1, a, x);
        }
    }
    c->traffic[rank] = lac_algorithm_traffic(a);
    if (rank == 0) {
        c->gamma = lac_algorithm_gamma(a);
    }
    return LAC_OK;
}

static inline lac_status consensus_body(test_worker *w)
{
    const consensus *const c = w->context;
    const lac_tensor tensor = {.name = "x", .shape = c->shape};
    lac_algorithm_options o = options_for(c->algorithm, c->compressor);
    o.seed = c->seed;
    return with_algorithm(w, o, c->topology, &tensor, 1, consensus_rounds);
}

static inline void consensus_run(consensus *c)
{
    test_worker workers[CONSENSUS_WORKERS_MAX];
    run_workers(c->workers, consensus_body, c, workers);
    assert_all_ok(workers, c->workers);
}

static inline void consensus_fill_normal(consensus *c, uint64_t seed)
{
    fill_normal(c->x, c->workers * consensus_values(c), seed);
}

// Workers on a ring, each with n normal values.
static inline consensus consensus_on_a_ring(
    const char *algorithm, const char *compressor, size_t n, uint32_t rounds,
    float *x)
{
    consensus c = {
        .algorithm = algorithm,
        .compressor = compressor,
        .topology = "ring",
        .workers = RING_WORKERS,
        .shape = {n, 1},
        .rounds = rounds,
        .seed = 3,
        .x = x,
    };
    consensus_fill_normal(&c, 4);
    return c;
}

// Writes the mean of the workers' values.
static inline void consensus_mean(const consensus *c, double *mean_out)
{
    const size_t n = consensus_values(c);
    for (size_t i = 0; i < n; i++) {
        mean_out[i] = 0;
        for (uint32_t k = 0; k < c->workers; k++) {
            mean_out[i] += (double)c->x[k * n + i] / c->workers;
        }
    }
}

// The mean over workers of the squared distance to `mean`.
static inline double consensus_error(const consensus *c, const double *mean)
{
    const size_t n = consensus_values(c);
    double error = 0;
    for (size_t j = 0; j < c->workers * n; j++) {
        const double d = (double)c->x[j] - mean[j % n];
        error += d * d / c->workers;
    }
    return error;
}

#endif
