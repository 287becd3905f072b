// SPDX-License-Identifier: MIT
// Options with a unit, such as "1.5 ms".
#ifndef LACONIC_CLI_OPTIONS_UNITS_H
#define LACONIC_CLI_OPTIONS_UNITS_H

#include <laconic/laconic.h>

// units_seconds reads a time above 0 in us, ms or s, with or without a space.
// `option` is the name in messages, such as "step-time".
// Fails with LAC_ERR_INVALID; the result is then unchanged.
lac_status units_seconds(
    const char *text, const char *option, double *seconds_out);

#endif
