// SPDX-License-Identifier: MIT
// The error of integer sums, relative to the mean gradient: what rounding at
// random gives in the mean, and how it grows with the workers, who share the
// levels of a sum.
//
// Value j of worker i is at L g / M = q + f levels, and is rounded up with
// probability f. The error of the mean therefore has the variance
// (M / L n)^2 sum_i f_i (1 - f_i).
#include "workers.h"

#include <math.h>

enum { VALUES = 4096, WORKERS_MAX = 64 };

typedef struct subject {
    const char *algorithm;
    int32_t most; // of a sum
    uint32_t workers;
    bool equal; // the same gradient on all workers
} subject;

static float result[VALUES];

static float gradient(const subject *s, uint32_t rank, uint32_t j)
{
    const lac_key key = lac_key_make(
        5, LAC_PURPOSE_DATA, 0, lac_scope_worker(s->equal ? 0 : rank), 0);
    return lac_key_normal(&key, j);
}

static lac_status reduce_once(test_worker *w, lac_algorithm *a)
{
    float g[VALUES];
    const lac_slice slice = {0, LAC_F32, g, g};
    for (uint32_t j = 0; j < VALUES; j++) {
        g[j] = gradient(w->context, w->rank, j);
    }
    LAC_TRY(lac_algorithm_reduce(a, 0, &slice, 1));
    if (w->rank == 0) {
        memcpy(result, g, sizeof(result));
    }
    return LAC_OK;
}

static lac_status reduce_body(test_worker *w)
{
    const lac_tensor tensor = {.name = "x", .shape = {VALUES, 1}};
    const subject *const s = w->context;
    return with_algorithm(
        w, options_for(s->algorithm, NULL), NULL, &tensor, 1, reduce_once);
}

static double largest_of(const subject *s)
{
    double most = 0;
    for (uint32_t k = 0; k < s->workers * VALUES; k++) {
        most = fmax(most, fabs((double)gradient(s, k / VALUES, k % VALUES)));
    }
    return most;
}

// Squared errors of all values: found, expected, and the variance of that. A
// sum of independent errors of two values each, with the variance v_i and the
// fourth moment u_i, has a square with the variance
// sum_i (u_i - 3 v_i^2) + 2 (sum_i v_i)^2.
typedef struct error {
    double found, expected, variance;
    double mean; // the square of the mean gradient
} error;

static void add_value(
    const subject *s, uint32_t j, double max, int32_t levels, error *e)
{
    const double step = max / levels / s->workers;
    double mean = 0, v = 0, excess = 0;
    for (uint32_t i = 0; i < s->workers; i++) {
        const double g = (double)gradient(s, i, j);
        const double part = levels * g / max - floor(levels * g / max);
        const double spread = part * (1 - part);
        mean += g / s->workers;
        v += step * step * spread;
        excess += pow(step, 4) * spread * (1 - 6 * spread);
    }
    e->found += pow((double)result[j] - mean, 2);
    e->expected += v;
    e->variance += excess + 2 * v * v;
    e->mean += mean * mean;
}

// Runs a round and compares the error with its mean, to five standard
// deviations. Returns the error relative to the mean gradient.
static double relative_error(subject *s)
{
    test_worker workers[WORKERS_MAX] = {0};
    error e = {0};
    run_workers(s->workers, reduce_body, s, workers);
    assert_all_ok(workers, s->workers);
    const double max = largest_of(s);
    const int32_t levels = s->most / (int32_t)s->workers;
    for (uint32_t j = 0; j < VALUES; j++) {
        add_value(s, j, max, levels, &e);
    }
    print_message(
        "%s, %u workers, %d levels, %s: %.6f of %.6f\n", s->algorithm,
        s->workers, levels, s->equal ? "equal" : "independent",
        e.found / e.mean, e.expected / e.mean);
    assert_true(fabs(e.found - e.expected) < 5 * sqrt(e.variance));
    return e.found / e.mean;
}

// Many levels are equally likely parts f: f (1 - f) is 1/6 in the mean, and the
// error (M / L)^2 / 6 of a gradient of variance 1. The squares of 4096 values
// and of their mean gradient have relative standard deviations of 2.2 % each:
// five of both are 16 %. Where gradients are equal, errors average and
// gradients do not: n times less.
static void the_error_grows_as_levels_become_few(void **state)
{
    (void)state;
    static const uint32_t workers[] = {2, 16, 64};
    double before = 0;
    for (size_t i = 0; i < 3; i++) {
        subject apart = {"integer:memory=no", INT8_MAX, workers[i], false};
        subject equal = {"integer:memory=no", INT8_MAX, workers[i], true};
        const int32_t levels = INT8_MAX / (int32_t)workers[i];
        const double found = relative_error(&apart);
        const double law = pow(largest_of(&apart) / levels, 2) / 6;
        assert_true(levels == 1 || fabs(found / law - 1) < 0.16);
        assert_true(found > before);
        const double less = relative_error(&equal);
        const double equal_law =
            pow(largest_of(&equal) / levels, 2) / 6 / workers[i];
        assert_true(levels == 1 || fabs(less / equal_law - 1) < 0.16);
        before = found;
    }
    assert_true(before > 1); // one level: noise larger than the gradient
}

static void sixteen_bits_leave_levels_for_many_workers(void **state)
{
    (void)state;
    subject s = {"integer:bits=16,memory=no", INT16_MAX, 64, false};
    const double law = pow(largest_of(&s) / 511, 2) / 6;
    assert_true(fabs(relative_error(&s) / law - 1) < 0.16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_error_grows_as_levels_become_few),
        cmocka_unit_test(sixteen_bits_leave_levels_for_many_workers),
    };
    return cmocka_run_group_tests_name("integer_error", tests, NULL, NULL);
}
