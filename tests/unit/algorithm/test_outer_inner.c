// SPDX-License-Identifier: MIT
// outer over algorithms of both families, with compressors and states of their
// own: its state contains theirs, and its cost, traffic, gamma and warning are
// theirs.
#include "workers.h"

#include <math.h>

enum { WORLD = 4, ROWS = 12, COLS = 9, VALUES = ROWS * COLS, ROUNDS = 3 };

typedef struct subject {
    const char *spec;
    const char *compressor;
} subject;

static const subject subjects[] = {
    {"outer", NULL},
    {"outer:inner=(powersgd:rank=2)", NULL},
    {"outer:inner=(powersgd:fold=yes)", NULL},
    {"outer:inner=(signum),lr=0.01", NULL},
    {"outer:inner=(error-feedback)", "top-k:0.2"},
    {"outer:inner=(compressed:server=(natural))", "dithering"},
    {"outer:inner=(dpsgd),nesterov=no", NULL},
    {"outer:inner=(naive)", "natural"},
    {"outer:inner=(choco:gamma=0.3),momentum=0.3", "sign"},
    {"outer:inner=(deepsqueeze:gamma=0.2),momentum=0.3", "top-k:0.5"},
    {"outer:inner=(powergossip),momentum=0.3", NULL},
};

enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]) };

static const lac_tensor tensors[] = {
    {.name = "w", .shape = {ROWS, COLS}}, {.name = "b", .shape = {ROWS, 1}}};

static void move(float *x, uint32_t rank, uint64_t round)
{
    for (size_t i = 0; i < VALUES + ROWS; i++) {
        x[i] += (float)(0.1 * sin(rank + 3.0 * (double)i + (double)round));
    }
}

static lac_status mix_rounds(
    lac_algorithm *a, uint32_t rank, uint64_t from, float *x)
{
    const lac_slice slices[] = {
        {0, LAC_F32, x, x}, {1, LAC_F32, x + VALUES, x + VALUES}};
    for (uint64_t round = from; round < from + ROUNDS; round++) {
        move(x, rank, round);
        LAC_TRY(lac_algorithm_mix(a, round, slices, NULL, 2));
    }
    return LAC_OK;
}

// Continues twice from a state, the second time in a new handle.
static lac_status resume(
    const test_worker *w, handles *h, const lac_algorithm_options *o, float *x,
    uint8_t *state, size_t len)
{
    float kept[VALUES + ROWS], expected[VALUES + ROWS];
    lac_algorithm *fresh = NULL;
    LAC_TRY(mix_rounds(h->a, w->rank, 0, x));
    LAC_TRY(lac_algorithm_save(h->a, state, len));
    memcpy(kept, x, sizeof(kept));
    LAC_TRY(mix_rounds(h->a, w->rank, ROUNDS, x));
    memcpy(expected, x, sizeof(expected));
    memcpy(x, kept, sizeof(kept));
    lac_status status = lac_algorithm_open(&fresh, o);
    if (status == LAC_OK) {
        status = lac_algorithm_load(fresh, state, len);
    }
    if (status == LAC_OK) {
        status = mix_rounds(fresh, w->rank, ROUNDS, x);
    }
    if (status == LAC_OK && memcmp(x, expected, sizeof(expected)) != 0) {
        status = lac_fail(LAC_ERR_SPACE, "%s continues differently", o->spec);
    }
    // The state of the inner algorithm is checked before anything changes.
    if (status == LAC_OK) {
        state[len - 12] ^= 1;
        if (lac_algorithm_load(fresh, state, len) != LAC_ERR_CORRUPT) {
            status = lac_fail(LAC_ERR_SPACE, "%s loads anything", o->spec);
        }
    }
    lac_algorithm_close(fresh);
    return status;
}

static lac_status resume_subject(test_worker *w)
{
    const subject *const s = w->context;
    handles h = {0};
    float x[VALUES + ROWS];
    lac_algorithm_options o = options_for(s->spec, s->compressor);
    lac_status status = open_parts(&h, &o, "ring", WORLD, tensors, 2);
    o.transport = w->transport;
    for (size_t i = 0; i < VALUES + ROWS; i++) {
        x[i] = (float)cos((double)i);
    }
    if (status == LAC_OK) {
        status = lac_algorithm_open(&h.a, &o);
    }
    if (status == LAC_OK) {
        const lac_slice slices[] = {
            {0, LAC_F32, x, x}, {1, LAC_F32, x + VALUES, x + VALUES}};
        status = lac_algorithm_start(h.a, slices, 2);
    }
    if (status == LAC_OK) {
        const size_t len = lac_algorithm_state_size(h.a);
        uint8_t *const state = malloc(len);
        status = state == NULL
                     ? lac_fail(LAC_ERR_NOMEM, "no memory for a state")
                     : resume(w, &h, &o, x, state, len);
        free(state);
    }
    close_handles(&h);
    return status;
}

static void every_inner_algorithm_resumes_bit_for_bit(void **state)
{
    (void)state;
    for (size_t i = 0; i < SUBJECTS; i++) {
        test_worker workers[WORLD];
        subject s = subjects[i];
        print_message("%s\n", s.spec);
        run_workers(WORLD, resume_subject, &s, workers);
        assert_all_ok(workers, WORLD);
    }
}

static lac_status cost_status(const subject *s, lac_cost *out)
{
    handles h = {0};
    lac_algorithm_options o = options_for(s->spec, s->compressor);
    assert_ok(open_parts(&h, &o, "ring", WORLD, tensors, 2));
    const lac_status status = lac_algorithm_cost(&o, out);
    close_handles(&h);
    return status;
}

// The memory is that of the inner algorithm, of two vectors, and of a third
// that the inner algorithm works on.
static void the_cost_is_that_of_the_inner_algorithm(void **state)
{
    (void)state;
    static const subject pairs[][2] = {
        {{"outer", NULL}, {"allreduce", NULL}},
        {{"outer:inner=(error-feedback)", "sign"}, {"error-feedback", "sign"}},
        {{"outer:inner=(choco:gamma=0.3)", "sign"},
         {"choco:gamma=0.3", "sign"}},
    };
    for (size_t i = 0; i < 3; i++) {
        lac_cost outer, inner;
        assert_ok(cost_status(&pairs[i][0], &outer));
        assert_ok(cost_status(&pairs[i][1], &inner));
        assert_true(outer.payload_bytes == inner.payload_bytes);
        assert_true(outer.messages == inner.messages);
        assert_true(outer.phases == inner.phases);
        assert_int_equal(outer.family, inner.family);
        assert_int_equal(outer.flags, LAC_COST_LOCAL_STEPS);
        assert_int_equal(
            inner.flags,
            inner.family == LAC_FAMILY_MODEL ? LAC_COST_LOCAL_STEPS : 0);
        assert_true(
            outer.memory_bytes >=
            inner.memory_bytes + 3 * (VALUES + ROWS) * sizeof(float));
    }
}

static void inner_algorithms_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct {
        subject subject;
        lac_status status;
        const char *message;
    } cases[] = {
        {{"outer:inner=(dcd)", "natural"},
         LAC_ERR_INVALID,
         "outer: inner is dcd, whose state follows a model that only its own "
         "rounds change, expected another algorithm"},
        {{"outer:inner=(outer)", NULL},
         LAC_ERR_INVALID,
         "outer: inner is outer, whose state follows a model that only its own "
         "rounds change, expected another algorithm"},
        {{"outer:inner=(choco)", NULL},
         LAC_ERR_INVALID,
         "choco: a compressor is needed, such as sign"},
        {{"outer", "sign"},
         LAC_ERR_INVALID,
         "outer: compressor sign was given, but its inner algorithm allreduce "
         "takes none, expected one that does, such as "
         "outer:inner=(error-feedback)"},
        {{"outer:inner=(dpsgd:rate=0.5)", "sign"},
         LAC_ERR_INVALID,
         "outer: compressor sign was given, but its inner algorithm dpsgd "
         "takes none, expected one that does, such as outer:inner=(choco)"},
        {{"outer:momentum=1", NULL},
         LAC_ERR_INVALID,
         "outer: momentum is 1, expected less"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        lac_cost cost;
        assert_fails(
            cost_status(&cases[i].subject, &cost), cases[i].status,
            cases[i].message);
    }
    lac_cost cost;
    const subject unknown = {"outer:inner=(gossip)", NULL};
    assert_status(cost_status(&unknown, &cost), LAC_ERR_NOTFOUND);
}

static lac_status expect_gamma(test_worker *w, lac_algorithm *a)
{
    (void)w;
    EXPECT(lac_algorithm_gamma(a) == 0.25);
    EXPECT(lac_algorithm_takes_update(a));
    EXPECT(lac_algorithm_family(a) == LAC_FAMILY_MODEL);
    return LAC_OK;
}

static lac_status query_gamma(test_worker *w)
{
    return with_algorithm(
        w, options_for("outer:inner=(choco:gamma=0.25)", "sign"), "ring",
        tensors, 2, expect_gamma);
}

static void gamma_is_that_of_the_inner_algorithm(void **state)
{
    (void)state;
    test_worker workers[WORLD];
    run_workers(WORLD, query_gamma, NULL, workers);
    assert_all_ok(workers, WORLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_inner_algorithm_resumes_bit_for_bit),
        cmocka_unit_test(the_cost_is_that_of_the_inner_algorithm),
        cmocka_unit_test(inner_algorithms_that_do_not_fit_are_refused),
        cmocka_unit_test(gamma_is_that_of_the_inner_algorithm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
