// SPDX-License-Identifier: MIT
// Options of programs that were built with an older library, and what a worker
// that asks for it learns about its waiting.
#include <laconic/algorithm.h>

#include "lac_test.h"
#include "workers.h"

enum { WORKERS = 2, VALUES = 10, FIRST_SIZE = 80 };

static const lac_tensor tensor = {.name = "x", .shape = {VALUES, 1}};

static lac_layout *open_layout(void)
{
    lac_layout *layout = NULL;
    assert_ok(lac_layout_open(&layout, &tensor, 1));
    return layout;
}

static void options_of_the_first_version_are_enough(void **state)
{
    (void)state;
    lac_layout *const layout = open_layout();
    lac_cost cost;
    // What follows the first version's struct is somebody else's memory.
    struct {
        lac_algorithm_options o;
    } room;
    memset(&room, 0xff, sizeof(room));
    lac_algorithm_options_init(&room.o, FIRST_SIZE);
    assert_int_equal(room.o.size, FIRST_SIZE);
    assert_int_equal(((unsigned char *)&room)[FIRST_SIZE], 0xff);
    room.o.layout = layout;
    assert_ok(lac_algorithm_cost(&room.o, &cost));
    assert_true(cost.payload_bytes == VALUES * sizeof(float));
    lac_layout_close(layout);
}

static void options_that_were_not_filled_are_refused(void **state)
{
    (void)state;
    lac_cost cost;
    const lac_algorithm_options o = {.spec = "allreduce"};
    assert_status(lac_algorithm_cost(&o, &cost), LAC_ERR_INVALID);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    lac_layout *const layout = open_layout();
    lac_cost cost;
    lac_algorithm *a = (void *)layout;
    assert_fails(
        lac_algorithm_cost(NULL, &cost), LAC_ERR_INVALID,
        "algorithm: the options are NULL");
    assert_fails(
        lac_algorithm_open(&a, NULL), LAC_ERR_INVALID,
        "algorithm: the options are NULL");
    assert_null(a);
    lac_algorithm_options o = lac_algorithm_options_default();
    assert_string_equal(o.spec, "allreduce");
    o.layout = layout;
    o.spec = NULL;
    assert_fails(
        lac_algorithm_cost(&o, &cost), LAC_ERR_INVALID,
        "algorithm: the spec is NULL");
    o.spec = "allreduce";
    o.nonfinite = (lac_nonfinite)7;
    assert_fails(
        lac_algorithm_cost(&o, &cost), LAC_ERR_INVALID,
        "algorithm: nonfinite is 7, expected 0 to 3");
    o.nonfinite = LAC_NONFINITE_RAW;
    assert_ok(lac_algorithm_cost(&o, &cost));
    lac_layout_close(layout);
}

// Opens an algorithm without a compressor, and then with the one that the
// message recommends, which must not cause a warning.
static size_t follow_advice(const char *spec, lac_algorithm_options *o)
{
    lac_algorithm *a = NULL;
    o->spec = spec;
    o->compressor = NULL;
    if (lac_algorithm_open(&a, o) == LAC_OK) {
        lac_algorithm_close(a);
        return 0;
    }
    char message[256];
    (void)snprintf(message, sizeof(message), "%s", lac_error_message());
    static const char before[] = ": a compressor is needed, such as ";
    const char *const advice = strstr(message, before);
    assert_non_null(advice);
    o->compressor = advice + sizeof(before) - 1;
    assert_ok(lac_algorithm_open(&a, o));
    assert_null(lac_algorithm_warning(a));
    lac_algorithm_close(a);
    return 1;
}

static void a_missing_compressor_is_recommended_that_fits(void **state)
{
    (void)state;
    lac_layout *const layout = open_layout();
    lac_hub *hub = NULL;
    lac_transport *transport = NULL;
    lac_topology *topology = NULL;
    assert_ok(lac_hub_open(&hub, 1));
    assert_ok(lac_transport_join(&transport, "local", hub, 0, 1));
    assert_ok(lac_topology_open(&topology, "ring", 1, 1));
    lac_algorithm_options o = lac_algorithm_options_default();
    o.layout = layout;
    o.topology = topology;
    o.transport = transport;
    size_t count = 0, advised = 0;
    const lac_plugin *const *const algorithms = lac_algorithms(&count);
    for (size_t i = 0; i < count; i++) {
        advised += follow_advice(algorithms[i]->name, &o);
    }
    assert_true(advised > 0 && advised < count);
    lac_transport_leave(transport);
    lac_hub_close(hub);
    lac_topology_close(topology);
    lac_layout_close(layout);
}

// in and out are one array or two; an update is never out.
static lac_status mix_overlapping(test_worker *w, lac_algorithm *a)
{
    (void)w;
    float x[2 * VALUES] = {0};
    const lac_slice good = {0, LAC_F32, x, x + VALUES};
    const lac_slice bad[] = {
        {0, LAC_F32, x, x + 1},
        {0, LAC_F32, x + VALUES, x + 1},
    };
    const float *const updates[] = {x + VALUES + 1};
    LAC_TRY(lac_algorithm_start(a, &good, 1));
    for (size_t i = 0; i < 2; i++) {
        EXPECT(lac_algorithm_mix(a, 0, &bad[i], NULL, 1) == LAC_ERR_INVALID);
        EXPECT(strstr(lac_error_message(), "in and out of x overlap in part"));
    }
    EXPECT(lac_algorithm_mix(a, 0, &good, updates, 1) == LAC_ERR_INVALID);
    EXPECT(strstr(lac_error_message(), "the update of x overlaps its out"));
    return lac_algorithm_mix(a, 0, &good, NULL, 1);
}

static lac_status overlap(test_worker *w)
{
    return with_algorithm(
        w, options_for("dpsgd", NULL), "complete", &tensor, 1, mix_overlapping);
}

static void arrays_that_overlap_in_part_are_refused(void **state)
{
    (void)state;
    test_worker workers[1];
    run_workers(1, overlap, NULL, workers);
    assert_all_ok(workers, 1);
}

static lac_status reduce_once(test_worker *w, lac_algorithm *a)
{
    double *const waited = w->context;
    float x[VALUES] = {0};
    const lac_slice slice = {0, LAC_F32, x, x};
    LAC_TRY(lac_algorithm_reduce(a, 0, &slice, 1));
    waited[w->rank] = lac_algorithm_waited(a);
    return LAC_OK;
}

static lac_status reduce(test_worker *w)
{
    const double *const waited = w->context;
    lac_algorithm_options o = lac_algorithm_options_default();
    o.timing = waited[WORKERS] > 0;
    return with_algorithm(w, o, NULL, &tensor, 1, reduce_once);
}

static void waiting_is_measured_where_that_was_asked_for(void **state)
{
    (void)state;
    for (int timing = 0; timing < 2; timing++) {
        test_worker workers[WORKERS];
        double waited[WORKERS + 1] = {-1, -1, timing};
        run_workers(WORKERS, reduce, waited, workers);
        for (int k = 0; k < WORKERS; k++) {
            assert_ok(workers[k].status);
            assert_true(timing == 1 ? waited[k] > 0 : waited[k] == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_of_the_first_version_are_enough),
        cmocka_unit_test(options_that_were_not_filled_are_refused),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(a_missing_compressor_is_recommended_that_fits),
        cmocka_unit_test(arrays_that_overlap_in_part_are_refused),
        cmocka_unit_test(waiting_is_measured_where_that_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
