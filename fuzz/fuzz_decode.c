// SPDX-License-Identifier: MIT
// Arbitrary payloads for every decoder, and arbitrary floats for every
// encoder. An input is: what to do, the scope, rows, columns, the spec (see
// fuzz.h), then the payload or the floats.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { ENCODE = 1, FORM_SHIFT = 1 };

// Mostly few columns: small tensors are many runs a second.
static const uint8_t columns[] = {1, 2, 1, 3, 1, 4, 1, 0, 1, 8, 1, 16};

// One tensor and where its bytes go.
typedef struct job {
    lac_compressor *c;
    lac_key key;
    lac_shape shape;
    size_t n;
} job;

static float *filled(size_t n, float value)
{
    float *const x = fuzz_alloc(n * sizeof(*x));
    for (size_t i = 0; i < n; i++) {
        x[i] = value;
    }
    return x;
}

// decode_add must give what decode and an addition give.
static void compare_sums(
    const job *j, const uint8_t *in, size_t len, const float *x)
{
    const float a = -0.75f;
    float *const y = filled(j->n, 0.5f);
    float *const expected = filled(j->n, 0.5f);
    for (size_t i = 0; i < j->n; i++) {
        expected[i] += a * x[i];
    }
    fuzz_require(
        lac_compressor_decode_add(j->c, &j->key, j->shape, in, len, a, y) ==
            LAC_OK,
        "decode_add refuses what decode takes");
    fuzz_require(
        fuzz_same(y, expected, j->n), "decode_add is not decode and add");
    free(expected);
    free(y);
}

// The portable kernels must give the same bits, or refuse in the same way.
static void compare_kernels(
    const job *j, const uint8_t *in, size_t len, lac_status status,
    const float *x)
{
    float *const y = filled(j->n, 1);
    fuzz_require(
        lac_compressor_use_kernels(j->c, "portable") == LAC_OK,
        "no portable kernels");
    fuzz_require(
        lac_compressor_decode(j->c, &j->key, j->shape, in, len, y) == status,
        "portable kernels come to another verdict");
    fuzz_require(
        status != LAC_OK || fuzz_same(x, y, j->n),
        "portable kernels decode other values");
    fuzz_require(
        lac_compressor_use_kernels(j->c, "best") == LAC_OK, "no best kernels");
    free(y);
}

static void require_untouched(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fuzz_require(x[i] == 1, "a payload was refused after writing values");
    }
}

static void decode(const job *j, const uint8_t *in, size_t len)
{
    float *const x = filled(j->n, 1);
    const lac_status verdict =
        lac_compressor_check(j->c, &j->key, j->shape, in, len);
    const lac_status status =
        lac_compressor_decode(j->c, &j->key, j->shape, in, len, x);
    fuzz_require(status == verdict, "check and decode disagree");
    fuzz_require(
        status == LAC_OK || status == LAC_ERR_CORRUPT,
        "a payload is neither good nor corrupt");
    if (status == LAC_OK) {
        compare_sums(j, in, len, x);
    } else {
        require_untouched(x, j->n);
        fuzz_require(
            lac_compressor_decode_add(j->c, &j->key, j->shape, in, len, 1, x) ==
                status,
            "decode_add takes what decode refuses");
        require_untouched(x, j->n);
    }
    compare_kernels(j, in, len, status, x);
    free(x);
}

// Both sets of kernels must write the same payload.
static void compare_payloads(
    const job *j, const float *x, const uint8_t *expected, size_t len,
    size_t cap)
{
    uint8_t *const out = fuzz_alloc(cap);
    size_t again = 0;
    fuzz_require(
        lac_compressor_use_kernels(j->c, "portable") == LAC_OK &&
            lac_compressor_encode(
                j->c, &j->key, j->shape, x, out, cap, &again) == LAC_OK &&
            lac_compressor_use_kernels(j->c, "best") == LAC_OK,
        "portable kernels cannot encode");
    fuzz_require(
        again == len && (len == 0 || memcmp(out, expected, len) == 0),
        "portable kernels write another payload");
    free(out);
}

static void require_finite(const lac_memory *m, size_t n)
{
    float *const e = fuzz_alloc(n * sizeof(*e));
    lac_memory_read(m, e);
    for (size_t i = 0; i < n; i++) {
        fuzz_require(isfinite(e[i]), "error memory is not finite");
    }
    free(e);
}

// Encodes with an error memory, which refuses values that are not finite, and
// sums that are not.
static void remember(const job *j, const float *x, uint8_t *out, size_t cap)
{
    lac_memory *m = NULL;
    size_t len = 0;
    fuzz_require(lac_memory_open(&m, j->c, j->shape) == LAC_OK, "no memory");
    for (int step = 0; step < 3; step++) {
        const bool accepts = lac_memory_accepts(m, x, INFINITY);
        const lac_status status =
            lac_memory_encode(m, &j->key, x, out, cap, &len);
        fuzz_require(
            status == (accepts ? LAC_OK : LAC_ERR_INVALID) && len <= cap,
            "error memory does not encode what it accepts");
        fuzz_require(
            status != LAC_OK ||
                lac_memory_settle(m, &j->key, out, len) == LAC_OK,
            "error memory refuses its own payload");
        require_finite(m, j->n);
    }
    lac_memory_close(m);
}

static void encode(const job *j, const float *x)
{
    const size_t cap = lac_compressor_bound(j->c, j->shape, j->key.scope);
    uint8_t *const out = fuzz_alloc(cap);
    size_t len = 0;
    fuzz_require(
        lac_compressor_encode(j->c, &j->key, j->shape, x, out, cap, &len) ==
            LAC_OK,
        "encode fails");
    fuzz_require(len <= cap, "a payload is longer than its bound");
    compare_payloads(j, x, out, len, cap);
    uint8_t *const exact = fuzz_copy(out, len);
    fuzz_require(
        lac_compressor_check(j->c, &j->key, j->shape, exact, len) == LAC_OK,
        "a payload is refused by its own decoder");
    decode(j, exact, len);
    free(exact);
    remember(j, x, out, cap);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    char spec[FUZZ_SPEC_SIZE];
    const uint8_t what = fuzz_byte(&input);
    job j = {.key = fuzz_key(fuzz_byte(&input))};
    j.shape.rows = fuzz_byte(&input);
    j.shape.cols = columns[fuzz_byte(&input) % sizeof(columns)];
    fuzz_spec(&input, spec);
    const lac_form form = (lac_form)((what >> FORM_SHIFT) % 3);
    if (lac_compressor_open(&j.c, spec, form) != LAC_OK) {
        return 0; // settings that do not go together
    }
    if ((what & ENCODE) != 0 && j.shape.cols > 0) {
        const size_t most = input.size / sizeof(float) / j.shape.cols;
        j.shape.rows = most < j.shape.rows ? most : j.shape.rows;
    }
    j.n = lac_shape_values(j.shape);
    if (lac_compressor_reserve(j.c, j.shape) == LAC_OK) {
        uint8_t *const rest = fuzz_copy(input.data, input.size);
        if ((what & ENCODE) != 0) {
            float *const x = fuzz_copy(input.data, j.n * sizeof(*x));
            encode(&j, x);
            free(x);
        } else {
            decode(&j, rest, input.size);
        }
        free(rest);
    }
    lac_compressor_close(j.c);
    return 0;
}
