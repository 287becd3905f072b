// SPDX-License-Identifier: MIT
// The schedule of the learning rate.
//
//     constant   rate
//     step       rate, divided by 10 at every milestone
//     cosine     rate * (1 + cos(pi t / T)) / 2 of a run of T epochs
//     inverse    rate * b / (t + b) = a / (lambda (t + b)) in step t, counted
//                from 0, with the weight decay lambda
//
// During the first `warmup` epochs the rate is multiplied by a factor that
// rises linearly to 1, step by step. Time is measured in epochs; a step is a
// fraction of one.
#ifndef LACONIC_TRAIN_SCHEDULE_H
#define LACONIC_TRAIN_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

typedef enum train_course {
    TRAIN_CONSTANT,
    TRAIN_STEP,
    TRAIN_COSINE,
    TRAIN_INVERSE,
} train_course;

enum { TRAIN_MILESTONES_MAX = 16 };

typedef struct train_schedule {
    train_course course;
    double rate;   // of step 0, without warm-up
    double warmup; // epochs
    double epochs; // of the whole run
    double milestones[TRAIN_MILESTONES_MAX];
    size_t milestone_count;
    double a, b; // of inverse, both above 0
} train_schedule;

// train_course_parse parses a course as the user writes it: "constant", "step",
// "cosine" or "inverse:A,B". It sets the course, and a and b of inverse.
// Fails with LAC_ERR_INVALID, changing nothing.
lac_status train_course_parse(const char *text, train_schedule *out);

// train_inverse_rate returns the rate of step 0 of inverse, a / (lambda b), for
// a weight decay of `lambda`.
double train_inverse_rate(const train_schedule *schedule, double lambda);

// train_milestones_parse parses ascending epochs as the user writes them,
// "150,225"; an empty text means none.
// Fails with LAC_ERR_INVALID, changing nothing.
lac_status train_milestones_parse(const char *text, train_schedule *out);

// train_rate returns the learning rate of step `step`, counted from 0, if an
// epoch has `epoch_steps` steps.
double train_rate(
    const train_schedule *schedule, uint64_t step, uint64_t epoch_steps);

#endif
