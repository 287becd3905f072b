// SPDX-License-Identifier: MIT
// The sentence that goes with a failure, kept for the thread that failed.
#include <laconic/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SENTENCE_SIZE = 512 };

static _Thread_local char sentence[SENTENCE_SIZE];

lac_status lac_fail(lac_status status, const char *format, ...)
{
    char text[SENTENCE_SIZE]; // the old sentence may be among the arguments
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    memcpy(sentence, text, sizeof(text));
    return status;
}

const char *lac_error_message(void)
{
    return sentence;
}

const char *lac_status_text(lac_status status)
{
    switch (status) {
#define STATUS_CASE(name, value, text)                                         \
    case name:                                                                 \
        return text;
        LAC_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}
