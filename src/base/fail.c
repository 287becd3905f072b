// SPDX-License-Identifier: MIT
// The message of the last failure of each thread.
#include <laconic/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_SIZE = 512 };

static _Thread_local char message[MESSAGE_SIZE];

lac_status lac_fail(lac_status status, const char *format, ...)
{
    char text[MESSAGE_SIZE]; // the old message may be an argument
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    memcpy(message, text, sizeof(text));
    return status;
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
