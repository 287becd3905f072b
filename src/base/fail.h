// SPDX-License-Identifier: MIT
#ifndef LACONIC_BASE_FAIL_H
#define LACONIC_BASE_FAIL_H

#include <laconic/status.h>

#ifdef __clang_analyzer__
// What the definition says, which the analyzer cannot see from other files:
// a failure is never LAC_OK.
#define lac_fail(status, ...) ((void)!lac_fail(status, __VA_ARGS__), (status))
#endif

// LAC_TRY forwards a failure from a function that has nothing to clean up. A
// function that holds resources uses `goto cleanup` instead.
#define LAC_TRY(expression)                                                    \
    do {                                                                       \
        const lac_status try_status_ = (expression);                           \
        if (try_status_ != LAC_OK) {                                           \
            return try_status_;                                                \
        }                                                                      \
    } while (0)

#endif
