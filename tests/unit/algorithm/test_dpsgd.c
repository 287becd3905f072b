// SPDX-License-Identifier: MIT
// Exact gossip: one round is one product with the mixing matrix.
#include "consensus.h"

#include <math.h>

enum { WORKERS = 8, VALUES = 40 };

static float x[WORKERS * VALUES], before[WORKERS * VALUES];

// Each value is a sum of three products of numbers below 4: five roundings of
// at most 2^-22 each.
static void a_round_is_a_product_with_w(void **state)
{
    (void)state;
    double w[WORKERS * WORKERS];
    consensus c = {
        .algorithm = "dpsgd:rate=1.308",
        .topology = "ring",
        .workers = WORKERS,
        .shape = {5, 8},
        .rounds = 1,
        .x = x,
    };
    lac_topology *t;
    consensus_fill_normal(&c, 1);
    memcpy(before, x, sizeof(x));
    assert_ok(lac_topology_open(&t, "ring", WORKERS, 1));
    lac_topology_matrix(t, 0, w);
    lac_topology_close(t);
    consensus_run(&c);
    for (size_t i = 0; i < WORKERS; i++) {
        for (size_t j = 0; j < VALUES; j++) {
            double mixed = 0;
            for (size_t k = 0; k < WORKERS; k++) {
                mixed += w[i * WORKERS + k] * (double)before[k * VALUES + j];
            }
            const double own = (double)before[i * VALUES + j];
            const double expected = own + 1.308 * (mixed - own);
            assert_true(
                fabs((double)x[i * VALUES + j] - expected) < 5 * 0x1p-22);
        }
    }
}

static void one_worker_sends_nothing(void **state)
{
    (void)state;
    consensus c = {
        .algorithm = "dpsgd",
        .topology = "complete",
        .workers = 1,
        .shape = {5, 8},
        .rounds = 3,
        .x = x,
    };
    consensus_fill_normal(&c, 1);
    memcpy(before, x, sizeof(x));
    consensus_run(&c);
    assert_memory_equal(x, before, VALUES * sizeof(*x));
    assert_int_equal(c.traffic[0].wire_bytes, 0);
    assert_int_equal(c.traffic[0].messages, 0);
}

static void traffic_counts_each_neighbour(void **state)
{
    (void)state;
    consensus c = {
        .algorithm = "dpsgd",
        .topology = "ring",
        .workers = WORKERS,
        .shape = {5, 8},
        .rounds = 3,
        .x = x,
    };
    consensus_fill_normal(&c, 1);
    consensus_run(&c);
    assert_int_equal(c.traffic[3].payload_bytes, 3 * 2 * VALUES * 4);
    assert_int_equal(c.traffic[3].messages, 3 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_is_a_product_with_w),
        cmocka_unit_test(one_worker_sends_nothing),
        cmocka_unit_test(traffic_counts_each_neighbour),
    };
    return cmocka_run_group_tests_name("dpsgd", tests, NULL, NULL);
}
