// SPDX-License-Identifier: MIT
// Meetings: after some of the rounds all workers tell worker 0 how they are,
// now and then with all their values, and are told when to meet again.
//
// Threads lend each other their values, processes send them: worker 0 sees the
// same rows in the same order and so comes to the same numbers.
#ifndef LACONIC_CLI_MEETING_H
#define LACONIC_CLI_MEETING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

// What a worker says.
typedef struct cli_report {
    double magnitude; // of its largest value; infinite also for NaN
    lac_traffic traffic;
} cli_report;

// What worker 0 decides.
typedef struct cli_verdict {
    uint64_t next;        // meet again when so many rounds are done
    uint32_t with_values; // and bring your values
    uint32_t stop;        // no round follows
} cli_verdict;

typedef struct cli_meeting cli_meeting;

// cli_meeting_open prepares the meetings of a worker whose values are n floats.
// Close it after the transport was left. Fails with LAC_ERR_NOMEM.
lac_status cli_meeting_open(
    cli_meeting **out, lac_transport *transport, size_t n, double timeout);
void cli_meeting_close(cli_meeting *m);

// cli_meeting_gather tells worker 0 `report`, and `values` unless it is NULL.
// There it points `*reports_out` at the reports of all workers, its own
// included, and `*rows_out` at their values (NULLs without values), until the
// next call; elsewhere both are NULL.
// Fails with LAC_ERR_PEER or LAC_ERR_CORRUPT.
lac_status cli_meeting_gather(
    cli_meeting *m, const cli_report *report, const float *values,
    const cli_report **reports_out, const float *const **rows_out);

// cli_meeting_decide makes the verdict of worker 0 that of all workers.
// Fails with LAC_ERR_PEER or LAC_ERR_CORRUPT.
lac_status cli_meeting_decide(cli_meeting *m, cli_verdict *verdict_inout);

#endif
