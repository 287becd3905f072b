// SPDX-License-Identifier: MIT
// Horizontal bars of times that add up, as SVG.
#ifndef LACONIC_CLI_PAGE_BARS_H
#define LACONIC_CLI_PAGE_BARS_H

#include <stdio.h>

#include "cli/page/scale.h"

enum { PAGE_PARTS_MAX = 4 };

// Parts that are not finite or below 0 are left out.
typedef struct page_bar {
    const char *name;
    double parts[PAGE_PARTS_MAX]; // seconds
} page_bar;

// page_bars_put prints a legend and the bars. `parts` are the names of the
// first of the parts, and end with NULL.
void page_bars_put(
    FILE *f, const char *title, const char *const *parts, const page_bar *bars,
    size_t count);

#endif
