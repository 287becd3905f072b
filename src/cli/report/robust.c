// SPDX-License-Identifier: MIT
// Removes outliers in groups: two failed runs with similar values hide each
// other from a rule that looks at one at a time.
#include "cli/report/robust.h"

#include <stdlib.h>

enum {
    CURVES_MIN = 4, // fewer have no majority
    SHARE = 3,      // of the curves, one in so many may be an outlier
};

static const double FLAT = 0.25; // of the axis

static int ascending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

// The narrowest range beyond which at most so many curves extend, below or
// above. Both arrays are sorted.
static cli_interval narrowest(
    const double *lows, const double *highs, size_t count, size_t outliers)
{
    cli_interval best = {lows[0], highs[count - 1 - outliers]};
    for (size_t below = 1; below <= outliers; below++) {
        const cli_interval range = {
            lows[below], highs[count - 1 - (outliers - below)]};
        if (range.high - range.low < best.high - best.low) {
            best = range;
        }
    }
    return best;
}

cli_interval cli_robust_range(double *lows, double *highs, size_t count)
{
    const size_t most = count < CURVES_MIN ? 0 : count / SHARE;
    qsort(lows, count, sizeof(*lows), ascending);
    qsort(highs, count, sizeof(*highs), ascending);
    cli_interval range = {lows[0], highs[count - 1]};
    for (size_t outliers = 1; outliers <= most; outliers++) {
        const cli_interval rest = narrowest(lows, highs, count, outliers);
        if (rest.high > rest.low &&
            rest.high - rest.low < FLAT * (range.high - range.low)) {
            range = rest;
        }
    }
    return range;
}
