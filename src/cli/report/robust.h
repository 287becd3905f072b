// SPDX-License-Identifier: MIT
// The range of an axis that a few outlying curves do not stretch.
#ifndef LACONIC_CLI_REPORT_ROBUST_H
#define LACONIC_CLI_REPORT_ROBUST_H

#include <stddef.h>

typedef struct cli_interval {
    double low, high;
} cli_interval;

// cli_robust_range returns the range of an axis for `count` curves, at least
// one, from the least and the greatest value of each, which must be finite. It
// holds all values unless a few curves would flatten the others: up to a third
// of at least four curves may extend beyond it, if the others would have less
// than a quarter of the axis otherwise. Others that are all one constant cannot
// be flattened. Both arrays are sorted.
cli_interval cli_robust_range(double *lows, double *highs, size_t count);

#endif
