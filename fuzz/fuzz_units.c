// SPDX-License-Identifier: MIT
// Arbitrary text as a bandwidth and as a time. What is accepted is a sensible
// number; what is not leaves the result alone and has a message.
#include <stdlib.h>
#include <string.h>

#include "cli/options/units.h"
#include "fuzz.h"

static void read_as(
    lac_status (*read)(const char *, const char *, double *), const char *text,
    double least, double most)
{
    double value = -1;
    if (read(text, "option", &value) == LAC_OK) {
        fuzz_require(value >= least && value <= most, "out of range");
    } else {
        fuzz_require(value == -1, "a failure writes a result");
        fuzz_require(
            strncmp(lac_error_message(), "--option is ", 12) == 0,
            "the message does not name the option");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = fuzz_alloc(size + 1);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    read_as(units_bandwidth, text, 0.125, 1.25e14);
    read_as(units_seconds, text, 1e-9, 1e7);
    free(text);
    return 0;
}
