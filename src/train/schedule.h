// SPDX-License-Identifier: MIT
// How the learning rate changes with time.
//
//     constant   rate
//     step       rate, a tenth of it from every milestone on
//     cosine     rate * (1 + cos(pi t / T)) / 2 of a run of T epochs
//
// In the first `warmup` epochs that is multiplied by a number that rises
// linearly to 1, step by step. Everything counts in epochs, a step of an epoch
// being its part.
#ifndef LACONIC_TRAIN_SCHEDULE_H
#define LACONIC_TRAIN_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

typedef enum train_course {
    TRAIN_CONSTANT,
    TRAIN_STEP,
    TRAIN_COSINE,
} train_course;

enum { TRAIN_MILESTONES_MAX = 16 };

typedef struct train_schedule {
    train_course course;
    double rate;
    double warmup; // epochs
    double epochs; // of the whole run
    double milestones[TRAIN_MILESTONES_MAX];
    size_t milestone_count;
} train_schedule;

// train_milestones_parse reads epochs as the user writes them, "150,225",
// ascending; an empty text is none.
// Fails with LAC_ERR_INVALID, changing nothing.
lac_status train_milestones_parse(const char *text, train_schedule *out);

// train_rate returns the learning rate of step `step`, counted from 0, when an
// epoch has `epoch_steps`.
double train_rate(
    const train_schedule *schedule, uint64_t step, uint64_t epoch_steps);

#endif
