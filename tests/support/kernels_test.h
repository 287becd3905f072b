// SPDX-License-Identifier: MIT
// What the tests of kernels share.
#ifndef LACONIC_TESTS_KERNELS_TEST_H
#define LACONIC_TESTS_KERNELS_TEST_H

#include "lac_test.h"

#include <string.h>

#include "kernels/kernels.h"

// The kernels to compare with portable C: the best ones, or those that
// LACI_TEST_KERNELS names. A machine that has no others skips the test.
static inline const laci_kernels *fast_or_skip(void)
{
    const laci_kernels *const kernels = laci_kernels_best();
    if (strcmp(kernels->name, "portable") == 0) {
        print_message("skipped: there is nothing but portable C\n");
        skip();
    }
    return kernels;
}

#endif
