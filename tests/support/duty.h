// SPDX-License-Identifier: MIT
// Names the duty that a conformance test found broken. A failed assert of
// cmocka names a line, which may be reached with a hundred plug-ins and
// settings. Each test that includes this header also prints
//
//     broken duty: all rounds allocate nothing
//              by: choco:gamma=0.3, compressor sign
//
// The name of the test is the duty. Whoever calls it for a plug-in sets the
// subject before and clears it after.
#ifndef LACONIC_TESTS_DUTY_H
#define LACONIC_TESTS_DUTY_H

#include "lac_test.h"

#include <stdio.h>

static char duty_subject[640]; // empty while no duty is tested

static inline void duty_begin(const char *spec, const char *relation)
{
    (void)snprintf(duty_subject, sizeof(duty_subject), "%s%s", spec, relation);
}

static inline void duty_end(void)
{
    duty_subject[0] = '\0';
}

// The teardown of a test, which also runs when an assert has failed. `*state`
// is the name of the test.
static inline int duty_report(void **state)
{
    if (duty_subject[0] == '\0') {
        return 0;
    }
    print_error("broken duty: ");
    for (const char *name = *state; *name != '\0'; name++) {
        print_error("%c", *name == '_' ? ' ' : *name);
    }
    print_error("\n         by: %s\n", duty_subject);
    duty_end();
    return 0;
}

#undef cmocka_unit_test
#define cmocka_unit_test(test)                                                 \
    {                                                                          \
#test, test, NULL, duty_report, #test                                  \
    }

#endif
