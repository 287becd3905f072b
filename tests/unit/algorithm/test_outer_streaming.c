// SPDX-License-Identifier: MIT
// outer with a delay and an alpha, on the quadratics of test_outer.c: worker i
// has the minimum b_i and the factor s_i = 1 - eta a_i in a local step. A round
// begins after H - tau local steps and ends after H.
#include "workers.h"

#include <math.h>
#include <xxhash.h>

#include "base/bytes.h"

enum { WORLD = 4, ROWS = 6, COLS = 5, BIAS = 7, VALUES = ROWS * COLS + BIAS };

// A run: its spec, and the local steps before and after the exchange.
typedef struct stream {
    const char *spec;
    const char *compressor;
    uint32_t before, after;
    uint32_t rounds;
    bool apart;  // begin and end, not mix
    bool resume; // in a new handle between begin and end of every round
    float x[WORLD][VALUES];
} stream;

static double factor(uint32_t rank, size_t i)
{
    const double a = 0.1 + 0.9 * (double)((i * 7 + rank * 5) % 24) / 23.0;
    return 1 - 0.1 * a;
}

static double minimum(uint32_t rank, size_t i)
{
    return cos(1.0 + (double)rank + 3.0 * (double)i);
}

// Local steps in doubles: x is rounded once.
static void descend(float *x, uint32_t rank, uint32_t steps)
{
    for (size_t i = 0; i < VALUES && steps > 0; i++) {
        const double b = minimum(rank, i);
        x[i] = (float)(b + ((double)x[i] - b) * pow(factor(rank, i), steps));
    }
}

static const lac_tensor tensors[] = {
    {.name = "w", .shape = {ROWS, COLS}}, {.name = "b", .shape = {BIAS, 1}}};

static void make_slices(float *x, lac_slice slices_out[2])
{
    float *const b = x + (size_t)ROWS * COLS;
    slices_out[0] = (lac_slice){0, LAC_F32, x, x};
    slices_out[1] = (lac_slice){1, LAC_F32, b, b};
}

// Replaces the handle by a new one that loads the state of the first.
static lac_status continue_elsewhere(
    handles *h, const lac_algorithm_options *o, uint32_t round)
{
    const size_t len = lac_algorithm_state_size(h->a);
    uint8_t *const state = malloc(len);
    lac_algorithm *fresh = NULL;
    lac_status status = state == NULL
                            ? lac_fail(LAC_ERR_NOMEM, "no memory for a state")
                            : lac_algorithm_save(h->a, state, len);
    if (status == LAC_OK) {
        status = lac_algorithm_open(&fresh, o);
    }
    if (status == LAC_OK) {
        status = lac_algorithm_load(fresh, state, len);
    }
    free(state);
    lac_algorithm_close(h->retired);
    h->retired = h->a;
    h->a = fresh;
    LAC_TRY(status);
    EXPECT(lac_algorithm_begun(fresh, 0) && lac_algorithm_begun(fresh, 1));
    EXPECT(lac_algorithm_round(fresh, 0) == round);
    return LAC_OK;
}

static lac_status stream_rounds(
    handles *h, const lac_algorithm_options *o, stream *s, uint32_t rank)
{
    float *const x = s->x[rank];
    lac_slice slices[2];
    make_slices(x, slices);
    LAC_TRY(lac_algorithm_start(h->a, slices, 2));
    for (uint32_t round = 0; round < s->rounds; round++) {
        descend(x, rank, s->before);
        if (!s->apart) {
            LAC_TRY(lac_algorithm_mix(h->a, round, slices, NULL, 2));
            continue;
        }
        LAC_TRY(lac_algorithm_begin(h->a, round, slices, 2));
        descend(x, rank, s->after);
        if (s->resume) {
            LAC_TRY(continue_elsewhere(h, o, round));
        }
        LAC_TRY(lac_algorithm_end(h->a, round, slices, NULL, 2));
        EXPECT(!lac_algorithm_begun(h->a, 0));
    }
    return LAC_OK;
}

static lac_status stream_body(test_worker *w)
{
    stream *const s = w->context;
    handles h = {0};
    lac_algorithm_options o = options_for(s->spec, s->compressor);
    lac_status status = open_parts(&h, &o, "ring", WORLD, tensors, 2);
    o.transport = w->transport;
    if (status == LAC_OK) {
        status = lac_algorithm_open(&h.a, &o);
    }
    if (status == LAC_OK) {
        status = stream_rounds(&h, &o, s, w->rank);
    }
    close_handles(&h);
    return status;
}

static void run_stream(stream *s)
{
    test_worker workers[WORLD];
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        for (size_t i = 0; i < VALUES; i++) {
            s->x[rank][i] = (float)sin((double)i); // equal on all workers
        }
    }
    run_workers(WORLD, stream_body, s, workers);
    assert_all_ok(workers, WORLD);
}

// With b = b_i and s = s_i, x after a round satisfies
// x - b = (1 - alpha)(phi - b) + alpha s^H (x - b), and D = 0 where the mean of
// the x that are sent is phi:
//
//     sum_i w_i (b_i - phi) = 0
//     w_i = 1 - (1 - alpha) s_i^(H - tau) / (1 - alpha s_i^H)
//
// whatever the outer step. Without a delay w_i is (1 - s^H) / (1 - alpha s^H),
// and with alpha = 0 the steps of the delay have no effect.
static double weight_of(const stream *s, double alpha, uint32_t rank, size_t i)
{
    const double f = factor(rank, i);
    return 1 - (1 - alpha) * pow(f, s->before) /
                   (1 - alpha * pow(f, s->before + s->after));
}

// x is rounded at most four times a round, by 2^-24 of values below 1 each, and
// keeps at most alpha of these errors: D is off by 4 / (1 - alpha). The anchor
// stops moving where lr D / (1 - momentum) is below half a unit in its last
// place; the settings have (1 - momentum) / lr at most 1. D is w times the
// error of phi. The error of x after a round is at most that of phi and its own
// four roundings.
static void assert_fixed_point(const stream *s, double alpha)
{
    for (size_t i = 0; i < VALUES; i++) {
        double sum = 0, weights = 0, least = 1;
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            const double w = weight_of(s, alpha, rank, i);
            sum += w * minimum(rank, i);
            weights += w;
            least = fmin(least, w);
        }
        const double phi = sum / weights;
        const double bound = 0x1p-24 * (4 / (1 - alpha) + 1) * (1 + 1 / least);
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            const double b = minimum(rank, i);
            const double all = pow(factor(rank, i), s->before + s->after);
            const double x = b + (1 - alpha) * (phi - b) / (1 - alpha * all);
            assert_true(fabs((double)s->x[rank][i] - x) < bound);
        }
    }
}

static void the_fixed_point_has_a_closed_form(void **state)
{
    (void)state;
    static const struct {
        const char *settings;
        double alpha;
        uint32_t before, after;
    } cases[] = {
        {"alpha=0.5", 0.5, 8, 0},
        {"alpha=0.25,lr=1,momentum=0", 0.25, 3, 0},
        {"delay=3", 0, 5, 3},
        {"delay=3,alpha=0.5", 0.5, 5, 3},
        {"delay=1,alpha=0.75,nesterov=no", 0.75, 15, 1},
        {"delay=7,alpha=0.5,lr=1,momentum=0", 0.5, 1, 7},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        char spec[96];
        (void)snprintf(spec, sizeof(spec), "outer:%s", cases[k].settings);
        stream s = {
            .spec = spec,
            .before = cases[k].before,
            .after = cases[k].after,
            .rounds = 2500,
            .apart = cases[k].after > 0,
        };
        print_message("%s\n", spec);
        run_stream(&s);
        assert_fixed_point(&s, cases[k].alpha);
    }
}

static void assert_same_values(const stream *a, const stream *b)
{
    assert_memory_equal(a->x, b->x, sizeof(a->x));
}

// Streaming with one fragment, no delay and an alpha of 0 is plain outer, and
// so are settings of a delay without steps in it, except for the update, which
// there is none of here.
static void streaming_without_a_delay_is_plain(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "outer:fragments=1,delay=0,alpha=0", "outer:fragments=2",
        "outer:delay=5"};
    stream plain = {.spec = "outer", .before = 4, .rounds = 20};
    run_stream(&plain);
    for (size_t k = 0; k < 3; k++) {
        for (int apart = 0; apart < 2; apart++) {
            stream s = plain;
            s.spec = specs[k];
            s.apart = apart;
            run_stream(&s);
            assert_same_values(&plain, &s);
        }
    }
}

// With alpha = 0 nothing remains of the steps between begin and end.
static void without_alpha_the_steps_of_a_delay_are_lost(void **state)
{
    (void)state;
    stream plain = {.spec = "outer", .before = 5, .rounds = 20};
    stream late = plain;
    late.spec = "outer:delay=3";
    late.after = 3;
    late.apart = true;
    run_stream(&plain);
    run_stream(&late);
    assert_same_values(&plain, &late);
    late.spec = "outer:delay=3,alpha=0.5";
    run_stream(&late);
    assert_memory_not_equal(plain.x, late.x, sizeof(plain.x));
}

// In the middle of every delay, with the state of inner algorithms of both
// families.
static void a_round_is_resumed_in_the_middle_of_a_delay(void **state)
{
    (void)state;
    static const struct {
        const char *inner;
        const char *compressor;
    } subjects[] = {
        {"allreduce", NULL},
        {"powersgd:rank=2", NULL},
        {"error-feedback", "top-k:0.2"},
        {"compressed", "natural"},
        {"dpsgd", NULL},
        {"choco:gamma=0.3", "sign"},
        {"powergossip", NULL},
    };
    for (size_t k = 0; k < sizeof(subjects) / sizeof(subjects[0]); k++) {
        char spec[96];
        (void)snprintf(
            spec, sizeof(spec),
            "outer:inner=(%s),momentum=0.3,delay=2,alpha=%s", subjects[k].inner,
            "0.5");
        stream whole = {
            .spec = spec,
            .compressor = subjects[k].compressor,
            .before = 3,
            .after = 2,
            .rounds = 5,
            .apart = true,
        };
        stream resumed = whole;
        resumed.resume = true;
        print_message("%s\n", spec);
        run_stream(&whole);
        run_stream(&resumed);
        assert_same_values(&whole, &resumed);
    }
}

// One worker in one handle with a held round, for tests of states and of end.
typedef struct held {
    handles h;
    lac_slice slices[2];
    float x[VALUES];
    uint8_t *state;
    size_t len;
} held;

static lac_status hold_round(held *t, lac_transport *transport)
{
    lac_algorithm_options o = options_for("outer:delay=2,alpha=0.25", NULL);
    LAC_TRY(open_parts(&t->h, &o, "complete", 1, tensors, 2));
    o.transport = transport;
    make_slices(t->x, t->slices);
    LAC_TRY(lac_algorithm_open(&t->h.a, &o));
    LAC_TRY(lac_algorithm_start(t->h.a, t->slices, 2));
    descend(t->x, 0, 3);
    LAC_TRY(lac_algorithm_begin(t->h.a, 0, t->slices, 2));
    t->len = lac_algorithm_state_size(t->h.a);
    t->state = malloc(t->len);
    EXPECT(t->state != NULL);
    return lac_algorithm_save(t->h.a, t->state, t->len);
}

static void run_alone(worker_body *body)
{
    test_worker worker;
    run_workers(1, body, NULL, &worker);
    assert_all_ok(&worker, 1);
}

static void free_held(held *t)
{
    free(t->state);
    close_handles(&t->h);
}

// x = phi + alpha (y - phi) + update. The outer step of the defaults from phi0
// with D = phi0 - x0 is lr (1 + momentum) D. Five roundings of values below 4.
static lac_status end_with_update(held *t)
{
    float update[VALUES], start[VALUES], sent[VALUES];
    memcpy(sent, t->x, sizeof(sent));
    for (size_t i = 0; i < VALUES; i++) {
        start[i] = (float)sin((double)i);
        update[i] = (float)(0.1 * cos((double)i));
    }
    const float *const updates[] = {update, update + (size_t)ROWS * COLS};
    descend(t->x, 0, 2);
    float y[VALUES];
    memcpy(y, t->x, sizeof(y));
    LAC_TRY(lac_algorithm_end(t->h.a, 0, t->slices, updates, 2));
    for (size_t i = 0; i < VALUES; i++) {
        const double d = (double)start[i] - (double)sent[i];
        const double phi = (double)start[i] - 0.7 * 1.9 * d;
        const double x = phi + 0.25 * ((double)y[i] - phi) + (double)update[i];
        EXPECT(fabs((double)t->x[i] - x) < 5 * 4 * 0x1p-24);
    }
    return LAC_OK;
}

static lac_status end_late(test_worker *w)
{
    held t = {0};
    for (size_t i = 0; i < VALUES; i++) {
        t.x[i] = (float)sin((double)i);
    }
    lac_status status = hold_round(&t, w->transport);
    if (status == LAC_OK) {
        status = end_with_update(&t);
    }
    free_held(&t);
    return status;
}

static void an_end_keeps_alpha_of_the_local_model_and_adds_the_update(
    void **state)
{
    (void)state;
    run_alone(end_late);
}

// The place of the first byte after `name` in the outer part of the state.
static size_t place_after(const held *t, const char *name)
{
    const size_t len = strlen(name);
    size_t at = 0;
    while (at + len < t->len && memcmp(t->state + at, name, len) != 0) {
        at++;
    }
    return at + len;
}

static lac_status refuse_state(held *t, lac_status expected, const char *why)
{
    laci_put_u64(t->state + t->len - 8, XXH3_64bits(t->state, t->len - 8));
    const lac_status status = lac_algorithm_load(t->h.a, t->state, t->len);
    if (status != expected || strstr(lac_error_message(), why) == NULL) {
        return lac_fail(
            LAC_ERR_SPACE, "%d, %.200s, not: %s", status, lac_error_message(),
            why);
    }
    return LAC_OK;
}

// After the name of a tensor: rows and columns, then the round.
static lac_status alter_states(held *t)
{
    const size_t spec = place_after(t, "outer:delay=2,alpha=0.25");
    const size_t round = spec + 4 + 8 + 8 + 8 + 4 + 4 + 1 + 8 + 8;
    const size_t arrived = place_after(t, "arrived") + 4 + 8;
    EXPECT(t->state[round] == 0 && t->state[round + 7] == 0x80);
    t->state[round + 7] = 0;
    LAC_TRY(refuse_state(
        t, LAC_ERR_CORRUPT,
        "state: round of w in the inner algorithm allreduce is 1, expected 0"));
    t->state[round + 7] = 0x80;
    t->state[round] = 1;
    LAC_TRY(refuse_state(
        t, LAC_ERR_CORRUPT,
        "state: round of w in the inner algorithm allreduce is 1, expected 2"));
    t->state[round] = 0;
    float value;
    memcpy(&value, t->state + arrived, sizeof(value));
    const float bad = INFINITY;
    memcpy(t->state + arrived, &bad, sizeof(bad));
    LAC_TRY(refuse_state(t, LAC_ERR_CORRUPT, "arrived"));
    memcpy(t->state + arrived, &value, sizeof(value));
    laci_put_u64(t->state + t->len - 8, XXH3_64bits(t->state, t->len - 8));
    LAC_TRY(lac_algorithm_load(t->h.a, t->state, t->len));
    return lac_algorithm_end(t->h.a, 0, t->slices, NULL, 2);
}

static lac_status alter_held(test_worker *w)
{
    held t = {0};
    lac_status status = hold_round(&t, w->transport);
    if (status == LAC_OK) {
        status = alter_states(&t);
    }
    free_held(&t);
    return status;
}

static void altered_states_of_a_delay_are_refused(void **state)
{
    (void)state;
    run_alone(alter_held);
}

static void settings_out_of_range_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        const char *message;
    } cases[] = {
        {"outer:alpha=1",
         "outer: alpha is 1, expected less: the workers would never use the "
         "result of an exchange"},
        {"outer:alpha=-0.5",
         "outer: alpha is \"-0.5\", expected a number from 0 to 1"},
        {"outer:fragments=0",
         "outer: fragments is \"0\", expected a whole number from 1 to 1024"},
        {"outer:fragments=1025", "outer: fragments is \"1025\", expected a "
                                 "whole number from 1 to 1024"},
        {"outer:delay=1000001", "outer: delay is \"1000001\", expected a whole "
                                "number from 0 to 1000000"},
    };
    handles h = {0};
    lac_algorithm_options o = lac_algorithm_options_default();
    assert_ok(open_parts(&h, &o, "ring", WORLD, tensors, 2));
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        lac_cost cost;
        o.spec = cases[k].spec;
        assert_fails(
            lac_algorithm_cost(&o, &cost), LAC_ERR_INVALID, cases[k].message);
    }
    close_handles(&h);
}

static void costs_have_fragments_and_delay(void **state)
{
    (void)state;
    handles h = {0};
    lac_cost plain, late;
    lac_algorithm_options o = options_for("outer", NULL);
    assert_ok(open_parts(&h, &o, "ring", WORLD, tensors, 2));
    assert_ok(lac_algorithm_cost(&o, &plain));
    o.spec = "outer:fragments=2,delay=3";
    assert_ok(lac_algorithm_cost(&o, &late));
    assert_int_equal(plain.fragments, 1);
    assert_int_equal(plain.delay, 0);
    assert_int_equal(late.fragments, 2);
    assert_int_equal(late.delay, 3);
    assert_true(late.payload_bytes == plain.payload_bytes);
    // The field that is in flight, each tensor at a multiple of 64 bytes.
    assert_int_equal(
        late.memory_bytes - plain.memory_bytes, (32 + 16) * sizeof(float));
    close_handles(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fixed_point_has_a_closed_form),
        cmocka_unit_test(streaming_without_a_delay_is_plain),
        cmocka_unit_test(without_alpha_the_steps_of_a_delay_are_lost),
        cmocka_unit_test(a_round_is_resumed_in_the_middle_of_a_delay),
        cmocka_unit_test(
            an_end_keeps_alpha_of_the_local_model_and_adds_the_update),
        cmocka_unit_test(altered_states_of_a_delay_are_refused),
        cmocka_unit_test(settings_out_of_range_are_refused),
        cmocka_unit_test(costs_have_fragments_and_delay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
