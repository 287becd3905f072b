// SPDX-License-Identifier: MIT
// Bytes that a run would send without compression.
#include "lac_test.h"
#include "train/uncompressed.h"

static double bytes_of(
    lac_family family, const char *spec, uint32_t world, uint64_t rounds)
{
    lac_topology *t = NULL;
    assert_ok(lac_topology_open(&t, spec, world, 1));
    const double bytes = train_uncompressed_bytes(family, t, 10, rounds);
    lac_topology_close(t);
    return bytes;
}

static void gossip_sends_the_model_to_every_neighbour(void **state)
{
    (void)state;
    assert_true(bytes_of(LAC_FAMILY_MODEL, "ring", 8, 3) == 8 * 2 * 3 * 4 * 10);
    assert_true(bytes_of(LAC_FAMILY_MODEL, "ring", 1, 3) == 0);
}

// A period is three rounds, in each of which a worker has one neighbour.
static void the_last_period_need_not_be_whole(void **state)
{
    (void)state;
    assert_true(
        bytes_of(LAC_FAMILY_MODEL, "one-peer-exponential", 8, 4) ==
        8 * 4 * 4 * 10);
}

static void a_mean_takes_one_contribution_of_each_worker(void **state)
{
    (void)state;
    assert_true(bytes_of(LAC_FAMILY_GRADIENT, "ring", 8, 3) == 8 * 3 * 40);
    assert_true(bytes_of(LAC_FAMILY_GRADIENT, "ring", 1, 3) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gossip_sends_the_model_to_every_neighbour),
        cmocka_unit_test(the_last_period_need_not_be_whole),
        cmocka_unit_test(a_mean_takes_one_contribution_of_each_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
