// SPDX-License-Identifier: MIT
// Which kernels suit a processor, and which are found by name.
#include "lac_test.h"

#include <string.h>

#include "kernels/kernels.h"
#include "kernels/processor.h"

static const char *const names[LACI_INSTRUCTIONS_COUNT] = {
    "portable", "neon", "avx2", "avx512"};

// EAX of CPUID leaf 1, from the manuals of the processors.
static void zen_4_and_later_do_not_prefetch(void **state)
{
    (void)state;
    assert_false(laci_processor_prefetch(true, 0x00a10f11)); // EPYC, Zen 4
    assert_false(laci_processor_prefetch(true, 0x00a60f12)); // Ryzen, Zen 4
    assert_false(laci_processor_prefetch(true, 0x00b00f21)); // Zen 5
}

static void others_prefetch(void **state)
{
    (void)state;
    assert_true(laci_processor_prefetch(true, 0x00830f10));  // EPYC, Zen 2
    assert_true(laci_processor_prefetch(false, 0x00050657)); // Cascade Lake
    assert_true(laci_processor_prefetch(false, 0x000806f8)); // Sapphire Rapids
}

static void kernels_are_found_by_name(void **state)
{
    (void)state;
    const laci_kernels *kernels = NULL;
    assert_ok(laci_kernels_find("portable", &kernels));
    assert_string_equal(kernels->name, "portable");
    assert_ok(laci_kernels_find("best", &kernels));
    assert_ptr_equal(kernels, laci_kernels_best());
    assert_fails(
        laci_kernels_find("sse", &kernels), LAC_ERR_NOTFOUND,
        "no kernels are named \"sse\", expected portable, avx2, avx512, neon "
        "or best");
}

static void kernels_are_found_where_the_processor_has_them(void **state)
{
    (void)state;
    const laci_processor p = laci_processor_this();
    assert_true(p.has[LACI_PORTABLE]);
    for (size_t i = 0; i < LACI_INSTRUCTIONS_COUNT; i++) {
        const laci_kernels *found = NULL;
        const lac_status status = laci_kernels_find(names[i], &found);
        if (status == LAC_OK) {
            assert_true(p.has[i]);
            assert_string_equal(found->name, names[i]);
        } else {
            assert_int_equal(status, LAC_ERR_UNSUPPORTED);
            assert_non_null(strstr(lac_error_message(), names[i]));
            assert_null(found);
        }
    }
}

static void the_processor_decides_about_prefetching(void **state)
{
    (void)state;
    const laci_processor p = laci_processor_this();
    const laci_kernels *kernels = NULL;
    if (laci_kernels_find("avx2", &kernels) != LAC_OK) {
        skip();
    }
    assert_int_equal(kernels->prefetch, p.prefetch);
    assert_ok(laci_kernels_find("best", &kernels));
    assert_int_equal(kernels->prefetch, p.prefetch);
}

static void prefetching_can_be_chosen(void **state)
{
    (void)state;
    static const char *const both[] = {"avx2:prefetch=off", "avx2:prefetch=on"};
    for (size_t on = 0; on < 2; on++) {
        const laci_kernels *kernels = NULL;
        if (laci_kernels_find(both[on], &kernels) != LAC_OK) {
            skip();
        }
        assert_string_equal(kernels->name, "avx2");
        assert_int_equal(kernels->prefetch, on);
    }
}

static void other_settings_are_refused(void **state)
{
    (void)state;
    const laci_kernels *kernels = NULL;
    assert_fails(
        laci_kernels_find("portable:prefetch=on", &kernels),
        LAC_ERR_UNSUPPORTED, "kernels portable do not prefetch");
    assert_fails(
        laci_kernels_find("best:prefetch", &kernels), LAC_ERR_INVALID,
        "kernels: \":prefetch\" follows the name, expected \":prefetch=on\" or "
        "\":prefetch=off\"");
    assert_fails(
        laci_kernels_find("best:", &kernels), LAC_ERR_INVALID,
        "kernels: \":\" follows the name, expected \":prefetch=on\" or "
        "\":prefetch=off\"");
    assert_null(kernels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zen_4_and_later_do_not_prefetch),
        cmocka_unit_test(others_prefetch),
        cmocka_unit_test(kernels_are_found_by_name),
        cmocka_unit_test(kernels_are_found_where_the_processor_has_them),
        cmocka_unit_test(the_processor_decides_about_prefetching),
        cmocka_unit_test(prefetching_can_be_chosen),
        cmocka_unit_test(other_settings_are_refused),
    };
    return cmocka_run_group_tests_name("kernels.processor", tests, NULL, NULL);
}
