// SPDX-License-Identifier: MIT
// Axes. Steps between ticks are 1, 2 or 5 times a power of 10; those of times
// follow the clock above a minute.
#include "cli/page/scale.h"

#include <math.h>
#include <stdio.h>

#include "cli/plan/text.h"

enum { STEPS = 4 }; // about as many intervals between ticks

static const double VALUE_MAX = 1e150;
static const double LOG_RATIO = 30;
static const double DECADE = 10;

bool page_usable(double value)
{
    return fabs(value) <= VALUE_MAX;
}

void page_range_add(page_range *range, double value)
{
    if (!page_usable(value)) {
        return;
    }
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
    if (value > 0) {
        range->positive = fmin(range->positive, value);
    }
}

const char *page_value(page_kind kind, double value, char text[PAGE_VALUE_SIZE])
{
    char unit[PLAN_TEXT_SIZE];
    if (!isfinite(value)) {
        (void)snprintf(text, PAGE_VALUE_SIZE, "-");
    } else if (value == 0 && kind == PAGE_SECONDS) {
        (void)snprintf(text, PAGE_VALUE_SIZE, "0 s");
    } else if (kind == PAGE_PERCENT) {
        (void)snprintf(text, PAGE_VALUE_SIZE, "%.2f %%", 100 * value);
    } else if (kind == PAGE_COUNT) {
        (void)snprintf(
            text, PAGE_VALUE_SIZE, "%.*g", value == floor(value) ? 15 : 4,
            value);
    } else if (kind == PAGE_BYTES && value >= 0 && value < 1000) {
        (void)snprintf(text, PAGE_VALUE_SIZE, "%.0f B", value);
    } else if (kind == PAGE_BYTES && value >= 0) {
        (void)snprintf(
            text, PAGE_VALUE_SIZE, "%s",
            value < 1e20 ? plan_bytes(value, unit) : ">99 EB");
    } else if (kind == PAGE_SECONDS && value >= 0) {
        (void)snprintf(text, PAGE_VALUE_SIZE, "%s", plan_seconds(value, unit));
    } else {
        (void)snprintf(text, PAGE_VALUE_SIZE, "%.4g", value);
    }
    return text;
}

// The least step of the clock that is at least `step`.
static double clock_step(double step)
{
    static const double steps[] = {60,   120,  300,   600,   1200,  1800,
                                   3600, 7200, 14400, 21600, 43200, 86400};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (steps[i] >= step) {
            return steps[i];
        }
    }
    return 86400 * ceil(step / 86400);
}

static double nice_step(page_kind kind, double span)
{
    const double rough = span / STEPS;
    const double power = pow(10, floor(log10(rough)));
    const double digit = rough / power;
    const double step = power * (digit < 1.5   ? 1
                                 : digit < 3.5 ? 2
                                 : digit < 7.5 ? 5
                                               : 10);
    if (kind == PAGE_SECONDS && step > 20) {
        return clock_step(step);
    }
    return kind == PAGE_COUNT ? fmax(1, step) : step;
}

static void make_linear(page_scale *s)
{
    if (!(s->high > s->low)) {
        const double part = s->low == 0 ? 1 : 0.1 * fabs(s->low);
        const double around = s->kind == PAGE_COUNT ? fmax(1, part) : part;
        s->low -= around;
        s->high += around;
    }
    const double step = nice_step(s->kind, s->high - s->low);
    s->low = step * floor(s->low / step + 1e-9);
    s->high = fmax(s->low + step, step * ceil(s->high / step - 1e-9));
    for (size_t i = 0; i < PAGE_TICKS_MAX; i++) {
        const double tick = s->low + (double)i * step;
        if (tick > s->high + step / 2) {
            break;
        }
        // Not a remainder of rounding in place of 0.
        s->ticks[s->tick_count++] = fabs(tick) < step / 1e6 ? 0 : tick;
    }
}

// Less than a decade has the ticks of a linear axis.
static void make_short_logarithmic(page_scale *s)
{
    page_scale linear = *s;
    make_linear(&linear);
    for (size_t i = 0; i < linear.tick_count; i++) {
        if (linear.ticks[i] > 0) {
            s->ticks[s->tick_count++] = linear.ticks[i];
        }
    }
    s->low = linear.low > 0 ? linear.low : s->low;
    s->high = linear.high;
}

// Ticks at powers of 10; between them at 2 and 5 if they are few.
static void make_logarithmic(page_scale *s)
{
    const int first = (int)ceil(log10(s->low) - 1e-9);
    const int last = (int)floor(log10(s->high) + 1e-9);
    const int stride = 1 + (last - first) / 7;
    const bool dense = last - first < 3;
    for (int power = first - 1; power <= last; power += dense ? 1 : stride) {
        for (int digit = 1; digit <= 5; digit = digit == 2 ? 5 : 2 * digit) {
            const double tick = digit * pow(10, power);
            if ((digit == 1 || dense) && tick >= s->low * (1 - 1e-9) &&
                tick <= s->high * (1 + 1e-9) &&
                s->tick_count < PAGE_TICKS_MAX) {
                s->ticks[s->tick_count++] = tick;
            }
        }
    }
}

bool page_is_logarithmic(page_form form, const page_range *range)
{
    return range->high > 0 &&
           (form == PAGE_LOG ||
            (form == PAGE_WIDE && range->high > LOG_RATIO * range->positive));
}

bool page_scale_make(
    page_kind kind, page_form form, const page_range *range, page_scale *out)
{
    if (!(range->low <= range->high)) {
        return false;
    }
    page_scale s = {
        .kind = kind,
        .logarithmic = page_is_logarithmic(form, range),
        .low = form == PAGE_FROM_ZERO ? fmin(0, range->low) : range->low,
        .high = range->high,
    };
    if (s.logarithmic) {
        s.low = range->positive;
    }
    if (!s.logarithmic) {
        make_linear(&s);
    } else if (s.high < DECADE * s.low) {
        make_short_logarithmic(&s);
    } else {
        make_logarithmic(&s);
    }
    *out = s;
    return true;
}

bool page_scale_is_major(const page_scale *s, size_t index)
{
    const double power = log10(s->ticks[index]);
    return !s->logarithmic || fabs(power - round(power)) < 1e-9;
}

double page_scale_place(const page_scale *s, double value)
{
    if (!page_usable(value) || (s->logarithmic && value <= 0)) {
        return (double)NAN;
    }
    return s->logarithmic ? log(value / s->low) / log(s->high / s->low)
                          : (value - s->low) / (s->high - s->low);
}

// "2.5 MB", without trailing zeros.
static void tick_bytes(double value, char text[PAGE_VALUE_SIZE])
{
    static const char *const units[] = {"B",  "kB", "MB", "GB",
                                        "TB", "PB", "EB"};
    size_t unit = 0;
    while (fabs(value) >= 999.5 && unit < 6) {
        value /= 1000;
        unit++;
    }
    (void)snprintf(text, PAGE_VALUE_SIZE, "%.3g %s", value, units[unit]);
}

static void tick_seconds(double value, double step, char text[PAGE_VALUE_SIZE])
{
    const bool hours = step >= 3600, minutes = step >= 60;
    (void)snprintf(
        text, PAGE_VALUE_SIZE, "%.4g %s",
        hours     ? value / 3600
        : minutes ? value / 60
                  : value,
        hours     ? "h"
        : minutes ? "min"
                  : "s");
}

const char *page_scale_tick(
    const page_scale *s, size_t index, char text[PAGE_VALUE_SIZE])
{
    const double value = s->ticks[index];
    const double step = s->tick_count > 1 ? s->ticks[1] - s->ticks[0] : value;
    if (value == 0 && s->kind != PAGE_PERCENT) {
        (void)snprintf(text, PAGE_VALUE_SIZE, "0");
    } else if (s->kind == PAGE_BYTES) {
        tick_bytes(value, text);
    } else if (s->kind == PAGE_SECONDS) {
        tick_seconds(value, step, text);
    } else if (s->kind == PAGE_PERCENT) {
        (void)snprintf(text, PAGE_VALUE_SIZE, "%.6g %%", 100 * value);
    } else if (s->kind == PAGE_COUNT) {
        (void)snprintf(text, PAGE_VALUE_SIZE, "%.15g", value);
    } else {
        (void)snprintf(text, PAGE_VALUE_SIZE, "%.4g", value);
    }
    return text;
}
