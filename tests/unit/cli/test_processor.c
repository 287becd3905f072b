// SPDX-License-Identifier: MIT
#define _GNU_SOURCE // sched_setaffinity
#include "cli/report/processor.h"
#include "lac_test.h"

#include <sched.h>

// A job on a shared machine may have some of its processors only.
static void only_processors_that_may_be_used_count(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    assert_int_equal(cli_processor_count(), CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &before)) {
            CPU_SET(i, &one);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(cli_processor_count(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_processors_that_may_be_used_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
