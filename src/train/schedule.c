// SPDX-License-Identifier: MIT
// The learning rate of a step: a pure function of the schedule and the step.
//
// During warm-up step s of the W steps in `warmup` epochs has (s + 1) / W of
// the rate, so that the first step is not 0 and the last has the full rate. A
// cosine past its last epoch stays at 0. The inverse schedule is that of
// strongly convex problems (CHOCO, ICML 2019): step t, counted from 0, has the
// rate a / (lambda (t + b)), where lambda is the weight decay.
//
// The cosine is that of the C library, whose last bit may differ between
// machines. The workers of a job and a resumed run use the same library and
// have the same rates.
#include "train/schedule.h"

#include <float.h>
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

// Digits, a point and an exponent only; finite and above 0.
static bool parse_positive(const char *text, const char **end_out, double *out)
{
    char *end;
    const double value = strtod(text, &end);
    const size_t len = (size_t)(end - text);
    *end_out = end;
    *out = value;
    return len > 0 && strspn(text, "0123456789.eE+-") >= len && value > 0 &&
           value <= DBL_MAX;
}

lac_status train_course_parse(const char *text, train_schedule *out)
{
    static const char *const words[] = {"constant", "step", "cosine"};
    static const char inverse[] = "inverse:";
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, words[i]) == 0) {
            out->course = (train_course)i;
            return LAC_OK;
        }
    }
    if (strncmp(text, inverse, strlen(inverse)) == 0) {
        const char *end;
        double a, b;
        if (parse_positive(text + strlen(inverse), &end, &a) && *end == ',' &&
            parse_positive(end + 1, &end, &b) && *end == '\0') {
            out->course = TRAIN_INVERSE;
            out->a = a;
            out->b = b;
            return LAC_OK;
        }
    }
    return lac_fail(
        LAC_ERR_INVALID,
        "--schedule is \"%.100s\", expected constant, step, cosine or "
        "inverse:A,B with numbers above 0",
        text);
}

double train_inverse_rate(const train_schedule *schedule, double lambda)
{
    return schedule->a / (lambda * schedule->b);
}

static double rate_at(const train_schedule *s, uint64_t step, double epoch)
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
    case TRAIN_INVERSE:
        return rate * s->b / (s->b + (double)step);
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
    return factor * rate_at(schedule, step, (double)step / (double)epoch_steps);
}
