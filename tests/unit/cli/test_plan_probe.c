// SPDX-License-Identifier: MIT
// The probe finds simulated networks, whose clock is exact: nothing is timed.
#include "lac_test.h"

#include "cli/plan/probe.h"
#include "simulated_network.h"

static const double TIMEOUT = 60;

// Reports of workers that end early pass the port of worker 0: 100 bytes beside
// some of 64 KiB.
static const double TOLERANCE = 1e-3;

static const struct {
    double bandwidth, latency;
} links[] = {{10e9 / 8, 1e-4}, {1e9 / 8, 1e-3}, {100e6 / 8, 1e-2}};
enum { LINKS = sizeof(links) / sizeof(links[0]) };

typedef struct worker {
    sim_network *network;
    const lac_topology *topology;
    const plan_network_kind *kind;
    double budget;
    uint32_t rank;
    lac_status status;
    char message[512];
    plan_probe_result result;
    pthread_t thread;
} worker;

static lac_status probe_once(worker *w, lac_transport *t, plan_probe **probe)
{
    const plan_probe_options options = {
        .transport = t,
        .topology = w->topology,
        .budget = w->budget,
        .timeout = TIMEOUT,
        .kind = w->kind,
    };
    LAC_TRY(plan_probe_open(probe, &options));
    return plan_probe_run(*probe, &w->result);
}

static void *run_worker(void *argument)
{
    worker *const w = argument;
    lac_transport *t = NULL;
    plan_probe *probe = NULL;
    w->status = sim_join(w->network, w->rank, &t);
    if (w->status == LAC_OK) {
        w->status = probe_once(w, t, &probe);
    }
    (void)snprintf(
        w->message, sizeof(w->message), "%s",
        w->status == LAC_OK ? "" : lac_error_message());
    lac_transport_leave(t);
    plan_probe_close(probe);
    return NULL;
}

static void run_probe(
    sim_network *network, const char *topology, const worker *like,
    worker *workers)
{
    lac_topology *graph = NULL;
    assert_ok(lac_topology_open(&graph, topology, network->world, 0));
    sim_open(network);
    for (uint32_t rank = 0; rank < network->world; rank++) {
        workers[rank] = *like;
        workers[rank].network = network;
        workers[rank].topology = graph;
        workers[rank].rank = rank;
        assert_int_equal(
            pthread_create(
                &workers[rank].thread, NULL, run_worker, &workers[rank]),
            0);
    }
    for (uint32_t rank = 0; rank < network->world; rank++) {
        assert_int_equal(pthread_join(workers[rank].thread, NULL), 0);
    }
    sim_close(network);
    lac_topology_close(graph);
}

// Runs a probe that must succeed, with the same result on all workers.
static plan_probe_result probe_within(
    sim_network *network, const char *topology, double budget)
{
    const worker like = {.budget = budget};
    worker workers[SIM_WORLD_MAX];
    run_probe(network, topology, &like, workers);
    for (uint32_t rank = 0; rank < network->world; rank++) {
        if (workers[rank].status != LAC_OK) {
            fail_msg("worker %u: %s", rank, workers[rank].message);
        }
        assert_memory_equal(
            &workers[rank].result, &workers[0].result,
            sizeof(plan_probe_result));
    }
    return workers[0].result;
}

static plan_probe_result probe_of(sim_network *network, const char *topology)
{
    return probe_within(network, topology, 0.5);
}

static void assert_near(double found, double expected)
{
    if (!(fabs(found / expected - 1) <= TOLERANCE)) {
        fail_msg("found %.9g, expected %.9g", found, expected);
    }
}

static void assert_finds(
    plan_network_kind kind, size_t link, uint32_t world, const char *topology)
{
    sim_network network = {
        .links = {kind, links[link].bandwidth, links[link].latency},
        .world = world,
    };
    const plan_probe_result r = probe_of(&network, topology);
    assert_string_equal(
        plan_network_name(r.network.kind), plan_network_name(kind));
    assert_near(r.network.bandwidth, links[link].bandwidth);
    assert_near(r.network.latency, links[link].latency);
    assert_near(r.pair_rate, links[link].bandwidth);
    // Pairs that share a medium do not move at the same time.
    assert_true(r.spread < (kind == PLAN_SHARED ? 1.4 : 1 + TOLERANCE));
    assert_true(r.messages > 0);
}

static void stars_are_found(void **state)
{
    (void)state;
    static const uint32_t worlds[] = {2, 3, 8, 16};
    for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
        for (size_t link = 0; link < LINKS; link++) {
            assert_finds(PLAN_STAR, link, worlds[i], "ring");
        }
    }
}

static void a_shared_medium_is_found(void **state)
{
    (void)state;
    static const uint32_t worlds[] = {2, 3, 8, 16};
    for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
        assert_finds(PLAN_SHARED, i % LINKS, worlds[i], "ring");
    }
}

// Two workers have one link: a star has the same times.
static void links_of_pairs_are_found(void **state)
{
    (void)state;
    static const uint32_t worlds[] = {3, 8, 16};
    for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
        assert_finds(PLAN_PAIRS, i % LINKS, worlds[i], "ring");
    }
}

// The busiest worker of a star graph has the messages of all others.
static void degrees_may_differ(void **state)
{
    (void)state;
    assert_finds(PLAN_STAR, 1, 5, "star");
    assert_finds(PLAN_SHARED, 1, 5, "path");
    assert_finds(PLAN_PAIRS, 1, 8, "hypercube");
}

// The bandwidth then explains the times on a network of this kind: a ring of
// eight shares 16 messages where the busiest port has two.
static void the_kind_may_be_given(void **state)
{
    (void)state;
    const plan_network_kind kind = PLAN_STAR;
    const worker like = {.kind = &kind, .budget = 0.5};
    worker workers[SIM_WORLD_MAX];
    sim_network network = {.links = {PLAN_SHARED, 1e8, 1e-3}, .world = 8};
    run_probe(&network, "ring", &like, workers);
    assert_int_equal(workers[7].status, LAC_OK);
    assert_int_equal(workers[7].result.network.kind, PLAN_STAR);
    assert_near(workers[7].result.network.bandwidth, 1e8 / 8);
}

static void a_slow_port_is_named(void **state)
{
    (void)state;
    char text[160];
    sim_network network = {
        .links = {PLAN_STAR, 1e8, 1e-4}, .world = 8, .slow = 4};
    const plan_probe_result r = probe_of(&network, "ring");
    assert_true(r.slowest[0] == 2 || r.slowest[1] == 2);
    // All exchanges wait for it.
    assert_near(r.network.bandwidth, 1e8 / 4);
    // 64 KiB take 0.1 ms + 0.655 ms, by the slow port 0.1 ms + 2.621 ms.
    const double expected = (1e-4 + 65536 / 25e6) / (1e-4 + 65536 / 1e8);
    assert_near(r.spread, expected);
    plan_probe_describe(&r, text, sizeof(text));
    assert_non_null(strstr(text, "workers 1 and 2 take 3.6 times the median"));
}

// Worker 0 and its neighbour share memory, which is no network.
static void neighbours_on_one_machine_do_not_count(void **state)
{
    (void)state;
    sim_network network = {
        .links = {PLAN_STAR, 1e8, 1e-3}, .world = 8, .paired = true};
    const plan_probe_result r = probe_of(&network, "ring");
    assert_near(r.network.latency, 1e-3);
    assert_near(r.network.bandwidth, 1e8);
    assert_true(r.slowest[0] / 2 != r.slowest[1] / 2);
}

// A train takes at least six latencies: 1.8 s of the last network.
static void the_budget_is_kept(void **state)
{
    (void)state;
    static const plan_network slow[] = {
        {PLAN_STAR, 1e9 / 8, 1e-3},
        {PLAN_SHARED, 1e8 / 8, 1e-2},
        {PLAN_STAR, 1e6 / 8, 5e-2},
        {PLAN_STAR, 1e7 / 8, 0.3},
    };
    static const double seconds[] = {5, 5, 10, 25};
    for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
        sim_network network = {.links = slow[i], .world = 16};
        const plan_probe_result r = probe_within(&network, "ring", 5);
        if (!(r.seconds <= seconds[i])) {
            fail_msg("network %zu took %.1f s", i, r.seconds);
        }
        assert_near(r.network.bandwidth, slow[i].bandwidth);
    }
}

// Worker 1 is lost in each stage, or between two.
static void a_lost_worker_is_named(void **state)
{
    (void)state;
    const worker like = {.budget = 0.5};
    worker workers[SIM_WORLD_MAX] = {0};
    sim_network whole = {.links = {PLAN_STAR, 1e8, 1e-3}, .world = 4};
    run_probe(&whole, "ring", &like, workers);
    const unsigned all = whole.members[1].exchanges;
    for (unsigned at = 1; at <= all; at += 1 + at / 4) {
        sim_network network = {.links = whole.links, .world = 4, .lost_at = at};
        run_probe(&network, "ring", &like, workers);
        for (uint32_t rank = 0; rank < 4; rank++) {
            assert_int_equal(workers[rank].status, LAC_ERR_PEER);
            assert_non_null(
                strstr(workers[rank].message, "worker 1 was silent"));
        }
    }
}

static void one_worker_has_no_network(void **state)
{
    (void)state;
    plan_probe *probe = NULL;
    lac_transport *t = NULL;
    lac_topology *graph = NULL;
    sim_network network = {.world = 1};
    sim_open(&network);
    assert_ok(sim_join(&network, 0, &t));
    assert_ok(lac_topology_open(&graph, "complete", 1, 0));
    const plan_probe_options options = {.transport = t, .topology = graph};
    assert_fails(
        plan_probe_open(&probe, &options), LAC_ERR_INVALID,
        "a probe of 1 worker, expected at least 2");
    assert_null(probe);
    lac_transport_leave(t);
    lac_topology_close(graph);
    sim_close(&network);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stars_are_found),
        cmocka_unit_test(a_shared_medium_is_found),
        cmocka_unit_test(links_of_pairs_are_found),
        cmocka_unit_test(degrees_may_differ),
        cmocka_unit_test(the_kind_may_be_given),
        cmocka_unit_test(a_slow_port_is_named),
        cmocka_unit_test(neighbours_on_one_machine_do_not_count),
        cmocka_unit_test(the_budget_is_kept),
        cmocka_unit_test(a_lost_worker_is_named),
        cmocka_unit_test(one_worker_has_no_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
