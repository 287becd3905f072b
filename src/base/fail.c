// SPDX-License-Identifier: MIT
// The message of the last failure of each thread.
#include "base/fail.h"
#undef lac_fail // the analyzer has a macro of this name

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_SIZE = 512 };

static _Thread_local char message[MESSAGE_SIZE];
static _Thread_local uint64_t failure_count;

lac_status lac_fail(lac_status status, const char *format, ...)
{
    char text[MESSAGE_SIZE]; // the old message may be an argument
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    memcpy(message, text, sizeof(text));
    failure_count++;
    return status;
}

uint64_t laci_failure_count(void)
{
    return failure_count;
}

lac_status lac_fail_text(lac_status status, const char *text)
{
    return lac_fail(
        status, "%s", text == NULL ? lac_status_text(status) : text);
}

const char *lac_error_message(void)
{
    return message;
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
