// SPDX-License-Identifier: MIT
// Runs a test with other kernels: those that the environment variable
// LACI_TEST_KERNELS names take the place of the best ones. Programs are linked
// with --wrap=laci_kernels_best. A test is skipped where this machine cannot
// run them, and where they are the best ones, which are tested without the
// variable.
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"

#include <laconic/status.h>

enum { SKIPPED = 77 };

const laci_kernels *__real_laci_kernels_best(void); // NOLINT
const laci_kernels *__wrap_laci_kernels_best(void); // NOLINT

const laci_kernels *__wrap_laci_kernels_best(void) // NOLINT
{
    const char *const name = getenv("LACI_TEST_KERNELS");
    const laci_kernels *kernels = NULL;
    if (name == NULL) {
        return __real_laci_kernels_best();
    }
    const lac_status status = laci_kernels_find(name, &kernels);
    if (status == LAC_ERR_UNSUPPORTED) {
        (void)fprintf(stderr, "skipped: %s\n", lac_error_message());
        exit(SKIPPED);
    }
    if (status != LAC_OK) {
        (void)fprintf(stderr, "LACI_TEST_KERNELS: %s\n", lac_error_message());
        exit(EXIT_FAILURE);
    }
    if (kernels == __real_laci_kernels_best()) {
        (void)fprintf(stderr, "skipped: %s is the best set here\n", name);
        exit(SKIPPED);
    }
    return kernels;
}
