// SPDX-License-Identifier: MIT
// PowerSGD on one matrix, "x", and a vector, "b": by one worker without
// threads, or by several with them.
#ifndef LACONIC_TESTS_POWERSGD_TEST_H
#define LACONIC_TESTS_POWERSGD_TEST_H

#include "state_reader.h"
#include "workers.h"

#include <math.h>

#include "algorithm/framework/handle.h"

enum {
    ROWS = 24,
    COLS = 36,
    N = ROWS * COLS,
    BIAS_N = 5,
    ALL = N + BIAS_N,
    WORKERS_MAX = 4,
};

static const lac_tensor both_tensors[2] = {
    {.name = "x", .shape = {ROWS, COLS}},
    {.name = "b", .shape = {BIAS_N, 1}},
};

// Reduces ALL values: the matrix, then the vector.
static inline lac_status reduce_both(
    lac_algorithm *a, uint64_t round, const float *g, float *out)
{
    const lac_slice slices[2] = {
        {0, LAC_F32, g, out}, {1, LAC_F32, g + N, out + N}};
    return lac_algorithm_reduce(a, round, slices, 2);
}

// One worker.
typedef struct solo {
    lac_hub *hub;
    lac_transport *transport;
    lac_layout *layout;
    lac_algorithm *a;
} solo;

static inline solo solo_open(const char *spec)
{
    solo s = {0};
    assert_ok(lac_hub_open(&s.hub, 1));
    assert_ok(lac_transport_join(&s.transport, "local", s.hub, 0, 1));
    assert_ok(lac_layout_open(&s.layout, both_tensors, 2));
    lac_algorithm_options o = options_for(spec, NULL);
    o.layout = s.layout;
    o.transport = s.transport;
    assert_ok(lac_algorithm_open(&s.a, &o));
    return s;
}

static inline void solo_close(solo *s)
{
    lac_transport_leave(s->transport);
    lac_algorithm_close(s->a);
    lac_layout_close(s->layout);
    lac_hub_close(s->hub);
}

// Returns the saved state. The caller frees it.
static inline uint8_t *state_of(const lac_algorithm *a)
{
    const size_t len = lac_algorithm_state_size(a);
    uint8_t *const bytes = malloc(len);
    assert_non_null(bytes);
    assert_ok(lac_algorithm_save(a, bytes, len));
    return bytes;
}

// Writes the error memory of the matrix: the saved sum less the product of two
// saved factors.
static inline void read_error(const lac_algorithm *a, size_t rank, double *out)
{
    uint8_t *const state = state_of(a);
    saved_field sum, left, right;
    assert_true(saved_state_find(state, "x", "sum", &sum));
    assert_true(saved_state_find(state, "x", "left", &left));
    assert_true(saved_state_find(state, "x", "right", &right));
    for (size_t i = 0; i < N; i++) {
        out[i] = (double)saved_value(&sum, i);
        for (size_t c = 0; c < rank; c++) {
            out[i] -= (double)saved_value(&left, c * ROWS + i / COLS) *
                      (double)saved_value(&right, c * COLS + i % COLS);
        }
    }
    free(state);
}

// A sum of `terms` outer products of normal vectors, number k times scale^k.
static inline void fill_outer(
    float *x, size_t terms, double scale, uint64_t seed)
{
    float left[ROWS], right[COLS];
    double sum[N] = {0};
    for (size_t k = 0; k < terms; k++) {
        fill_normal(left, ROWS, seed + 2 * k);
        fill_normal(right, COLS, seed + 2 * k + 1);
        for (size_t i = 0; i < N; i++) {
            sum[i] += pow(scale, (double)k) * (double)left[i / COLS] *
                      (double)right[i % COLS];
        }
    }
    for (size_t i = 0; i < N; i++) {
        x[i] = (float)sum[i];
    }
}

static inline double square(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    return sum;
}

static inline double square_distance(const float *x, const float *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)x[i] - (double)y[i];
        sum += d * d;
    }
    return sum;
}

static inline void assert_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_true(isfinite(x[i]));
    }
}

#endif
