// SPDX-License-Identifier: MIT
// Runs a gradient algorithm by threads on one tensor, with gradients that the
// test computes.
#ifndef LACONIC_TESTS_REDUCTION_H
#define LACONIC_TESTS_REDUCTION_H

#include "state_reader.h"
#include "workers.h"

#include <math.h>

enum { REDUCTION_WORKERS = 4, REDUCTION_VALUES = 60 };

static const lac_tensor reduction_tensor = {.name = "x", .shape = {6, 10}};

typedef struct reduction {
    const char *algorithm;
    const char *compressor; // or NULL
    uint32_t workers;
    uint64_t rounds;
    float (*gradient)(uint32_t rank, uint64_t round, size_t i);
    double (*rate)(uint64_t round); // of lac_algorithm_set_rate, or NULL
    // Sums over rounds of the result of worker 0.
    double sum[REDUCTION_VALUES];
    float last[REDUCTION_VALUES];
    // Optional: the result of worker 0 in every round.
    float (*results)[REDUCTION_VALUES];
    // A field of every worker at the end, by default its error memory; zeros
    // where there is none.
    const char *field; // or NULL
    float errors[REDUCTION_WORKERS][REDUCTION_VALUES];
    lac_traffic traffic;
} reduction;

static inline bool reduction_find(
    const reduction *r, const uint8_t *state, saved_field *out)
{
    if (r->field != NULL) {
        return saved_state_find(state, "x", r->field, out);
    }
    return saved_state_find(state, "x", "error", out) ||
           saved_state_find(state, "x", "decayed-error", out);
}

// Copies the field of a worker from its saved state.
static inline lac_status reduction_read_field(
    reduction *r, uint32_t rank, const lac_algorithm *a)
{
    const size_t len = lac_algorithm_state_size(a);
    uint8_t *const state = malloc(len);
    saved_field error;
    EXPECT(state != NULL);
    const lac_status status = lac_algorithm_save(a, state, len);
    if (status == LAC_OK && reduction_find(r, state, &error)) {
        for (size_t i = 0; i < error.count; i++) {
            r->errors[rank][i] = saved_value(&error, i);
        }
    }
    free(state);
    return status;
}

static inline lac_status reduction_rounds(test_worker *w, lac_algorithm *a)
{
    reduction *const r = w->context;
    const uint32_t rank = w->rank;
    float g[REDUCTION_VALUES], result[REDUCTION_VALUES];
    for (uint64_t round = 0; round < r->rounds; round++) {
        for (size_t i = 0; i < REDUCTION_VALUES; i++) {
            g[i] = r->gradient(rank, round, i);
        }
        const lac_slice slice = {0, LAC_F32, g, result};
        if (r->rate != NULL) {
            LAC_TRY(lac_algorithm_set_rate(a, r->rate(round)));
        }
        LAC_TRY(lac_algorithm_reduce(a, round, &slice, 1));
        for (size_t i = 0; rank == 0 && i < REDUCTION_VALUES; i++) {
            r->sum[i] += (double)result[i];
            r->last[i] = result[i];
        }
        if (rank == 0 && r->results != NULL) {
            memcpy(r->results[round], result, sizeof(result));
        }
    }
    if (rank == 0) {
        r->traffic = lac_algorithm_traffic(a);
    }
    return reduction_read_field(r, rank, a);
}

static inline lac_status reduction_body(test_worker *w)
{
    const reduction *const r = w->context;
    return with_algorithm(
        w, options_for(r->algorithm, r->compressor), NULL, &reduction_tensor, 1,
        reduction_rounds);
}

static inline void reduction_run(reduction *r)
{
    test_worker workers[REDUCTION_WORKERS];
    memset(r->sum, 0, sizeof(r->sum));
    run_workers(r->workers, reduction_body, r, workers);
    assert_all_ok(workers, r->workers);
}

// Normal gradients, different in every round.
static inline float changing_gradient(uint32_t rank, uint64_t round, size_t i)
{
    const lac_key key =
        lac_key_make(5, LAC_PURPOSE_DATA, round, lac_scope_worker(rank), 0);
    return lac_key_normal(&key, (uint32_t)i);
}

// The same in every round.
static inline float steady_gradient(uint32_t rank, uint64_t round, size_t i)
{
    (void)round;
    return changing_gradient(rank, 0, i);
}

#endif
