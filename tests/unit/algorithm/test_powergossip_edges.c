// SPDX-License-Identifier: MIT
// What the two ends of an edge keep: the same bits, after a save and a load
// too, and after a round that failed.
#include "consensus.h"

#include <math.h>

#include "algorithm/framework/handle.h"

enum {
    WORKERS = 8,
    ROWS = 12,
    COLS = 9,
    VALUES = ROWS * COLS,
    ROUNDS = 12,
    FACTOR_MAX = 2 * ROWS, // floats of an edge with rank 2
};

static float x[WORKERS * VALUES];

// Every factor after every round.
static float kept[ROUNDS + 1][WORKERS][WORKERS][FACTOR_MAX];
static bool is_kept[WORKERS][WORKERS];

static void keep_factors(
    const consensus *c, uint32_t rank, uint32_t round, const lac_algorithm *a,
    const float *values)
{
    (void)c;
    (void)values;
    for (size_t i = 0; i < a->fields.count; i++) {
        const laci_field *const field = &a->fields.fields[i];
        if (field->name != NULL) {
            memcpy(
                kept[round][rank][field->peer], field->values,
                field->count * sizeof(float));
            is_kept[rank][field->peer] = true;
        }
    }
}

static void assert_both_ends_equal(size_t edges)
{
    size_t found = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        for (uint32_t j = i + 1; j < WORKERS; j++) {
            assert_int_equal(is_kept[i][j], is_kept[j][i]);
            found += is_kept[i][j];
            for (size_t round = 0; round <= ROUNDS; round++) {
                assert_memory_equal(
                    kept[round][i][j], kept[round][j][i],
                    sizeof(kept[round][i][j]));
            }
        }
    }
    assert_int_equal(found, edges);
}

static void both_ends_keep_the_same_bits(void **state)
{
    (void)state;
    static const struct {
        const char *algorithm;
        const char *topology;
        size_t edges;
    } cases[] = {
        {"powergossip", "ring", 8},
        {"powergossip:rank=2,rate=1.308", "ring", 8},
        {"powergossip:iterations=2,rank=2", "complete", 28},
        {"powergossip:iterations=3", "torus", 12},
        {"powergossip:warm-start=no", "star", 7},
        {"powergossip:rank=2", "one-peer-exponential", 12},
        {"powergossip:iterations=3,rank=2", "one-peer-exponential", 12},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        consensus c = {
            .algorithm = cases[i].algorithm,
            .topology = cases[i].topology,
            .workers = WORKERS,
            .shape = {ROWS, COLS},
            .rounds = ROUNDS,
            .x = x,
            .after = keep_factors,
        };
        memset(kept, 0, sizeof(kept));
        memset(is_kept, 0, sizeof(is_kept));
        consensus_fill_normal(&c, i + 1);
        consensus_run(&c);
        assert_both_ends_equal(cases[i].edges);
    }
}

static consensus on_a_varying_graph(const char *algorithm, uint32_t rounds)
{
    consensus c = {
        .algorithm = algorithm,
        .topology = "one-peer-exponential",
        .workers = WORKERS,
        .shape = {ROWS, COLS},
        .rounds = rounds,
        .x = x,
    };
    consensus_fill_normal(&c, 3);
    return c;
}

// An edge of a graph that varies is used every third round. Full rank makes
// every even use exact and every odd one the projection to 9 of 9 columns,
// exact as well: one period then is the mean, up to some 40 roundings of
// values below 8.
static void full_rank_on_a_varying_graph_is_exact(void **state)
{
    (void)state;
    double mean[VALUES] = {0};
    consensus c = on_a_varying_graph("powergossip:rank=9", 3);
    consensus_mean(&c, mean);
    consensus_run(&c);
    for (size_t i = 0; i < WORKERS * VALUES; i++) {
        assert_true(fabs((double)x[i] - mean[i % VALUES]) < 40 * 0x1p-22);
    }
}

// Odd uses of an edge send rows, even ones columns, also where it is used in
// every third round only.
static void parity_goes_by_the_uses_of_an_edge(void **state)
{
    (void)state;
    consensus c = on_a_varying_graph("powergossip", 3);
    consensus_run(&c);
    assert_int_equal(c.traffic[2].payload_bytes, 3 * ROWS * 4);
    c.rounds = 6;
    consensus_run(&c);
    assert_int_equal(c.traffic[2].payload_bytes, 3 * (ROWS + COLS) * 4);
}

static void rank_one_agrees_on_a_varying_graph(void **state)
{
    (void)state;
    double mean[VALUES] = {0};
    consensus c = on_a_varying_graph("powergossip", 300);
    consensus_mean(&c, mean);
    const double start = consensus_error(&c, mean);
    consensus_run(&c);
    assert_true(consensus_error(&c, mean) < 1e-6 * start);
}

// Opening one worker of a pair with a matrix "x".
typedef struct pair {
    lac_layout *layout;
    lac_topology *topology;
    const char *spec;
    float *x;
    bool aborted;    // worker 1 talks once, then gives up
    size_t sent;     // floats of worker 1's message then
    bool unchanged;  // worker 0's state and values after it
    uint32_t reload; // the round before which to save, open anew and load
} pair;

static lac_status open_one(test_worker *w, lac_algorithm **out)
{
    const pair *const p = w->context;
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = p->spec;
    o.layout = p->layout;
    o.topology = p->topology;
    o.transport = w->transport;
    o.session = p->reload;
    return lac_algorithm_open(out, &o);
}

// Closes one that peers may still read from.
static void close_one(test_worker *w, lac_algorithm *a)
{
    lac_transport_leave(w->transport);
    w->transport = NULL;
    lac_algorithm_close(a);
}

static void run_pair(
    pair *p, lac_status (*body)(test_worker *w), test_worker workers_out[2])
{
    const lac_tensor tensor = {.name = "x", .shape = {ROWS, COLS}};
    assert_ok(lac_layout_open(&p->layout, &tensor, 1));
    assert_ok(lac_topology_open(&p->topology, "complete", 2, 1));
    run_workers(2, body, p, workers_out);
    lac_topology_close(p->topology);
    lac_layout_close(p->layout);
}

static void fill_pair(void)
{
    consensus c = {.workers = 2, .shape = {ROWS, COLS}, .x = x};
    consensus_fill_normal(&c, 21);
}

// The old handle lives on until its messages are read.
static lac_status reload_body(test_worker *w)
{
    const pair *const p = w->context;
    float *const mine = p->x + w->rank * VALUES;
    const lac_slice slice = {0, LAC_F32, mine, mine};
    lac_algorithm *a = NULL, *old = NULL;
    uint8_t bytes[4096];
    lac_status status = open_one(w, &a);
    if (status == LAC_OK) {
        status = lac_algorithm_start(a, &slice, 1);
    }
    for (uint32_t round = 0; status == LAC_OK && round < 7; round++) {
        if (p->reload > 0 && round == p->reload) {
            const size_t len = lac_algorithm_state_size(a);
            status = lac_algorithm_save(a, bytes, sizeof(bytes));
            old = a;
            status = status == LAC_OK ? open_one(w, &a) : status;
            if (status == LAC_OK) {
                status = lac_algorithm_load(a, bytes, len);
            }
        }
        if (status == LAC_OK) {
            status = lac_algorithm_mix(a, round, &slice, NULL, 1);
        }
    }
    close_one(w, a);
    lac_algorithm_close(old);
    return status;
}

static void a_loaded_state_continues_bit_for_bit(void **state)
{
    (void)state;
    static float straight[2 * VALUES];
    static const char *const specs[] = {
        "powergossip", "powergossip:rank=2,iterations=3",
        "powergossip:warm-start=no"};
    for (size_t i = 0; i < 3; i++) {
        test_worker workers[2];
        pair p = {.spec = specs[i], .x = x};
        fill_pair();
        run_pair(&p, reload_body, workers);
        assert_all_ok(workers, 2);
        memcpy(straight, x, sizeof(straight));
        p.reload = 4;
        fill_pair();
        run_pair(&p, reload_body, workers);
        assert_all_ok(workers, 2);
        assert_memory_equal(straight, x, sizeof(straight));
    }
}

// In round 2 worker 1 sends one message by hand and then stops.
static lac_status stop_by_hand(const pair *p, lac_algorithm *a)
{
    laci_group *const g = a->round.group;
    laci_writer *const message = laci_group_message(g, 0);
    const size_t len = p->sent * sizeof(float);
    const lac_edge *edges;
    const uint32_t count =
        lac_topology_edges(a->worker.topology, a->worker.rank, 2, &edges);
    memset(laci_writer_room(message, len), 0, len);
    laci_writer_commit(message, len);
    const lac_status status =
        laci_group_exchange(g, 2, 0, edges, count, false, a->round.readers);
    if (p->aborted) {
        laci_group_abort(g, "stopped for a test");
    }
    return status;
}

static lac_status stop_body(test_worker *w)
{
    pair *const p = w->context;
    float *const mine = p->x + w->rank * VALUES;
    const lac_slice slice = {0, LAC_F32, mine, mine};
    lac_algorithm *a = NULL;
    uint8_t before[4096], after[4096];
    float values[VALUES];
    lac_status status = open_one(w, &a);
    if (status == LAC_OK) {
        status = lac_algorithm_start(a, &slice, 1);
    }
    for (uint32_t round = 0; status == LAC_OK && round < 2; round++) {
        status = lac_algorithm_mix(a, round, &slice, NULL, 1);
    }
    if (status == LAC_OK && w->rank == 1) {
        status = stop_by_hand(p, a);
    } else if (status == LAC_OK) {
        const size_t len = lac_algorithm_state_size(a);
        const lac_status saved = lac_algorithm_save(a, before, sizeof(before));
        memcpy(values, mine, sizeof(values));
        status = lac_algorithm_mix(a, 2, &slice, NULL, 1);
        p->unchanged = saved == LAC_OK &&
                       lac_algorithm_save(a, after, sizeof(after)) == LAC_OK &&
                       memcmp(before, after, len) == 0 &&
                       memcmp(values, mine, sizeof(values)) == 0;
    }
    close_one(w, a);
    return status;
}

static void a_failed_round_leaves_everything_as_it_was(void **state)
{
    (void)state;
    test_worker workers[2];
    pair p = {
        .spec = "powergossip:iterations=2",
        .x = x,
        .aborted = true,
        .sent = ROWS,
    };
    fill_pair();
    run_pair(&p, stop_body, workers);
    assert_int_equal(workers[0].status, LAC_ERR_PEER);
    assert_non_null(strstr(workers[0].message, "stopped for a test"));
    assert_true(p.unchanged);
}

static void a_payload_of_another_length_is_refused(void **state)
{
    (void)state;
    test_worker workers[2];
    pair p = {.spec = "powergossip", .x = x, .sent = ROWS - 1};
    fill_pair();
    run_pair(&p, stop_body, workers);
    assert_int_equal(workers[0].status, LAC_ERR_CORRUPT);
    assert_string_equal(
        workers[0].message,
        "powergossip: worker 1 sent for x: identity: payload has 44 bytes, "
        "expected 48");
    assert_true(p.unchanged);
}

// A difference may overflow though the values and their products do not. Each
// row has one value, so its products with nine orthonormal columns are parts of
// 3e38, and some part is above 0.57: the largest of 81 entries of an
// orthonormal matrix is.
static void values_too_far_apart_are_refused(void **state)
{
    (void)state;
    test_worker workers[2];
    pair p = {.spec = "powergossip:rank=9", .x = x};
    for (size_t i = 0; i < 2 * VALUES; i++) {
        const bool diagonal = i / COLS % ROWS % COLS == i % COLS;
        x[i] = !diagonal ? 0 : i < VALUES ? 3e38f : -3e38f;
    }
    run_pair(&p, reload_body, workers);
    assert_true(workers[0].status != LAC_OK);
    assert_non_null(strstr(
        workers[0].message,
        "powergossip: x differs by more than a float holds between workers 0 "
        "and 1"));
    assert_true(workers[1].status != LAC_OK);
    assert_true(x[0] == 3e38f && x[VALUES] == -3e38f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_keep_the_same_bits),
        cmocka_unit_test(full_rank_on_a_varying_graph_is_exact),
        cmocka_unit_test(parity_goes_by_the_uses_of_an_edge),
        cmocka_unit_test(rank_one_agrees_on_a_varying_graph),
        cmocka_unit_test(a_loaded_state_continues_bit_for_bit),
        cmocka_unit_test(a_failed_round_leaves_everything_as_it_was),
        cmocka_unit_test(a_payload_of_another_length_is_refused),
        cmocka_unit_test(values_too_far_apart_are_refused),
    };
    return cmocka_run_group_tests_name("powergossip_edges", tests, NULL, NULL);
}
