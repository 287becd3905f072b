// SPDX-License-Identifier: MIT
#ifndef LACONIC_BASE_FAIL_H
#define LACONIC_BASE_FAIL_H

#include <laconic/status.h>

#ifdef __clang_analyzer__
// What the definition says, which the analyzer cannot see from other files:
// a failure is never LAC_OK.
#define lac_fail(status, ...) ((void)!lac_fail(status, __VA_ARGS__), (status))
#endif

#endif
