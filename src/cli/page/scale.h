// SPDX-License-Identifier: MIT
// Quantities on a page: their texts, and the axes of charts with their ticks.
#ifndef LACONIC_CLI_PAGE_SCALE_H
#define LACONIC_CLI_PAGE_SCALE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum page_kind {
    PAGE_NUMBER,
    PAGE_PERCENT, // values are fractions
    PAGE_COUNT,   // ticks are whole numbers
    PAGE_BYTES,
    PAGE_SECONDS,
} page_kind;

// How an axis is divided.
typedef enum page_form {
    PAGE_LINEAR,
    PAGE_FROM_ZERO, // linear, and begins at 0
    PAGE_WIDE, // logarithmic if the values differ by more than a factor of 30
    PAGE_LOG,  // logarithmic
} page_form;

// page_value writes a value with three or four digits and its unit, "-" if it
// is not finite.
enum { PAGE_VALUE_SIZE = 48 };
const char *page_value(
    page_kind kind, double value, char text[PAGE_VALUE_SIZE]);

// The least and the greatest of some values. It begins with PAGE_RANGE_EMPTY.
typedef struct page_range {
    double low, high;
    double positive; // the least value above 0
} page_range;
#define PAGE_RANGE_EMPTY                                                       \
    ((page_range){(double)INFINITY, -(double)INFINITY, (double)INFINITY})

// page_range_add widens a range. Values that are not finite, or so large that
// a chart could not place them, are ignored.
void page_range_add(page_range *range, double value);

// page_usable returns whether a range takes such a value.
bool page_usable(double value);

// An axis. Its ends are ticks, or values if it is logarithmic.
enum { PAGE_TICKS_MAX = 16 };
typedef struct page_scale {
    page_kind kind;
    bool logarithmic;
    double low, high;
    size_t tick_count;
    double ticks[PAGE_TICKS_MAX];
} page_scale;

// page_is_logarithmic returns whether an axis of this form is logarithmic. It
// is not if no value is above 0.
bool page_is_logarithmic(page_form form, const page_range *range);

// page_scale_make makes an axis. Returns false if the range is empty.
bool page_scale_make(
    page_kind kind, page_form form, const page_range *range, page_scale *out);

// page_scale_place returns where a value is on an axis, from 0 to 1; NaN if it
// is not there.
double page_scale_place(const page_scale *scale, double value);

// page_scale_is_major returns whether a tick should have a label before others
// have: on a logarithmic axis, a power of 10.
bool page_scale_is_major(const page_scale *scale, size_t index);

// page_scale_tick writes the label of a tick.
const char *page_scale_tick(
    const page_scale *scale, size_t index, char text[PAGE_VALUE_SIZE]);

#endif
