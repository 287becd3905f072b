// SPDX-License-Identifier: MIT
// Saving and loading, beyond what the conformance suite shows: capacities, a
// state that must not be saved, loading into a handle that has run, and layouts
// of many tensors.
#include "workers.h"

#include <math.h>

#include "algorithm/framework/handle.h"

enum { MANY = 2000, VALUES = 8 };

// Counts how often a tensor of the layout is looked up.
static _Atomic size_t lookups;

const lac_tensor *__real_lac_layout_tensor(const lac_layout *l, size_t i);
const lac_tensor *__wrap_lac_layout_tensor(const lac_layout *l, size_t i);

const lac_tensor *__wrap_lac_layout_tensor(const lac_layout *l, size_t i)
{
    lookups++;
    return __real_lac_layout_tensor(l, i);
}

// One worker alone, with its handle and values.
typedef struct solo {
    lac_hub *hub;
    lac_transport *transport;
    lac_layout *layout;
    lac_topology *topology;
    lac_algorithm *a;
    float x[VALUES];
    lac_slice slice;
} solo;

static void solo_open(
    solo *s, const char *spec, const char *compressor,
    const lac_tensor *tensors, size_t count)
{
    assert_ok(lac_hub_open(&s->hub, 1));
    assert_ok(lac_transport_join(&s->transport, "local", s->hub, 0, 1));
    assert_ok(lac_layout_open(&s->layout, tensors, count));
    assert_ok(lac_topology_open(&s->topology, "complete", 1, 1));
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = spec;
    o.compressor = compressor;
    o.layout = s->layout;
    o.topology = s->topology;
    o.transport = s->transport;
    assert_ok(lac_algorithm_open(&s->a, &o));
    fill_normal(s->x, VALUES, 1);
    s->slice = (lac_slice){0, LAC_F32, s->x, s->x};
}

static void solo_close(solo *s)
{
    lac_algorithm_close(s->a);
    lac_transport_leave(s->transport);
    lac_topology_close(s->topology);
    lac_layout_close(s->layout);
    lac_hub_close(s->hub);
}

static const lac_tensor one[] = {{.name = "x", .shape = {VALUES, 1}}};

static void a_buffer_that_is_too_small_is_refused(void **state)
{
    (void)state;
    solo s;
    solo_open(&s, "choco:gamma=0.5", "sign", one, 1);
    assert_ok(lac_algorithm_start(s.a, &s.slice, 1));
    uint8_t bytes[1024];
    memset(bytes, 0x5a, sizeof(bytes));
    const size_t len = lac_algorithm_state_size(s.a);
    assert_true(len < sizeof(bytes));
    assert_status(lac_algorithm_save(s.a, bytes, len - 1), LAC_ERR_SPACE);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        assert_int_equal(bytes[i], 0x5a);
    }
    assert_ok(lac_algorithm_save(s.a, bytes, len));
    assert_int_equal(bytes[len], 0x5a);
    solo_close(&s);
}

static void a_state_that_load_refuses_is_not_saved(void **state)
{
    (void)state;
    solo s;
    uint8_t bytes[1024];
    solo_open(&s, "choco", "sign", one, 1);
    assert_fails(
        lac_algorithm_save(s.a, bytes, sizeof(bytes)), LAC_ERR_INVALID,
        "state: choco has not started");
    assert_ok(lac_algorithm_start(s.a, &s.slice, 1));
    assert_ok(lac_algorithm_begin(s.a, 0, &s.slice, 1));
    assert_fails(
        lac_algorithm_save(s.a, bytes, sizeof(bytes)), LAC_ERR_INVALID,
        "state: round 0 of x was begun and not ended, expected to save "
        "between rounds");
    assert_ok(lac_algorithm_end(s.a, 0, &s.slice, NULL, 1));
    laci_fields_of(&s.a->fields, 0)[0].values[3] = INFINITY;
    assert_fails(
        lac_algorithm_save(s.a, bytes, sizeof(bytes)), LAC_ERR_INVALID,
        "state: x has a value in field xhat that is not finite");
    solo_close(&s);
}

// What the saved run did next, the loaded one does too, whatever it did before.
static void a_load_replaces_the_state_of_a_handle_that_has_run(void **state)
{
    (void)state;
    static const char *const specs[] = {"choco:gamma=0.5", "choco", "ecd"};
    for (size_t i = 0; i < 3; i++) {
        solo s, t;
        uint8_t bytes[1024], again[1024];
        solo_open(&s, specs[i], "sign", one, 1);
        solo_open(&t, specs[i], "sign", one, 1);
        fill_normal(t.x, VALUES, 2);
        assert_ok(lac_algorithm_start(s.a, &s.slice, 1));
        assert_ok(lac_algorithm_start(t.a, &t.slice, 1));
        for (uint64_t round = 0; round < 5; round++) {
            assert_ok(lac_algorithm_mix(t.a, round, &t.slice, NULL, 1));
        }
        assert_ok(lac_algorithm_mix(s.a, 0, &s.slice, NULL, 1));
        const size_t len = lac_algorithm_state_size(s.a);
        assert_ok(lac_algorithm_save(s.a, bytes, sizeof(bytes)));
        assert_ok(lac_algorithm_load(t.a, bytes, len));
        memcpy(t.x, s.x, sizeof(t.x));
        for (uint64_t round = 1; round < 4; round++) {
            assert_ok(lac_algorithm_mix(s.a, round, &s.slice, NULL, 1));
            assert_ok(lac_algorithm_mix(t.a, round, &t.slice, NULL, 1));
        }
        assert_memory_equal(s.x, t.x, sizeof(s.x));
        assert_ok(lac_algorithm_save(s.a, bytes, sizeof(bytes)));
        assert_ok(lac_algorithm_save(t.a, again, sizeof(again)));
        assert_memory_equal(bytes, again, len);
        solo_close(&s);
        solo_close(&t);
    }
}

static void no_load_while_a_round_is_begun(void **state)
{
    (void)state;
    static const char *const specs[] = {"choco:gamma=0.5", "naive"};
    for (size_t i = 0; i < 2; i++) {
        solo s;
        uint8_t bytes[1024];
        char expected[256];
        solo_open(&s, specs[i], "sign", one, 1);
        assert_ok(lac_algorithm_start(s.a, &s.slice, 1));
        const size_t len = lac_algorithm_state_size(s.a);
        assert_ok(lac_algorithm_save(s.a, bytes, sizeof(bytes)));
        assert_ok(lac_algorithm_begin(s.a, 0, &s.slice, 1));
        (void)snprintf(
            expected, sizeof(expected),
            "%s: round 0 of x was begun and not ended, expected to load "
            "between rounds",
            i == 0 ? "choco" : "naive");
        assert_fails(
            lac_algorithm_load(s.a, bytes, len), LAC_ERR_INVALID, expected);
        assert_ok(lac_algorithm_end(s.a, 0, &s.slice, NULL, 1));
        assert_ok(lac_algorithm_load(s.a, bytes, len));
        solo_close(&s);
    }
}

// Refused whatever the bytes are, and before they are read.
static void flags_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    solo gradient, model;
    uint8_t bytes[1024];
    solo_open(&gradient, "signum", NULL, one, 1);
    solo_open(&model, "choco:gamma=0.5", "sign", one, 1);
    assert_ok(lac_algorithm_start(model.a, &model.slice, 1));
    const size_t len = lac_algorithm_state_size(model.a);
    assert_ok(lac_algorithm_save(model.a, bytes, sizeof(bytes)));
    for (unsigned flags = 2; flags != 0; flags <<= 1) {
        char expected[128];
        (void)snprintf(
            expected, sizeof(expected),
            "state: the flags of load are %#x, expected 0 or 0x1", flags);
        assert_fails(
            lac_algorithm_load_with(model.a, bytes, len, flags),
            LAC_ERR_INVALID, expected);
        assert_fails(
            lac_algorithm_load_with(gradient.a, NULL, 0, flags),
            LAC_ERR_INVALID, expected);
    }
    assert_fails(
        lac_algorithm_load_with(model.a, bytes, len, LAC_LOAD_OTHER_WORLD),
        LAC_ERR_INVALID,
        "choco: LAC_LOAD_OTHER_WORLD was given, but a model algorithm loads "
        "the state of its own worker only");
    assert_ok(lac_algorithm_load_with(model.a, bytes, len, 0));
    assert_ok(lac_algorithm_save(gradient.a, bytes, sizeof(bytes)));
    assert_ok(lac_algorithm_load_with(
        gradient.a, bytes, lac_algorithm_state_size(gradient.a),
        LAC_LOAD_OTHER_WORLD));
    solo_close(&gradient);
    solo_close(&model);
}

// A load looks each tensor up a fixed number of times, at its expected index. A
// layout of another order is found all the same.
static void loading_is_linear_in_tensors(void **state)
{
    (void)state;
    static lac_tensor tensors[MANY], reversed[MANY];
    static char names[MANY][8];
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "t%zu", i);
        tensors[i] = (lac_tensor){.name = names[i], .shape = {1, 1}};
        reversed[MANY - 1 - i] = tensors[i];
    }
    solo s, t;
    solo_open(&s, "powergossip", NULL, tensors, MANY);
    solo_open(&t, "powergossip", NULL, reversed, MANY);
    const size_t len = lac_algorithm_state_size(s.a);
    uint8_t *const bytes = malloc(len);
    assert_ok(lac_algorithm_save(s.a, bytes, len));
    lookups = 0;
    assert_ok(lac_algorithm_load(s.a, bytes, len));
    assert_true(lookups <= (size_t)20 * MANY);
    assert_ok(lac_algorithm_load(t.a, bytes, len));
    free(bytes);
    solo_close(&s);
    solo_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_that_is_too_small_is_refused),
        cmocka_unit_test(a_state_that_load_refuses_is_not_saved),
        cmocka_unit_test(a_load_replaces_the_state_of_a_handle_that_has_run),
        cmocka_unit_test(no_load_while_a_round_is_begun),
        cmocka_unit_test(flags_that_do_not_fit_are_refused),
        cmocka_unit_test(loading_is_linear_in_tensors),
    };
    return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
