// SPDX-License-Identifier: MIT
// The example of docs/adding-a-topology.md, compiled from its text.
#include "lac_test.h"

#include "topology/topology.h"

extern const laci_topology_ops laci_wheel_topology;

static void the_example_works_as_documented(void **state)
{
    (void)state;
    lac_topology *t;
    assert_ok(
        laci_topology_open_with(&t, &laci_wheel_topology, "spokes=2", 7, 1));
    assert_int_equal(lac_topology_edge_count(t), 6 + 3);
    const uint32_t *peers;
    assert_int_equal(lac_topology_peers(t, 0, &peers), 3);
    assert_int_equal(peers[2], 5);
    lac_topology_close(t);
    assert_ok(laci_topology_open_with(
        &t, &laci_wheel_topology, "1,weights=max-degree", 4, 1));
    assert_int_equal(lac_topology_edge_count(t), 6);
    lac_topology_close(t);
    assert_fails(
        laci_topology_open_with(&t, &laci_wheel_topology, "", 3, 1),
        LAC_ERR_INVALID, "wheel: 3 workers, expected at least 4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_works_as_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
