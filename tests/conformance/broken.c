// SPDX-License-Identifier: MIT
// A duty that is broken on purpose: what is printed names it.
#include "duty.h"

static void plugins_do_as_they_claim(void **state)
{
    (void)state;
    static const char *const specs[] = {"good", "bad:rate=2", "worse"};
    for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
        duty_begin(specs[i], ", compressor sign");
        assert_true(i == 0);
        duty_end();
    }
}

static void a_duty_that_holds_is_not_reported(void **state)
{
    (void)state;
    duty_begin("all good", "");
    duty_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plugins_do_as_they_claim),
        cmocka_unit_test(a_duty_that_holds_is_not_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
