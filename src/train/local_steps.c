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

static uint32_t fragments_of(const train_local_steps *l)
{
    return l->fragments > 1 ? l->fragments : 1;
}

// Steps from a round to the next, whatever its fragment.
static uint64_t stride_of(const train_local_steps *l, uint64_t h)
{
    const uint64_t stride = h / fragments_of(l);
    return stride > 1 ? stride : 1;
}

static lac_status check_turns(const train_local_steps *l, uint64_t h)
{
    if (h % fragments_of(l) != 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--local-steps %llu: expected a multiple of fragments=%u",
            (unsigned long long)h, l->fragments);
    }
    if (l->delay >= stride_of(l, h)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--local-steps %llu: delay=%u, expected less than %llu, the steps "
            "from one exchange to the next",
            (unsigned long long)h, l->delay,
            (unsigned long long)stride_of(l, h));
    }
    return LAC_OK;
}

lac_status train_local_steps_stream(
    train_local_steps *l, uint32_t fragments, uint32_t delay)
{
    train_local_steps s = *l;
    s.fragments = fragments;
    s.delay = delay;
    LAC_TRY(check_turns(&s, s.first > 1 ? s.first : 1));
    if (s.later > 0) {
        LAC_TRY(check_turns(&s, s.later));
    }
    *l = s;
    return LAC_OK;
}

bool train_local_steps_streams(const train_local_steps *l)
{
    return l->fragments > 1 || l->delay > 0;
}

bool train_local_steps_mix(
    const train_local_steps *l, uint64_t step, uint64_t epoch_steps)
{
    const uint64_t from = later_from(l, epoch_steps);
    const uint64_t done = step + 1 - (step < from ? 0 : from);
    const uint64_t h = train_local_steps_at(l, step, epoch_steps);
    return done % stride_of(l, h) == 0;
}

// The rounds of all fragments in the first `steps` steps.
static uint64_t rounds_in(
    const train_local_steps *l, uint64_t steps, uint64_t epoch_steps)
{
    const uint64_t from = later_from(l, epoch_steps);
    const uint64_t early = steps < from ? steps : from;
    return early / stride_of(l, l->first) +
           (steps > from ? (steps - from) / stride_of(l, l->later) : 0);
}

uint32_t train_local_steps_fragment(
    const train_local_steps *l, uint64_t step, uint64_t epoch_steps)
{
    return (uint32_t)(rounds_in(l, step, epoch_steps) % fragments_of(l));
}

uint64_t train_local_steps_rounds(
    const train_local_steps *l, uint32_t fragment, uint64_t steps,
    uint64_t epoch_steps)
{
    const uint64_t all = rounds_in(l, steps, epoch_steps);
    const uint32_t fragments = fragments_of(l);
    const bool ends =
        steps == 0 ||
        (train_local_steps_mix(l, steps - 1, epoch_steps) &&
         train_local_steps_fragment(l, steps - 1, epoch_steps) == fragment);
    return all / fragments + (fragment < all % fragments) + (ends ? 0 : 1);
}

bool train_local_steps_any(const train_local_steps *l)
{
    return l->first > 1 || l->later > 1;
}
