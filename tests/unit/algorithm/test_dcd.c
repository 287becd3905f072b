// SPDX-License-Identifier: MIT
// Difference compression: stable up to a limit of the noise, replicas that are
// their owners, a mean that drifts without direction.
#include "consensus.h"

#include <math.h>

#include "algorithm/framework/handle.h"

enum { WORKERS = RING_WORKERS, VALUES = 1000, SEEDS = 60 };

static float x[WORKERS * VALUES];
static float replicas[WORKERS][2][VALUES];
static double mean[VALUES], drift[VALUES];
static double sums[VALUES], squares[VALUES];

static consensus on_a_ring(const char *compressor, uint32_t rounds)
{
    consensus c = consensus_on_a_ring("dcd", compressor, VALUES, rounds, x);
    consensus_mean(&c, mean);
    return c;
}

// What is left of the disagreement, about the mean that the workers now have.
static double error_left(const char *compressor, uint32_t rounds)
{
    consensus c = on_a_ring(compressor, rounds);
    const double before = consensus_error(&c, mean);
    consensus_run(&c);
    consensus_mean(&c, mean);
    return consensus_error(&c, mean) / before;
}

// Random-k has a relative variance of 1/keep - 1; the limit on the ring of 8
// is 1.366, a keep of 0.423. A round multiplies the disagreement by 0.78 at
// 0.5 and by 1.64 at 0.3 on average: 60 of them leave 4e-7 or make it 8e12.
static void the_limit_of_stability(void **state)
{
    (void)state;
    assert_true(error_left("random-k:0.5", 60) < 1e-4);
    assert_true(error_left("random-k:0.3", 60) > 1e4);
}

static void keep_replicas(
    const consensus *c, uint32_t rank, uint32_t round, const lac_algorithm *a,
    const float *values)
{
    (void)values;
    const laci_field *const fields = laci_fields_of(&a->fields, 0);
    for (size_t k = 0; round == c->rounds && k < 2; k++) {
        memcpy(replicas[rank][k], fields[k].values, sizeof(replicas[rank][k]));
    }
}

static void replicas_are_their_owners(void **state)
{
    (void)state;
    static const char *const compressors[] = {
        "random-k:0.5", "natural", "dithering:levels=127"};
    for (size_t i = 0; i < 3; i++) {
        consensus c = on_a_ring(compressors[i], 20);
        c.after = keep_replicas;
        consensus_run(&c);
        for (size_t rank = 0; rank < WORKERS; rank++) {
            const size_t before = (rank + 7) % WORKERS;
            const size_t next = (rank + 1) % WORKERS;
            const size_t low = before < next ? before : next;
            const size_t high = before < next ? next : before;
            assert_memory_equal(
                replicas[rank][0], x + low * VALUES, VALUES * sizeof(*x));
            assert_memory_equal(
                replicas[rank][1], x + high * VALUES, VALUES * sizeof(*x));
        }
    }
}

// z_j = (sum over seeds of the drift of value j) / sqrt(sum of its squares) is
// nearly normal if the drift has mean 0; the mean of z^2 over 1000 values is
// then 1 with a standard deviation of sqrt(2/1000). Five of them are 0.22.
static void the_mean_drifts_without_direction(void **state)
{
    (void)state;
    memset(sums, 0, sizeof(sums));
    memset(squares, 0, sizeof(squares));
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        consensus c = on_a_ring("random-k:0.5", 5);
        c.seed = 1000 + seed;
        consensus_run(&c);
        consensus_mean(&c, drift);
        for (size_t j = 0; j < VALUES; j++) {
            const double d = drift[j] - mean[j];
            sums[j] += d;
            squares[j] += d * d;
        }
    }
    double z2 = 0;
    for (size_t j = 0; j < VALUES; j++) {
        assert_true(squares[j] > 0);
        z2 += sums[j] * sums[j] / squares[j] / VALUES;
    }
    assert_true(fabs(z2 - 1) < 0.22);
}

static void biased_compressors_get_a_warning(void **state)
{
    (void)state;
    lac_layout *layout;
    lac_topology *topology;
    lac_hub *hub;
    lac_transport *t;
    lac_algorithm *a;
    const lac_tensor tensor = {.name = "x", .shape = {10, 10}};
    assert_ok(lac_layout_open(&layout, &tensor, 1));
    assert_ok(lac_topology_open(&topology, "complete", 1, 1));
    assert_ok(lac_hub_open(&hub, 1));
    assert_ok(lac_transport_join(&t, "local", hub, 0, 1));
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = "dcd";
    o.compressor = "sign";
    o.layout = layout;
    o.topology = topology;
    o.transport = t;
    assert_ok(lac_algorithm_open(&a, &o));
    assert_string_equal(
        lac_algorithm_warning(a),
        "dcd is made for unbiased compressors, and sign is not one: its "
        "guarantees do not hold");
    lac_algorithm_close(a);
    o.compressor = "natural";
    assert_ok(lac_algorithm_open(&a, &o));
    assert_null(lac_algorithm_warning(a));
    lac_transport_leave(t);
    lac_algorithm_close(a);
    lac_hub_close(hub);
    lac_topology_close(topology);
    lac_layout_close(layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_of_stability),
        cmocka_unit_test(replicas_are_their_owners),
        cmocka_unit_test(the_mean_drifts_without_direction),
        cmocka_unit_test(biased_compressors_get_a_warning),
    };
    return cmocka_run_group_tests_name("dcd", tests, NULL, NULL);
}
