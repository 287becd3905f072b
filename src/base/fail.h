// SPDX-License-Identifier: MIT
#ifndef LACONIC_BASE_FAIL_H
#define LACONIC_BASE_FAIL_H

#include <laconic/status.h>

#ifdef __clang_analyzer__
// The analyzer does not see the definition from other files: it must know that
// a failure is never LAC_OK.
#define lac_fail(status, ...) ((void)!lac_fail(status, __VA_ARGS__), (status))
#endif

#endif
