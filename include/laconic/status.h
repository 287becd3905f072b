// SPDX-License-Identifier: MIT
#ifndef LACONIC_STATUS_H
#define LACONIC_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

// The status of a call that can fail, and the message of a failure.
//
//     if (lac_compressor_open(&c, spec, LAC_FORM_PLAIN) != LAC_OK) {
//         fprintf(stderr, "%s\n", lac_error_message());
//     }
//
// Threads: each thread has its own message.

/// Marks a symbol that the shared library exports. All others are hidden.
#define LAC_API __attribute__((visibility("default")))

/// Marks an exported function that can fail: its result must be used.
#define LAC_FALLIBLE LAC_API __attribute__((warn_unused_result))

/// Every status, its value and its meaning. Values are part of the ABI: add at
/// the end, never renumber, never reuse.
#define LAC_STATUS_LIST(X)                                                     \
    X(LAC_OK, 0, "success")                                                    \
    X(LAC_ERR_INVALID, -1, "an argument breaks a documented precondition")     \
    X(LAC_ERR_NOMEM, -2, "out of memory")                                      \
    X(LAC_ERR_NOTFOUND, -3, "nothing of that kind has this name")              \
    X(LAC_ERR_SPACE, -4, "the destination buffer is too small")                \
    X(LAC_ERR_CORRUPT, -5, "the bytes break the rules of the format")          \
    X(LAC_ERR_UNSUPPORTED, -6, "this machine or build cannot do that")         \
    X(LAC_ERR_PEER, -7, "a worker is gone, silent or sends unexpected messages")

typedef enum lac_status {
#define LAC_STATUS_VALUE(name, value, text) name = (value),
    LAC_STATUS_LIST(LAC_STATUS_VALUE)
#undef LAC_STATUS_VALUE
} lac_status;

/// lac_status_text returns a static description of `status`, never NULL.
LAC_API const char *lac_status_text(lac_status status);

/// lac_error_message returns the message of the last call that failed on this
/// thread, such as "natural: payload has 4 bytes, expected 9". It is valid
/// until the next failing call on the same thread, and empty before the first.
LAC_API const char *lac_error_message(void);

/// lac_fail records the message for lac_error_message and returns `status`. The
/// function that detects the error calls it; its callers only forward the
/// status. A message names the plug-in or argument, the value found and the
/// value expected, in lower case and without a full stop.
LAC_FALLIBLE lac_status lac_fail(lac_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// lac_fail_text is lac_fail with a message that is not a format, for languages
/// that cannot call a function with variable arguments. NULL counts as the text
/// of `status`.
LAC_FALLIBLE lac_status lac_fail_text(lac_status status, const char *message);

/// LAC_TRY forwards a failure from a function that has nothing to clean up. A
/// function that holds resources uses `goto cleanup` instead.
#define LAC_TRY(expression)                                                    \
    do {                                                                       \
        const lac_status lac_try_status_ = (expression);                       \
        if (lac_try_status_ != LAC_OK) {                                       \
            return lac_try_status_;                                            \
        }                                                                      \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
