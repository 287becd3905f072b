// SPDX-License-Identifier: MIT
// What every test includes: cmocka in the order it wants, asserts that know
// about lac_status, normal numbers, and a place where every allocation passes.
#ifndef LACONIC_TESTS_LAC_TEST_H
#define LACONIC_TESTS_LAC_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <laconic/laconic.h>

static inline void check_status(
    lac_status got, lac_status expected, const char *text, const char *file,
    int line)
{
    if (got != expected) {
        print_error(
            "%s: %s (%s)\n", text, lac_status_text(got), lac_error_message());
        _fail(file, line);
        abort(); // cmocka does not declare that _fail never returns
    }
}

#define assert_status(expression, expected)                                    \
    check_status((expression), (expected), #expression, __FILE__, __LINE__)

#define assert_ok(expression) assert_status(expression, LAC_OK)

// Fails unless the expression fails with this status and this message.
#define assert_fails(expression, expected, message)                            \
    do {                                                                       \
        assert_status(expression, expected);                                   \
        assert_string_equal(lac_error_message(), message);                     \
    } while (0)

static inline void check_between(
    uint64_t got, uint64_t least, uint64_t most, const char *text,
    const char *file, int line)
{
    if (got < least || got > most) {
        print_error(
            "%s: %llu is not from %llu to %llu\n", text,
            (unsigned long long)got, (unsigned long long)least,
            (unsigned long long)most);
        _fail(file, line);
    }
}

// For integers that are not negative. cmocka 2 deprecates assert_in_range, and
// cmocka 1 has none of the functions that replace it.
#define assert_between(expression, least, most)                                \
    check_between(                                                             \
        (uint64_t)(expression), (uint64_t)(least), (uint64_t)(most),           \
        #expression, __FILE__, __LINE__)

// Normal numbers, others for another seed.
static inline void fill_normal(float *x, size_t n, uint64_t seed)
{
    const lac_key key =
        lac_key_make(seed, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    for (size_t i = 0; i < n; i++) {
        x[i] = lac_key_normal(&key, (uint32_t)i);
    }
}

// Every allocation passes here. The one that finds `test_allocations_left` at
// 0 fails, and so do all after it; -1 lets all of them succeed.
static _Atomic size_t test_allocations;
static _Atomic long test_allocations_left = -1;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

// The same count for this thread alone.
static _Thread_local size_t test_thread_allocations;

void *__wrap_calloc(size_t count, size_t size)
{
    test_allocations++;
    test_thread_allocations++;
    if (test_allocations_left == 0) {
        return NULL;
    }
    if (test_allocations_left > 0) {
        test_allocations_left--;
    }
    return __real_calloc(count, size);
}

#endif
