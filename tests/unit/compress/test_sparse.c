// SPDX-License-Identifier: MIT
// "A+B": the values that a sparsifier keeps go through another compressor.
// Cases are rows of a table; a new compressor for B is a new row.
#include "lac_test.h"

#include "compress/compressor.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

enum { N = 240, CAP = 8 * N, TRIALS = 3000 };

static const lac_shape shape = {20, 12};

typedef struct composition {
    const char *spec;
    lac_form form;
    bool unbiased;
    double error; // for N values
} composition;

// With w1 and w2 the laws of A and B. Unbiased: w1 w2 + w1 + w2 (natural
// compression, theorem 5), here 3*1+3+1 and 1*1+1+1. Otherwise a part 1 - w1 of
// the energy is kept, and w2 of it lost: w1 + (1 - w1) w2.
static const composition compositions[] = {
    {"top-k:0.5+identity", LAC_FORM_PLAIN, false, 0.5},
    {"top-k:0.5+random-k:0.5", LAC_FORM_PLAIN, false, 0.75},
    {"top-k:0.25+top-k:0.5", LAC_FORM_PLAIN, false, 0.875},
    {"random-k:0.25+random-k:0.5", LAC_FORM_UNBIASED, true, 7},
    {"random-k:0.5+random-block:0.5", LAC_FORM_UNBIASED, true, 3},
    {"random-block:0.5+identity", LAC_FORM_UNBIASED, true, 1},
    {"random-block:0.5+top-k:0.5", LAC_FORM_CONTRACTIVE, false, 0.75},
    {"random-k:0.5+random-k:0.5+random-k:0.5", LAC_FORM_UNBIASED, true, 7},
};

enum { COMPOSITIONS = sizeof(compositions) / sizeof(compositions[0]) };

static lac_key key_of(uint64_t seed, lac_scope scope)
{
    return lac_key_make(seed, LAC_PURPOSE_COMPRESS, 1, scope, 0);
}

static lac_compressor *open_for(const char *spec, lac_form form)
{
    lac_compressor *c = NULL;
    assert_ok(lac_compressor_open(&c, spec, form));
    assert_ok(lac_compressor_reserve(c, shape));
    return c;
}

static void make(float *x)
{
    const lac_key key =
        lac_key_make(1, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    for (uint32_t i = 0; i < N; i++) {
        x[i] = lac_key_normal(&key, i) * (i % 5 == 0 ? 4.0f : 1.0f);
    }
}

static void pass(
    lac_compressor *c, const lac_key *key, const float *x, float *y)
{
    uint8_t payload[CAP];
    size_t len;
    assert_ok(lac_compressor_encode(c, key, shape, x, payload, CAP, &len));
    assert_ok(lac_compressor_decode(c, key, shape, payload, len, y));
}

static void the_law_of_a_composition_is_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < COMPOSITIONS; i++) {
        lac_compressor *const c =
            open_for(compositions[i].spec, compositions[i].form);
        const lac_guarantee g = lac_compressor_guarantee(c, shape);
        assert_int_equal(g.unbiased, compositions[i].unbiased);
        assert_true(fabs(g.error - compositions[i].error) < 1e-12);
        lac_compressor_close(c);
    }
}

// The mean of 3000 losses against the law. A loss relative to |x|^2 varies by
// less than the law itself from trial to trial here, so five standard
// deviations of the mean are 5/sqrt(3000) = 0.09 of it.
static void the_law_of_a_composition_holds(void **state)
{
    (void)state;
    float x[N], y[N];
    make(x);
    for (size_t i = 0; i < COMPOSITIONS; i++) {
        const composition *const row = &compositions[i];
        lac_compressor *const c = open_for(row->spec, row->form);
        double lost = 0, whole = 0;
        for (uint64_t t = 0; t < TRIALS; t++) {
            const lac_key key = key_of(t, lac_scope_worker(0));
            pass(c, &key, x, y);
            for (size_t j = 0; j < N; j++) {
                const double off = (double)(y[j] - x[j]);
                lost += off * off;
                whole += (double)(x[j] * x[j]);
            }
        }
        assert_true(lost / whole < 1.09 * row->error);
        lac_compressor_close(c);
    }
}

// The sum of (mean - x)^2 over all values is the variance of the mean, the law
// over the number of trials; twice that leaves it far from any bias.
static void unbiased_compositions_have_the_right_mean(void **state)
{
    (void)state;
    float x[N], y[N];
    make(x);
    for (size_t i = 0; i < COMPOSITIONS; i++) {
        const composition *const row = &compositions[i];
        if (!row->unbiased) {
            continue;
        }
        lac_compressor *const c = open_for(row->spec, row->form);
        double mean[N] = {0}, off = 0, whole = 0;
        for (uint64_t t = 0; t < TRIALS; t++) {
            const lac_key key = key_of(t, lac_scope_worker(0));
            pass(c, &key, x, y);
            for (size_t j = 0; j < N; j++) {
                mean[j] += (double)y[j] / TRIALS;
            }
        }
        for (size_t j = 0; j < N; j++) {
            off += (mean[j] - (double)x[j]) * (mean[j] - (double)x[j]);
            whole += (double)(x[j] * x[j]);
        }
        assert_true(off / whole < 2 * row->error / TRIALS);
        lac_compressor_close(c);
    }
}

// What B drops is zero, what it keeps is what A kept.
static void values_of_both_choices_survive(void **state)
{
    (void)state;
    float x[N], y[N], z[N];
    make(x);
    const lac_key key = key_of(1, lac_scope_worker(0));
    lac_compressor *const a = open_for("top-k:0.5", LAC_FORM_PLAIN);
    lac_compressor *const ab =
        open_for("top-k:0.5+random-k:0.5", LAC_FORM_PLAIN);
    size_t kept = 0;
    pass(a, &key, x, y);
    pass(ab, &key, x, z);
    for (size_t i = 0; i < N; i++) {
        assert_true(z[i] == 0 || z[i] == y[i]);
        kept += z[i] != 0;
    }
    assert_int_equal(kept, N / 4);
    lac_compressor_close(a);
    lac_compressor_close(ab);
}

static void the_identity_changes_no_byte(void **state)
{
    (void)state;
    float x[N];
    make(x);
    const lac_key key = key_of(1, lac_scope_shared());
    lac_compressor *const a = open_for("top-k:0.1", LAC_FORM_PLAIN);
    lac_compressor *const ab = open_for("top-k:0.1+identity", LAC_FORM_PLAIN);
    uint8_t u[CAP], v[CAP];
    size_t len, other;
    assert_ok(lac_compressor_encode(a, &key, shape, x, u, CAP, &len));
    assert_ok(lac_compressor_encode(ab, &key, shape, x, v, CAP, &other));
    assert_int_equal(len, other);
    assert_memory_equal(u, v, len);
    lac_compressor_close(a);
    lac_compressor_close(ab);
}

// A and B must not draw the same numbers, or B would choose the same places.
static void the_two_choices_are_different(void **state)
{
    (void)state;
    float x[N];
    for (size_t i = 0; i < N; i++) {
        x[i] = (float)i;
    }
    const lac_key key = key_of(1, lac_scope_worker(0));
    lac_compressor *const c =
        open_for("random-k:0.5+random-k:0.5", LAC_FORM_PLAIN);
    uint8_t payload[CAP];
    size_t len;
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
    assert_int_equal(len, 8 + 8 + 4 * N / 4);
    assert_true(laci_get_u64(payload) != laci_get_u64(payload + 8));
    lac_compressor_close(c);
}

static void wire_ids_name_both(void **state)
{
    (void)state;
    lac_compressor *const c =
        open_for("top-k+random-block+identity", LAC_FORM_PLAIN);
    assert_int_equal(lac_compressor_wire_id(c), 8 + 256 * (10 + 256 * 1));
    lac_compressor_close(c);
}

static size_t kept_by(const char *spec, lac_shape tensor)
{
    lac_compressor *c = NULL;
    assert_ok(lac_compressor_open(&c, spec, LAC_FORM_PLAIN));
    const size_t kept = lac_compressor_kept(c, tensor);
    lac_compressor_close(c);
    return kept;
}

static void the_number_of_values_kept_is_known(void **state)
{
    (void)state;
    assert_int_equal(kept_by("top-k:0.1", (lac_shape){10, 10}), 10);
    assert_int_equal(kept_by("top-k:0.1", (lac_shape){3, 1}), 1);
    assert_int_equal(kept_by("random-k:rank=2", (lac_shape){10, 10}), 40);
    assert_int_equal(kept_by("random-k:rank=2", (lac_shape){10, 1}), 10);
    assert_int_equal(kept_by("top-k:0.1+natural", (lac_shape){10, 10}), 10);
    assert_int_equal(kept_by("top-k:0.5+top-k:0.1", (lac_shape){10, 10}), 5);
    assert_int_equal(kept_by("sign", (lac_shape){10, 10}), 100);
    assert_int_equal(kept_by("top-k", (lac_shape){0, 10}), 0);
}

static void traits_follow_the_scope(void **state)
{
    (void)state;
    lac_compressor *const top = open_for("top-k", LAC_FORM_PLAIN);
    lac_compressor *const random =
        open_for("random-k+random-block", LAC_FORM_PLAIN);
    assert_int_equal(
        lac_compressor_traits(top, LAC_SCOPE_SHARED), LAC_TRAIT_DETERMINISTIC);
    assert_int_equal(
        lac_compressor_traits(random, LAC_SCOPE_SHARED),
        LAC_TRAIT_LINEAR | LAC_TRAIT_FIXED_SIZE);
    assert_int_equal(lac_compressor_traits(random, LAC_SCOPE_WORKER), 0);
    lac_compressor_close(top);
    lac_compressor_close(random);
}

// What the error memory keeps is what was not sent, exactly: a value is sent
// whole or not at all.
static void error_memory_keeps_what_was_dropped(void **state)
{
    (void)state;
    float x[N], y[N], e[N];
    make(x);
    const lac_key key = key_of(1, lac_scope_worker(0));
    lac_compressor *const c =
        open_for("top-k:0.3+random-k:0.5", LAC_FORM_PLAIN);
    lac_memory *m = NULL;
    uint8_t payload[CAP];
    size_t len;
    assert_ok(lac_memory_open(&m, c, shape));
    assert_ok(lac_memory_encode(m, &key, x, payload, CAP, &len));
    assert_ok(lac_memory_settle(m, &key, payload, len));
    assert_ok(lac_compressor_decode(c, &key, shape, payload, len, y));
    lac_memory_read(m, e);
    for (size_t i = 0; i < N; i++) {
        assert_true(e[i] == (y[i] == 0 ? x[i] : 0));
    }
    lac_memory_close(m);
    lac_compressor_close(c);
}

static void only_sparsifiers_take_a_plus(void **state)
{
    (void)state;
    lac_compressor *c;
    assert_fails(
        lac_compressor_open(&c, "low-rank+identity", LAC_FORM_PLAIN),
        LAC_ERR_INVALID,
        "low-rank: nothing can follow with a +, expected a sparsifier such as "
        "top-k before it");
}

static void inner_payloads_are_checked(void **state)
{
    (void)state;
    float x[N];
    make(x);
    const lac_key key = key_of(1, lac_scope_worker(0));
    lac_compressor *const c =
        open_for("random-block:0.5+random-block:0.5", LAC_FORM_PLAIN);
    uint8_t payload[CAP];
    size_t len;
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
    for (size_t cut = 0; cut < len; cut++) {
        assert_status(
            lac_compressor_check(c, &key, shape, payload, cut),
            LAC_ERR_CORRUPT);
    }
    laci_put_u32(payload + 4, N / 2);
    assert_fails(
        lac_compressor_check(c, &key, shape, payload, len), LAC_ERR_CORRUPT,
        "random-block: start is 120, expected below 120");
    lac_compressor_close(c);
}

// A sparsifier of a program's own that fills its scratch in every op, as it is
// free to. It keeps every other value.
static size_t messy_keep(const void *state, lac_shape of)
{
    (void)state;
    return lac_shape_values(of) / 2;
}

static size_t messy_scratch(const void *state, lac_shape of)
{
    (void)state;
    return 4 * lac_shape_values(of);
}

static void messy_indices(const lac_call *call, uint32_t *indices_out)
{
    const size_t n = lac_shape_values(call->shape);
    memset(call->scratch, 0xff, 4 * n);
    for (size_t i = 0; i < n / 2; i++) {
        indices_out[i] = (uint32_t)(2 * i);
    }
    memset(call->scratch, 0xff, 4 * n);
}

static void messy_choose(
    const void *state, const lac_call *call, const float *x,
    uint32_t *indices_out)
{
    (void)state;
    (void)x;
    messy_indices(call, indices_out);
}

static size_t messy_indices_bound(
    const void *state, lac_shape of, lac_scope_kind scope)
{
    (void)state;
    (void)of;
    (void)scope;
    return 1;
}

static size_t messy_put_indices(
    const void *state, const lac_call *call, const uint32_t *indices,
    uint8_t *out)
{
    (void)state;
    (void)indices;
    memset(call->scratch, 0xff, 4 * lac_shape_values(call->shape));
    out[0] = 42;
    return 1;
}

static lac_status messy_get_indices(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    uint32_t *indices_out, size_t *used_out)
{
    (void)state;
    if (len < 1 || in[0] != 42) {
        return lac_fail(LAC_ERR_CORRUPT, "messy: no 42");
    }
    messy_indices(call, indices_out);
    *used_out = 1;
    return LAC_OK;
}

static lac_guarantee messy_guarantee(
    const void *state, lac_shape of, lac_form form)
{
    (void)state;
    (void)of;
    (void)form;
    return (lac_guarantee){.unbiased = false, .error = 1};
}

static void a_sparsifier_may_use_its_scratch(void **state)
{
    (void)state;
    static const lac_sparsifier_ops sparsifier = {
        .size = sizeof(sparsifier),
        .keep = messy_keep,
        .choose = messy_choose,
        .indices_bound = messy_indices_bound,
        .put_indices = messy_put_indices,
        .get_indices = messy_get_indices,
    };
    static const lac_compressor_ops messy = {
        .plugin.size = sizeof(messy),
        .plugin.name = "messy",
        .guarantee = messy_guarantee,
        .sparsifier = &sparsifier,
        .scratch = messy_scratch,
    };
    float x[N], y[N];
    uint8_t payload[CAP];
    size_t len;
    const lac_key key = key_of(1, lac_scope_worker(0));
    lac_compressor *c;
    make(x);
    assert_ok(lac_compressor_open_with(&c, &messy, "", LAC_FORM_PLAIN));
    assert_ok(lac_compressor_reserve(c, shape));
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
    assert_ok(lac_compressor_decode(c, &key, shape, payload, len, y));
    for (size_t i = 0; i < N; i++) {
        assert_true(y[i] == (i % 2 == 0 ? x[i] : 0));
    }
    lac_compressor_close(c);
}

// Payloads of two shapes are checked before either is decoded, as algorithms
// do. The inner indices of one must not pass for those of the other.
static void nested_sparsifiers_decode_in_any_order(void **state)
{
    (void)state;
    enum { MOST = 3400 };
    static const char *const specs[] = {
        "top-k:0.5+top-k:0.5", "random-k:0.5+top-k:0.5",
        "random-block:0.5+top-k:0.5", "top-k:0.5+random-k:0.5+natural"};
    static float x[MOST], apart[2][MOST], together[MOST];
    static uint8_t payloads[2][8 * MOST];
    const lac_key key =
        lac_key_make(1, LAC_PURPOSE_COMPRESS, 0, lac_scope_worker(0), 0);
    fill_normal(x, MOST, 1);
    for (size_t k = 0; k < sizeof(specs) / sizeof(*specs); k++) {
        for (size_t n = 2000; n <= MOST; n += 100) {
            const lac_shape shapes[] = {{2000, 1}, {n, 1}};
            size_t lens[2];
            lac_compressor *c;
            assert_ok(lac_compressor_open(&c, specs[k], LAC_FORM_PLAIN));
            for (size_t i = 0; i < 2; i++) {
                assert_ok(lac_compressor_reserve(c, shapes[i]));
                assert_ok(lac_compressor_encode(
                    c, &key, shapes[i], x, payloads[i], sizeof(payloads[i]),
                    &lens[i]));
                assert_ok(lac_compressor_decode(
                    c, &key, shapes[i], payloads[i], lens[i], apart[i]));
            }
            for (size_t i = 0; i < 2; i++) {
                assert_ok(lac_compressor_check(
                    c, &key, shapes[i], payloads[i], lens[i]));
            }
            for (size_t i = 0; i < 2; i++) {
                const lac_call call = laci_call_make(c, &key, shapes[i]);
                laci_payload_decode(c, &call, payloads[i], lens[i], together);
                assert_memory_equal(
                    together, apart[i],
                    lac_shape_values(shapes[i]) * sizeof(float));
            }
            lac_compressor_close(c);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_sparsifiers_decode_in_any_order),
        cmocka_unit_test(the_law_of_a_composition_is_known),
        cmocka_unit_test(the_law_of_a_composition_holds),
        cmocka_unit_test(unbiased_compositions_have_the_right_mean),
        cmocka_unit_test(values_of_both_choices_survive),
        cmocka_unit_test(the_identity_changes_no_byte),
        cmocka_unit_test(the_two_choices_are_different),
        cmocka_unit_test(wire_ids_name_both),
        cmocka_unit_test(the_number_of_values_kept_is_known),
        cmocka_unit_test(traits_follow_the_scope),
        cmocka_unit_test(error_memory_keeps_what_was_dropped),
        cmocka_unit_test(only_sparsifiers_take_a_plus),
        cmocka_unit_test(inner_payloads_are_checked),
        cmocka_unit_test(a_sparsifier_may_use_its_scratch),
    };
    return cmocka_run_group_tests_name("compress/sparse", tests, NULL, NULL);
}
