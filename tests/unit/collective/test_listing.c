// SPDX-License-Identifier: MIT
// The lists of sums: what a sum of many sizes sends, in small worlds, in one
// piece after the other, in pieces that are sent ahead, and by the transport's
// all-reduce.
#define _POSIX_C_SOURCE 200809L
#include "groups.h"

#include "collective/listing.h"
#include "pieces.h"
#include "recorder.h"

enum { PIECE = 128 * 1024, LIST_MAX = 64 };

typedef struct sum_run {
    size_t n;
    bool streams;
} sum_run;

static void load_zeros(void *context, size_t at, size_t n, void *x_out)
{
    (void)context, (void)at;
    memset(x_out, 0, n * sizeof(float));
}

static void store_nothing(void *context, size_t at, size_t n, const void *sums)
{
    (void)context, (void)at, (void)n, (void)sums;
}

static lac_status sum_body(test_worker *w)
{
    const sum_run *const run = w->context;
    recording = true;
    if (run->streams) {
        float note = 0;
        const laci_number_stream stream = {
            &laci_number_f32, NULL, load_zeros, store_nothing};
        return laci_group_sum_stream(w->group, 3, 0, &stream, run->n, &note);
    }
    float *const x = calloc(run->n + 1, sizeof(*x));
    EXPECT(x != NULL);
    const lac_status status = laci_group_sum(w->group, 3, 0, x, run->n, 0);
    free(x);
    return status;
}

static laci_listing list_run(uint32_t world, lac_exchange *out)
{
    lac_transport *t;
    lac_hub *hub;
    laci_group_options options = default_options;
    assert_ok(lac_hub_open(&hub, 1));
    assert_ok(lac_transport_join(&t, "local", hub, 0, 1));
    options.transport = t;
    const laci_listing l = {
        .rules = laci_sum_rules_make(&options, world),
        .out = out,
        .cap = LIST_MAX,
    };
    lac_transport_leave(t);
    lac_hub_close(hub);
    return l;
}

static void compare_sum(uint32_t world, size_t n)
{
    lac_exchange list[LIST_MAX];
    laci_listing l = list_run(world, list);
    sum_run run = {n, laci_list_streams(&l, n)};
    uint64_t native = 0;
    if (run.streams) {
        laci_list_sum_stream(&l, n);
    } else {
        laci_list_sum(&l, n);
    }
    assert_true(l.count <= LIST_MAX);
    record_by_call = run.streams;
    begin_records();
    run_all(world, sum_body, &run);
    assert_recorded(list, l.count, 0, 3);
    for (size_t i = 0; i < l.count; i++) {
        const bool is_native = (list[i].flags & LAC_EXCHANGE_ALLREDUCE) != 0;
        native += is_native ? list[i].bytes : 0;
    }
    assert_int_equal(native_bytes, native);
}

static void compare_sums(void)
{
    static const size_t sizes[] = {0,      1,      4096,   4097,  50001,
                                   262144, 262145, 400000, 900001};
    for (size_t i = 0; i < WORLD_COUNT; i++) {
        for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
            compare_sum(worlds[i], sizes[k]);
        }
    }
}

static void test_pieces_one_after_the_other(void **state)
{
    (void)state;
    asked = 0;
    record_native = false;
    compare_sums();
}

static void test_pieces_that_are_sent_ahead(void **state)
{
    (void)state;
    asked = PIECE;
    record_native = false;
    compare_sums();
}

static void test_sums_of_the_transport(void **state)
{
    (void)state;
    asked = 0;
    record_native = true;
    compare_sums();
}

// The rules without a transport are those of the one that is named.
static void test_a_transport_may_be_named(void **state)
{
    (void)state;
    static const lac_tensor tensor = {.name = "x", .shape = {1000, 1000}};
    lac_exchange list[LIST_MAX];
    uint32_t period;
    size_t count;
    lac_layout *layout;
    assert_ok(lac_layout_open(&layout, &tensor, 1));
    lac_algorithm_options o = lac_algorithm_options_default();
    o.layout = layout;
    o.workers = 4;
    assert_ok(lac_algorithm_exchanges(&o, list, LIST_MAX, &count, &period));
    assert_int_equal(count, 4); // three whole pieces, and the rest
    assert_int_equal(list[0].times, 3);
    assert_int_equal(list[0].flags, 0);
    o.transport_name = "mpi";
    assert_ok(lac_algorithm_exchanges(&o, list, LIST_MAX, &count, &period));
    assert_int_equal(count, 2);
    assert_int_equal(list[1].flags, LAC_EXCHANGE_ALLREDUCE);
    assert_int_equal(list[1].bytes, 4 * (1000 * 1000 + 1));
    o.transport_name = "tcp";
    assert_ok(lac_algorithm_exchanges(&o, list, 1, &count, &period));
    assert_true(count > 1);
    assert_int_equal(list[0].flags, LAC_EXCHANGE_AHEAD);
    o.transport_name = "pigeon";
    assert_fails(
        lac_algorithm_exchanges(&o, list, LIST_MAX, &count, &period),
        LAC_ERR_NOTFOUND,
        "no transport is named \"pigeon\"; `laconic list` shows those there "
        "are");
    lac_layout_close(layout);
}

static void test_the_number_of_workers_must_agree(void **state)
{
    (void)state;
    static const lac_tensor tensor = {.name = "x", .shape = {3, 1}};
    lac_exchange list[LIST_MAX];
    uint32_t period;
    size_t count;
    lac_layout *layout;
    lac_topology *ring;
    assert_ok(lac_layout_open(&layout, &tensor, 1));
    assert_ok(lac_topology_open(&ring, "ring", 5, 1));
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = "dpsgd";
    o.layout = layout;
    o.topology = ring;
    o.workers = 4;
    assert_fails(
        lac_algorithm_exchanges(&o, list, LIST_MAX, &count, &period),
        LAC_ERR_INVALID, "dpsgd: the topology has 5 workers, the options 4");
    o.workers = 5;
    assert_ok(lac_algorithm_exchanges(&o, list, LIST_MAX, &count, &period));
    assert_int_equal(count, 1);
    assert_int_equal(list[0].messages, 2);
    assert_int_equal(list[0].flags, LAC_EXCHANGE_HIDDEN);
    lac_topology_close(ring);
    lac_layout_close(layout);
}

// Round r is number r modulo the period, whatever the start.
static void test_alternating_rounds_of_powersgd(void **state)
{
    (void)state;
    static const lac_tensor tensor = {.name = "x", .shape = {300, 10}};
    static const char *const specs[] = {
        "powersgd:alternating=yes",
        "powersgd:alternating=yes,start-iteration=2",
        "powersgd:alternating=yes,start-iteration=1",
    };
    lac_layout *layout;
    assert_ok(lac_layout_open(&layout, &tensor, 1));
    for (size_t i = 0; i < 3; i++) {
        lac_exchange list[LIST_MAX];
        uint32_t period;
        size_t count;
        lac_algorithm_options o = lac_algorithm_options_default();
        o.spec = specs[i];
        o.layout = layout;
        o.workers = 2;
        assert_ok(lac_algorithm_exchanges(&o, list, LIST_MAX, &count, &period));
        assert_int_equal(period, 2);
        assert_int_equal(count, 2);
        // A round that starts to compress sends the columns first.
        const bool columns_first = list[0].bytes < list[1].bytes;
        assert_int_equal(columns_first, i < 2);
    }
    lac_layout_close(layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_one_after_the_other),
        cmocka_unit_test(test_pieces_that_are_sent_ahead),
        cmocka_unit_test(test_sums_of_the_transport),
        cmocka_unit_test(test_a_transport_may_be_named),
        cmocka_unit_test(test_the_number_of_workers_must_agree),
        cmocka_unit_test(test_alternating_rounds_of_powersgd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
