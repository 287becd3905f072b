// SPDX-License-Identifier: MIT
// The learning rate of a step: a pure function of the schedule and the step.
//
// During warm-up step s of the W steps in `warmup` epochs has (s + 1) / W of
// the rate, so that the first step is not 0 and the last has the full rate. A
// cosine past its last epoch stays at 0.
//
// The cosine is that of the C library, whose last bit may differ between
// machines. The workers of a job and a resumed run use the same library and
// have the same rates.
#include "train/schedule.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "data/file.h"

enum { NUMBER_SIZE = 24 };

static const double pi = 3.14159265358979323846;

// Digits and a point only: strtod alone accepts "inf", "0x10" and blanks.
static bool parse_epochs(const char *text, size_t len, double *out)
{
    char number[NUMBER_SIZE];
    if (len >= sizeof(number) || strspn(text, "0123456789.") < len) {
        return false;
    }
    memcpy(number, text, len);
    number[len] = '\0';
    char *end;
    *out = strtod(number, &end);
    return end != number && *end == '\0';
}

lac_status train_milestones_parse(const char *text, train_schedule *out)
{
    double found[TRAIN_MILESTONES_MAX];
    size_t count = 0;
    const char *item = *text == '\0' ? NULL : text;
    while (item != NULL) {
        const size_t len = strcspn(item, ",");
        double epochs = 0;
        if (!parse_epochs(item, len, &epochs)) {
            return lac_fail(
                LAC_ERR_INVALID, "milestones: '%.*s' is not a number of epochs",
                (int)(len < NUMBER_SIZE ? len : NUMBER_SIZE), item);
        }
        if (count == TRAIN_MILESTONES_MAX) {
            return lac_fail(
                LAC_ERR_INVALID, "milestones: too many, expected at most %d",
                TRAIN_MILESTONES_MAX);
        }
        if (count > 0 && epochs <= found[count - 1]) {
            return lac_fail(
                LAC_ERR_INVALID,
                "milestones: %g follows %g, expected a later epoch", epochs,
                found[count - 1]);
        }
        found[count++] = epochs;
        item = item[len] == ',' ? item + len + 1 : NULL;
    }
    memcpy(out->milestones, found, count * sizeof(*found));
    out->milestone_count = count;
    return LAC_OK;
}

static double rate_at(const train_schedule *s, double epoch)
{
    double rate = s->rate;
    switch (s->course) {
    case TRAIN_STEP:
        for (size_t i = 0; i < s->milestone_count; i++) {
            rate /= epoch >= s->milestones[i] ? 10 : 1;
        }
        return rate;
    case TRAIN_COSINE:
        return epoch < s->epochs ? rate * (1 + cos(pi * epoch / s->epochs)) / 2
                                 : 0;
    case TRAIN_CONSTANT:
    default:
        return rate;
    }
}

double train_rate(
    const train_schedule *schedule, uint64_t step, uint64_t epoch_steps)
{
    const double warm_steps = schedule->warmup * (double)epoch_steps;
    const double done = (double)step + 1;
    const double factor = done < warm_steps ? done / warm_steps : 1;
    return factor * rate_at(schedule, (double)step / (double)epoch_steps);
}
