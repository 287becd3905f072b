// SPDX-License-Identifier: MIT
// PowerSGD on one matrix, "x", and a vector, "b": by one worker without
// threads, or by several with them.
#ifndef LACONIC_TESTS_POWERSGD_TEST_H
#define LACONIC_TESTS_POWERSGD_TEST_H

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

static inline lac_status open_powersgd(
    lac_algorithm **out, const char *spec, const lac_layout *layout,
    lac_transport *transport, lac_nonfinite nonfinite)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = spec;
    o.layout = layout;
    o.transport = transport;
    o.nonfinite = nonfinite;
    return lac_algorithm_open(out, &o);
}

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
    assert_ok(
        open_powersgd(&s.a, spec, s.layout, s.transport, LAC_NONFINITE_STOP));
    return s;
}

static inline void solo_close(solo *s)
{
    lac_transport_leave(s->transport);
    lac_algorithm_close(s->a);
    lac_layout_close(s->layout);
    lac_hub_close(s->hub);
}

// The saved state, to be freed.
static inline uint8_t *state_of(const lac_algorithm *a)
{
    const size_t len = lac_algorithm_state_size(a);
    uint8_t *const bytes = malloc(len);
    assert_ok(lac_algorithm_save(a, bytes, len));
    return bytes;
}

// The error memory of the matrix.
static inline void read_error(const lac_algorithm *a, size_t rank, double *out)
{
    const laci_field *const f = &a->fields.fields[a->fields.first[0]];
    for (size_t i = 0; i < N; i++) {
        out[i] = (double)f[0].values[i];
        for (size_t c = 0; c < rank; c++) {
            out[i] -= (double)f[2].values[c * ROWS + i / COLS] *
                      (double)f[3].values[c * COLS + i % COLS];
        }
    }
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
