// SPDX-License-Identifier: MIT
// Meetings: now and then all workers tell worker 0 how they are, perhaps with
// some of their values, and are told what worker 0 makes of it.
//
//     train_meeting_gather(m, &report, x, n, &reports, &rows);
//     if (reports != NULL) {
//         verdict = judge(reports, rows);         // worker 0 alone
//     }
//     train_meeting_decide(m, &verdict, NULL, 0); // the same everywhere
//
// Threads lend each other their values, processes send them: worker 0 sees the
// same rows in the same order and so comes to the same numbers. What is said
// here does not count as traffic of an algorithm.
#ifndef LACONIC_TRAIN_MEETING_H
#define LACONIC_TRAIN_MEETING_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

typedef struct train_meeting train_meeting;

// What a worker says and what worker 0 decides are structs of the caller's, of
// these sizes and without pointers.
typedef struct train_meeting_options {
    lac_transport *transport;
    size_t report_size;
    size_t verdict_size;
    double timeout; // seconds that somebody may be late
} train_meeting_options;

// train_meeting_open prepares the meetings of a worker. Close it after the
// transport was left. Fails with LAC_ERR_NOMEM.
lac_status train_meeting_open(
    train_meeting **out, const train_meeting_options *options);
void train_meeting_close(train_meeting *m);

// train_meeting_gather tells worker 0 `report`, and values[0..n) unless that is
// NULL. There it points `*reports_out` at the reports of all workers, its own
// included, and `*rows_out` at their values (NULLs without values), until the
// next call; elsewhere both are NULL. The values must stay as they are until
// the next call returns.
// Fails with LAC_ERR_PEER or LAC_ERR_CORRUPT.
lac_status train_meeting_gather(
    train_meeting *m, const void *report, const float *values, size_t n,
    const void **reports_out, const float *const **rows_out);

// train_meeting_decide makes the verdict of worker 0 that of all workers, and
// values[0..n) too unless that is NULL.
// Fails with LAC_ERR_PEER or LAC_ERR_CORRUPT.
lac_status train_meeting_decide(
    train_meeting *m, void *verdict_inout, float *values, size_t n);

// train_meeting_mean writes the mean of x[0..n) over all workers to `mean_out`,
// with the same bits everywhere, and to `*distance_out` the mean over workers
// of the squared distance to it. Works in pieces, so that worker 0 needs
// little memory.
// Fails like the others.
lac_status train_meeting_mean(
    train_meeting *m, const float *x, size_t n, float *mean_out,
    double *distance_out);

#endif
