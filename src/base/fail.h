// SPDX-License-Identifier: MIT
#ifndef LACONIC_BASE_FAIL_H
#define LACONIC_BASE_FAIL_H

#include <stdint.h>

#include <laconic/status.h>

// laci_failure_count returns how many failures this thread has reported, so
// that a caller can see whether a function of a program reported its own.
uint64_t laci_failure_count(void);

#ifdef __clang_analyzer__
// The analyzer does not see the definition from other files: it must know that
// a failure is never LAC_OK.
#define lac_fail(status, ...) ((void)!lac_fail(status, __VA_ARGS__), (status))
#endif

#endif
