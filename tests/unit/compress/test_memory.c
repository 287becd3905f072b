// SPDX-License-Identifier: MIT
// Error memories: which sums they accept, and how often they look at their
// values to know.
#include "lac_test.h"
#include "silent_compressor.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { VALUES = 6, CAP = 64 };

static const lac_shape shape = {VALUES, 1};
static const lac_key key = {0};

static lac_memory *open_memory(const char *spec, lac_compressor **c_out)
{
    lac_memory *m;
    assert_ok(lac_compressor_open(c_out, spec, LAC_FORM_PLAIN));
    assert_ok(lac_memory_open(&m, *c_out, shape));
    return m;
}

static void close_memory(lac_memory *m, lac_compressor *c)
{
    lac_memory_close(m);
    lac_compressor_close(c);
}

// The largest float fits, the next sum that rounds to an infinity does not.
static void sums_are_accepted_up_to_the_largest_float(void **state)
{
    (void)state;
    static const char *const specs[] = {"sign", "natural", "top-k:0.5"};
    const float half = FLT_MAX / 2, ulp = 0x1p104f;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        lac_compressor *c;
        lac_memory *const m = open_memory(specs[i], &c);
        const float e[VALUES] = {0, half, -half, 1, 0, 0};
        float x[VALUES] = {half, half, -half, half, half, half};
        lac_memory_write(m, e);
        assert_true(lac_memory_accepts(m, x, half));
        x[1] = half + ulp;
        assert_false(lac_memory_accepts(m, x, half + ulp));
        x[1] = -half - ulp;
        assert_true(lac_memory_accepts(m, x, half + ulp));
        close_memory(m, c);
    }
}

static void refusals_name_the_value(void **state)
{
    (void)state;
    lac_compressor *c;
    lac_memory *const m = open_memory("sign", &c);
    const float e[VALUES] = {0, 0, -3e38f, 0, 0, 0};
    float x[VALUES] = {3e38f, 1, -2e38f, 0, 0, 0}, after[VALUES];
    uint8_t payload[CAP];
    size_t len = 77;
    lac_memory_write(m, e);
    assert_fails(
        lac_memory_encode(m, &key, x, payload, CAP, &len), LAC_ERR_INVALID,
        "sign: the error memory overflows: value 2 is -3e+38, -2e+38 is "
        "added, expected at most 3.40282e+38");
    x[1] = NAN;
    assert_fails(
        lac_memory_encode(m, &key, x, payload, CAP, &len), LAC_ERR_INVALID,
        "sign: value 1 is nan, expected a finite one");
    assert_fails(
        lac_memory_encode_bounded(m, &key, x, INFINITY, payload, CAP, &len),
        LAC_ERR_INVALID, "sign: value 1 is nan, expected a finite one");
    assert_int_equal(len, 77);
    lac_memory_read(m, after);
    assert_memory_equal(after, e, sizeof(e));
    close_memory(m, c);
}

static void values_that_are_not_finite_are_written_as_zero(void **state)
{
    (void)state;
    lac_compressor *c;
    lac_memory *const m = open_memory("natural", &c);
    const float e[VALUES] = {1, NAN, -INFINITY, 2, INFINITY, FLT_MAX};
    const float expected[VALUES] = {1, 0, 0, 2, 0, FLT_MAX};
    float after[VALUES];
    lac_memory_write(m, e);
    lac_memory_read(m, after);
    assert_memory_equal(after, expected, sizeof(expected));
    assert_false(lac_memory_accepts(
        m, (float[VALUES]){0, 0, 0, 0, 0, 0x1p103f}, 0x1p103f));
    close_memory(m, c);
}

// Low-rank cannot encode the largest floats. A memory at its limit still
// accepts small values, and becomes small again.
static void a_memory_at_its_limit_goes_on(void **state)
{
    (void)state;
    enum { SIDE = 8, N = SIDE * SIDE };
    const lac_shape square = {SIDE, SIDE};
    float e[N], x[N];
    uint8_t payload[4 * N];
    lac_compressor *c;
    lac_memory *m;
    assert_ok(lac_compressor_open(&c, "low-rank", LAC_FORM_PLAIN));
    assert_ok(lac_memory_open(&m, c, square));
    for (size_t i = 0; i < N; i++) {
        e[i] = i % 7 < 3 ? FLT_MAX : -FLT_MAX / (float)(1 + i);
        x[i] = i % 2 == 0 ? 1 : -1;
    }
    lac_memory_write(m, e);
    for (uint64_t round = 0; round < 100; round++) {
        const lac_key draws = {.low = round};
        size_t len;
        assert_ok(
            lac_memory_encode(m, &draws, x, payload, sizeof(payload), &len));
        assert_ok(lac_memory_settle(m, &draws, payload, len));
    }
    lac_memory_read(m, e);
    for (size_t i = 0; i < N; i++) {
        assert_true(fabsf(e[i]) < 1e34f);
    }
    close_memory(m, c);
}

// The silent compressor with a memory of its own, which only grows. It counts
// how often its values are read.
static size_t residuals;
static double stated_growth;

static size_t growing_encode_add(
    const void *state, const lac_call *call, const float *x, void *memory,
    uint8_t *out)
{
    (void)state;
    (void)out;
    for (size_t i = 0; i < lac_shape_values(call->shape); i++) {
        ((float *)memory)[i] += x[i];
    }
    return 0;
}

static void growing_settle(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    void *memory)
{
    (void)state;
    (void)call;
    (void)in;
    (void)len;
    (void)memory;
}

static void growing_residual(
    const void *state, const lac_call *call, const void *memory, float *e)
{
    (void)state;
    memmove(e, memory, lac_shape_values(call->shape) * sizeof(*e));
    residuals++;
}

static double growing_growth(const void *state, lac_shape of, lac_form form)
{
    (void)state;
    (void)of;
    (void)form;
    return stated_growth;
}

static lac_compressor_ops growing_ops(void)
{
    lac_compressor_ops ops = silent;
    ops.encode_add = growing_encode_add;
    ops.settle = growing_settle;
    ops.residual = growing_residual;
    ops.growth = growing_growth;
    return ops;
}

// How often the values are looked at in 1000 steps of magnitude 1.
static size_t looks_with(const lac_compressor_ops *ops, double growth)
{
    const float x[VALUES] = {1, -1, 1, 1, -1, 0.5f};
    uint8_t payload[1];
    size_t len;
    lac_compressor *c;
    lac_memory *m;
    stated_growth = growth;
    assert_ok(lac_compressor_open_with(&c, ops, "", LAC_FORM_PLAIN));
    assert_ok(lac_memory_open(&m, c, shape));
    residuals = 0;
    for (int round = 0; round < 1000; round++) {
        assert_ok(lac_memory_encode_bounded(m, &key, x, 1, payload, 1, &len));
        assert_ok(lac_memory_settle(m, &key, payload, len));
    }
    close_memory(m, c);
    return residuals;
}

// With a growth of 1 never, with one of 1000, which adds three decimals a
// step, about every 12th step.
static void values_are_looked_at_rarely(void **state)
{
    (void)state;
    lac_compressor_ops ops = growing_ops();
    assert_int_equal(looks_with(&ops, 1), 0);
    assert_between(looks_with(&ops, 1000), 1, 100);
    ops.growth = NULL;
    assert_int_equal(looks_with(&ops, 0), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_accepted_up_to_the_largest_float),
        cmocka_unit_test(refusals_name_the_value),
        cmocka_unit_test(values_that_are_not_finite_are_written_as_zero),
        cmocka_unit_test(a_memory_at_its_limit_goes_on),
        cmocka_unit_test(values_are_looked_at_rarely),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
