// SPDX-License-Identifier: MIT
// What the tests of kernels share.
#ifndef LACONIC_TESTS_KERNELS_TEST_H
#define LACONIC_TESTS_KERNELS_TEST_H

#include "lac_test.h"

#include "kernels/kernels.h"

// The kernels for AVX2. A machine that cannot run them skips the test.
static inline const laci_kernels *avx2_or_skip(void)
{
    const laci_kernels *kernels = NULL;
    if (laci_kernels_find("avx2", &kernels) != LAC_OK) {
        print_message("skipped: %s\n", lac_error_message());
        skip();
    }
    return kernels;
}

#endif
