// SPDX-License-Identifier: MIT
// A pure function of the step, so that a resumed run mixes after the same
// steps.
#include "train/local_steps.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 1000000000, DIGITS_MAX = 10 };

// Reads a whole number from 1 on, and moves `*text` after it.
static bool take_whole(const char **text, uint64_t *out)
{
    const size_t len = strspn(*text, "0123456789");
    if (len == 0 || len > DIGITS_MAX) {
        return false;
    }
    *out = strtoull(*text, NULL, 10);
    *text += len;
    return *out >= 1 && *out <= STEPS_MAX;
}

lac_status train_local_steps_parse(const char *text, train_local_steps *out)
{
    train_local_steps l = {0};
    const char *rest = text;
    bool good = take_whole(&rest, &l.first);
    if (good && *rest == ':') {
        rest++;
        good = take_whole(&rest, &l.later) && *rest++ == '@' &&
               take_whole(&rest, &l.from);
    }
    if (!good || *rest != '\0') {
        return lac_fail(
            LAC_ERR_INVALID,
            "--local-steps is \"%.100s\", expected a number of steps from 1 "
            "on, or H:H@EPOCH such as 1:16@150",
            text);
    }
    *out = l;
    return LAC_OK;
}

// The step from which on there are `later` of them.
static uint64_t later_from(const train_local_steps *l, uint64_t epoch_steps)
{
    return l->later == 0 ? UINT64_MAX : l->from * epoch_steps;
}

uint64_t train_local_steps_at(
    const train_local_steps *l, uint64_t step, uint64_t epoch_steps)
{
    const uint64_t h = step < later_from(l, epoch_steps) ? l->first : l->later;
    return h > 1 ? h : 1;
}

bool train_local_steps_mix(
    const train_local_steps *l, uint64_t step, uint64_t epoch_steps)
{
    const uint64_t from = later_from(l, epoch_steps);
    const uint64_t done = step + 1 - (step < from ? 0 : from);
    return done % train_local_steps_at(l, step, epoch_steps) == 0;
}

uint64_t train_local_steps_rounds(
    const train_local_steps *l, uint64_t steps, uint64_t epoch_steps)
{
    const uint64_t from = later_from(l, epoch_steps);
    const uint64_t early = steps < from ? steps : from;
    const uint64_t rounds = early / (l->first > 1 ? l->first : 1) +
                            (steps > from ? (steps - from) / l->later : 0);
    const bool ends =
        steps == 0 || train_local_steps_mix(l, steps - 1, epoch_steps);
    return rounds + (ends ? 0 : 1);
}

bool train_local_steps_any(const train_local_steps *l)
{
    return l->first > 1 || l->later > 1;
}
