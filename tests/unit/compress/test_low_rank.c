// SPDX-License-Identifier: MIT
// Low-rank: how close it comes, matrices that are hard on it, its payload.
#include "lac_test.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

enum { ROWS = 37, COLS = 53, VALUES = ROWS * COLS, CAP = 4 * VALUES };

static const lac_shape shape = {ROWS, COLS};

static lac_key key_of(uint64_t seed)
{
    return lac_key_make(seed, LAC_PURPOSE_COMPRESS, 0, lac_scope_worker(0), 0);
}

static double energy(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    return sum;
}

// M = sum over j < rank of decay^j u_j v_j^T, with normal u_j and v_j.
static void make(float *m, size_t rank, double decay, double size)
{
    const lac_key key =
        lac_key_make(1, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    for (uint32_t i = 0; i < VALUES; i++) {
        double sum = 0;
        for (uint32_t j = 0; j < rank; j++) {
            const uint32_t base = 1000 * j;
            sum += pow(decay, j) *
                   (double)lac_key_normal(&key, base + i / COLS) *
                   (double)lac_key_normal(&key, base + 500 + i % COLS);
        }
        m[i] = (float)(size * sum);
    }
}

// Compresses and returns what is lost, |C(M) - M|^2 / |M|^2; y is C(M).
static double lose(const char *spec, uint64_t seed, const float *m, float *y)
{
    static const char *const sets[] = {"portable", "best"};
    static uint8_t payloads[2][CAP];
    size_t len = 0;
    const lac_key key = key_of(seed);
    for (size_t i = 0; i < 2; i++) {
        lac_compressor *c = NULL;
        assert_ok(lac_compressor_open(&c, spec, LAC_FORM_PLAIN));
        assert_ok(lac_compressor_use_kernels(c, sets[i]));
        assert_ok(lac_compressor_reserve(c, shape));
        assert_ok(
            lac_compressor_encode(c, &key, shape, m, payloads[i], CAP, &len));
        assert_ok(lac_compressor_decode(c, &key, shape, payloads[i], len, y));
        lac_compressor_close(c);
    }
    assert_memory_equal(payloads[0], payloads[1], len);
    double lost = 0;
    for (size_t i = 0; i < VALUES; i++) {
        const double off = (double)y[i] - (double)m[i];
        lost += off * off;
    }
    const double whole = energy(m, VALUES);
    return whole == 0 ? lost : lost / whole;
}

// Floats have 24 bits, and errors of 53 terms add up to a few of the last:
// 1e-5 of the norm is far above, any missing direction far beyond.
static void matrices_of_that_rank_survive(void **state)
{
    (void)state;
    float m[VALUES], y[VALUES];
    for (size_t rank = 1; rank <= 4; rank++) {
        make(m, rank, 1, 1);
        assert_true(sqrt(lose("low-rank:4", 1, m, y)) < 1e-5);
        assert_true(sqrt(lose("low-rank:4,iterations=5", 1, m, y)) < 1e-5);
    }
    assert_true(sqrt(lose("low-rank:3", 1, m, y)) > 0.1);
}

static void zeros_stay_zeros(void **state)
{
    (void)state;
    float m[VALUES] = {0}, y[VALUES];
    (void)lose("low-rank:3,iterations=2", 1, m, y);
    for (size_t i = 0; i < VALUES; i++) {
        assert_true(y[i] == 0);
    }
}

static void tiny_and_huge_values_survive(void **state)
{
    (void)state;
    static const double sizes[] = {1e-37, 1e-30, 1e-15, 1e15, 1e30, 1e37};
    float m[VALUES], y[VALUES];
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        make(m, 2, 1, sizes[i]);
        assert_true(sqrt(lose("low-rank:2", 1, m, y)) < 1e-5);
        assert_true(sqrt(lose("low-rank:3,iterations=4", 1, m, y)) < 1e-5);
    }
}

// One value alone among zeros, of any size a float has.
static void single_values_survive(void **state)
{
    (void)state;
    static const float values[] = {0x1p-149f, 0x1p-126f, 1, -0x1.8p127f};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        float m[VALUES] = {0}, y[VALUES];
        m[11 * COLS + 7] = values[i];
        (void)lose("low-rank:2,iterations=2", 1, m, y);
        assert_true(fabs((double)(y[11 * COLS + 7] / values[i]) - 1) < 1e-5);
        assert_true(y[0] == 0);
    }
}

// M = u v^T with whole numbers u and v of either sign, by the least and nearly
// the largest float: no product on the way may leave the range of a float.
static void the_least_and_largest_values_survive(void **state)
{
    (void)state;
    static const double sizes[] = {0x1p-149, 0x1p127 / (ROWS * COLS)};
    static const char *const specs[] = {
        "low-rank:2", "low-rank:2,iterations=3"};
    for (size_t i = 0; i < 4; i++) {
        float m[VALUES], y[VALUES];
        for (size_t j = 0; j < VALUES; j++) {
            const double u = (double)(j / COLS + 1), v = (double)(j % COLS + 1);
            m[j] = (float)(sizes[i / 2] * (j % 2 == 0 ? u * v : -u * v));
        }
        (void)lose(specs[i % 2], 1, m, y);
        for (size_t j = 0; j < VALUES; j++) {
            assert_true(fabs((double)y[j] / (double)m[j] - 1) < 1e-5);
        }
    }
}

// The mean of 200 losses must not be above the law. A loss has a standard
// deviation below 0.1 here, so their mean one of 0.1/sqrt(200); three of these
// are 0.022. Equal singular values are the worst case.
static void the_law_holds(void **state)
{
    (void)state;
    float m[VALUES], y[VALUES];
    make(m, 0, 1, 1);
    for (size_t i = 0; i < ROWS; i++) {
        m[i * COLS + i] = i % 2 == 0 ? 1 : -1;
    }
    for (uint32_t rank = 1; rank <= 8; rank *= 2) {
        char spec[32];
        (void)snprintf(spec, sizeof(spec), "low-rank:%u", (unsigned)rank);
        double sum = 0;
        for (uint64_t seed = 0; seed < 200; seed++) {
            sum += lose(spec, seed, m, y);
        }
        lac_compressor *c = NULL;
        assert_ok(lac_compressor_open(&c, spec, LAC_FORM_PLAIN));
        const lac_guarantee g = lac_compressor_guarantee(c, shape);
        lac_compressor_close(c);
        assert_false(g.unbiased);
        assert_true(fabs(g.error - (1 - rank / (double)COLS)) < 1e-12);
        assert_true(sum / 200 < g.error + 0.022);
    }
}

// P has orthonormal columns, so C is a projection: |M - C|^2 = |M|^2 - |C|^2,
// up to rounding.
static void the_result_is_a_projection(void **state)
{
    (void)state;
    float m[VALUES], y[VALUES];
    make(m, 20, 0.8, 1);
    const double lost = lose("low-rank:5", 3, m, y);
    const double kept = energy(y, VALUES) / energy(m, VALUES);
    assert_true(fabs(lost + kept - 1) < 1e-5);
}

// Subspace iteration never loses what it had, and from any start it comes to
// the best approximation: directions decay by 0.7, so 64 iterations leave
// nothing of the difference, and one iteration is well short of it.
static void more_iterations_come_closer(void **state)
{
    (void)state;
    float m[VALUES], y[VALUES];
    make(m, 20, 0.7, 1);
    double before = 1;
    for (unsigned iterations = 1; iterations <= 16; iterations *= 2) {
        char spec[64];
        (void)snprintf(
            spec, sizeof(spec), "low-rank:2,iterations=%u", iterations);
        const double lost = lose(spec, 1, m, y);
        assert_true(lost < before + 1e-6);
        before = lost;
    }
    const double best = before;
    assert_true(lose("low-rank:2", 1, m, y) > 1.02 * best);
    assert_true(
        fabs(lose("low-rank:2,iterations=64", 2, m, y) - best) < 1e-3 * best);
}

static void divergence_is_not_hidden(void **state)
{
    (void)state;
    float m[VALUES], y[VALUES];
    make(m, 5, 1, 1);
    m[100] = NAN;
    (void)lose("low-rank:2", 1, m, y);
    assert_true(isnan(y[100]));
    m[100] = INFINITY;
    (void)lose("low-rank:2,iterations=2", 1, m, y);
    assert_true(isnan(y[100]));
}

static void what_would_not_shrink_passes_whole(void **state)
{
    (void)state;
    static const lac_shape shapes[] = {{1, 1}, {6, 1}, {1, 6}, {2, 2}, {3, 6}};
    float x[18], y[18] = {0};
    for (size_t i = 0; i < 18; i++) {
        x[i] = (float)i - 7;
    }
    lac_compressor *c = NULL;
    assert_ok(lac_compressor_open(&c, "low-rank:2", LAC_FORM_PLAIN));
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const lac_key key = key_of(1);
        const size_t size = 4 * shapes[i].rows * shapes[i].cols;
        uint8_t payload[CAP];
        size_t len;
        assert_ok(lac_compressor_reserve(c, shapes[i]));
        assert_ok(
            lac_compressor_encode(c, &key, shapes[i], x, payload, CAP, &len));
        assert_int_equal(len, size);
        assert_ok(lac_compressor_decode(c, &key, shapes[i], payload, len, y));
        assert_memory_equal(x, y, size);
        const lac_guarantee g = lac_compressor_guarantee(c, shapes[i]);
        assert_true(g.unbiased && g.error == 0);
    }
    lac_compressor_close(c);
}

// All of M is u v^T with u = (0.6, 0, 0.8, 0):
// whatever Q was drawn, P is u or -u and Q is v or -v, up to rounding.
static void payload_is_as_documented(void **state)
{
    (void)state;
    const float u[4] = {0.6f, 0, 0.8f, 0}, v[5] = {1, -2, 3, -4, 5};
    const lac_shape small = {4, 5};
    const lac_key key = key_of(4);
    float m[20];
    uint8_t payload[64];
    size_t len;
    for (size_t i = 0; i < 20; i++) {
        m[i] = u[i / 5] * v[i % 5];
    }
    lac_compressor *c = NULL;
    assert_ok(lac_compressor_open(&c, "low-rank", LAC_FORM_PLAIN));
    assert_ok(lac_compressor_reserve(c, small));
    assert_ok(lac_compressor_encode(c, &key, small, m, payload, 64, &len));
    assert_int_equal(len, 4 * (4 + 5));
    const float sign = laci_get_f32(payload) < 0 ? -1.0f : 1.0f;
    for (size_t i = 0; i < 9; i++) {
        const float expected = sign * (i < 4 ? u[i] : v[i - 4]);
        assert_true(fabsf(laci_get_f32(payload + 4 * i) - expected) < 1e-5f);
    }
    lac_compressor_close(c);
}

// These bytes may never change.
static void payload_is_always_the_same(void **state)
{
    (void)state;
    const uint8_t expected[] = {
        0xa7, 0x6e, 0xf4, 0x3e, 0xa,  0x9e, 0x5b, 0xbd, 0x84, 0x78, 0x62,
        0x3e, 0x41, 0x14, 0xaa, 0x3d, 0x8c, 0xe6, 0x97, 0x3e, 0xc3, 0xcd,
        0x18, 0x3f, 0x45, 0x47, 0xbf, 0xbe, 0x74, 0x45, 0xb8, 0xbe, 0x47,
        0x1d, 0x22, 0xbe, 0x50, 0x81, 0xe8, 0x3f, 0x9b, 0x79, 0xb3, 0x3f};
    const lac_shape small = {8, 3};
    const lac_key key = {1, 2, LAC_SCOPE_WORKER};
    float m[24];
    for (uint32_t i = 0; i < 24; i++) {
        m[i] = lac_key_normal(&key, 1000 + i);
    }
    uint8_t payload[64];
    size_t len;
    lac_compressor *c = NULL;
    assert_ok(
        lac_compressor_open(&c, "low-rank:1,iterations=2", LAC_FORM_PLAIN));
    assert_ok(lac_compressor_reserve(c, small));
    assert_ok(lac_compressor_encode(c, &key, small, m, payload, 64, &len));
    assert_int_equal(len, sizeof(expected));
    assert_memory_equal(payload, expected, sizeof(expected));
    lac_compressor_close(c);
}

// Factors P = (1, 2; 3, 4; 5, 6; 7, 8; 9, 10) and Q likewise, by columns.
static void decoding_multiplies_the_factors(void **state)
{
    (void)state;
    const lac_shape square = {5, 5};
    const lac_key key = key_of(1);
    const float p[20] = {1, 3, 5, 7, 9, 2, 4, 6, 8, 10,
                         1, 3, 5, 7, 9, 2, 4, 6, 8, 10};
    uint8_t payload[81];
    float x[25], y[25];
    laci_put_floats(payload + 1, p, 20);
    lac_compressor *c = NULL;
    assert_ok(lac_compressor_open(&c, "low-rank:2", LAC_FORM_PLAIN));
    assert_ok(lac_compressor_reserve(c, square));
    assert_ok(lac_compressor_decode(c, &key, square, payload + 1, 80, x));
    for (size_t i = 0; i < 25; i++) {
        assert_true(x[i] == p[i / 5] * p[i % 5] + p[5 + i / 5] * p[5 + i % 5]);
        y[i] = 100;
    }
    assert_ok(
        lac_compressor_decode_add(c, &key, square, payload + 1, 80, -0.5f, y));
    for (size_t i = 0; i < 25; i++) {
        assert_true(y[i] == 100 - 0.5f * x[i]);
    }
    lac_compressor_close(c);
}

static void bad_payloads_are_refused(void **state)
{
    (void)state;
    const uint8_t payload[81] = {0};
    const lac_key key = key_of(1);
    const lac_shape square = {5, 5};
    lac_compressor *c = NULL;
    assert_ok(lac_compressor_open(&c, "low-rank:2", LAC_FORM_PLAIN));
    assert_ok(lac_compressor_reserve(c, square));
    assert_fails(
        lac_compressor_check(c, &key, square, payload, 81), LAC_ERR_CORRUPT,
        "low-rank: payload has 81 bytes, expected 80");
    lac_compressor_close(c);
    assert_status(
        lac_compressor_open(&c, "low-rank:33", LAC_FORM_PLAIN),
        LAC_ERR_INVALID);
    assert_status(
        lac_compressor_open(&c, "low-rank:0", LAC_FORM_PLAIN), LAC_ERR_INVALID);
}

// A vector of n values and the matrix of 30 x 30 whose first they are.
static void a_folded_vector_is_the_padded_matrix(void **state)
{
    (void)state;
    enum { N = 885, SIDE = 30 };
    const lac_shape vectors[] = {{N, 1}, {1, N}}, square = {SIDE, SIDE};
    const lac_key key = key_of(1);
    float m[SIDE * SIDE] = {0}, y[SIDE * SIDE], z[N + 1], sum[N + 1];
    uint8_t expected[CAP], payload[CAP];
    size_t expected_len, len;
    lac_compressor *plain, *folded;
    fill_normal(m, N, 3);
    assert_ok(lac_compressor_open(&plain, "low-rank:rank=4", LAC_FORM_PLAIN));
    assert_ok(lac_compressor_reserve(plain, square));
    assert_ok(lac_compressor_encode(
        plain, &key, square, m, expected, CAP, &expected_len));
    assert_ok(
        lac_compressor_decode(plain, &key, square, expected, expected_len, y));
    assert_int_equal(expected_len, 4 * 2 * SIDE * sizeof(float));
    for (size_t i = 0; i < 2; i++) {
        assert_ok(lac_compressor_open(
            &folded, "low-rank:rank=4,fold=yes", LAC_FORM_PLAIN));
        assert_ok(lac_compressor_reserve(folded, vectors[i]));
        assert_ok(lac_compressor_encode(
            folded, &key, vectors[i], m, payload, CAP, &len));
        assert_int_equal(len, expected_len);
        assert_memory_equal(payload, expected, len);
        z[N] = 7; // is not written
        assert_ok(
            lac_compressor_decode(folded, &key, vectors[i], payload, len, z));
        assert_memory_equal(z, y, N * sizeof(*z));
        assert_true(z[N] == 7);
        memset(sum, 0, sizeof(sum));
        sum[N] = 7;
        assert_ok(lac_compressor_decode_add(
            folded, &key, vectors[i], payload, len, 1, sum));
        for (size_t k = 0; k < N; k++) {
            assert_true(sum[k] == y[k]);
        }
        assert_true(sum[N] == 7);
        lac_compressor_close(folded);
    }
    lac_compressor_close(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_of_that_rank_survive),
        cmocka_unit_test(zeros_stay_zeros),
        cmocka_unit_test(tiny_and_huge_values_survive),
        cmocka_unit_test(single_values_survive),
        cmocka_unit_test(the_least_and_largest_values_survive),
        cmocka_unit_test(the_law_holds),
        cmocka_unit_test(the_result_is_a_projection),
        cmocka_unit_test(more_iterations_come_closer),
        cmocka_unit_test(divergence_is_not_hidden),
        cmocka_unit_test(what_would_not_shrink_passes_whole),
        cmocka_unit_test(payload_is_as_documented),
        cmocka_unit_test(payload_is_always_the_same),
        cmocka_unit_test(decoding_multiplies_the_factors),
        cmocka_unit_test(bad_payloads_are_refused),
        cmocka_unit_test(a_folded_vector_is_the_padded_matrix),
    };
    return cmocka_run_group_tests_name("compress/low_rank", tests, NULL, NULL);
}
