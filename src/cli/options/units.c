// SPDX-License-Identifier: MIT
// Numbers with units.
#include "cli/options/units.h"

#include <stdlib.h>
#include <string.h>

lac_status units_seconds(
    const char *text, const char *option, double *seconds_out)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
    char *end = NULL;
    const double value = strtod(text, &end);
    const char *const name = end + strspn(end, " ");
    double seconds = 0;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(name, units[i].name) == 0) {
            seconds = value * units[i].seconds;
        }
    }
    if (!(seconds >= 1e-9 && seconds <= 1e7)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--%s is \"%s\", expected a time above 0 with a unit, such as "
            "229ms, 0.1 s or 50us",
            option, text);
    }
    *seconds_out = seconds;
    return LAC_OK;
}
