// SPDX-License-Identifier: MIT
// Synchronisation of the workers: they send reports to worker 0, optionally
// with values, and worker 0 broadcasts its decision.
//
//     train_sync_gather(s, &report, x, n, &reports, &rows);
//     if (reports != NULL) {
//         decision = decide(reports, rows);         // worker 0 alone
//     }
//     train_sync_broadcast(s, &decision, NULL, 0);  // then equal everywhere
//
// Threads lend each other their values, processes send them. Worker 0 reads the
// same rows in the same order either way, so the results have the same bits.
// These messages do not count as traffic of an algorithm.
#ifndef LACONIC_TRAIN_SYNC_H
#define LACONIC_TRAIN_SYNC_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

typedef struct train_sync train_sync;

// Report and decision are structs of the caller with these sizes, without
// pointers.
typedef struct train_sync_options {
    lac_transport *transport;
    size_t report_size;
    size_t decision_size;
    double timeout;    // seconds that a worker may be late
    uint32_t excluded; // 1 + a worker that no mean includes; 0: none
} train_sync_options;

// train_sync_open allocates the buffers of a worker. Close it after the
// transport was left. Fails with LAC_ERR_NOMEM; `*out` is then NULL.
lac_status train_sync_open(train_sync **out, const train_sync_options *options);
void train_sync_close(train_sync *s);

// train_sync_gather sends `report` to worker 0, and values[0..n) too unless
// `values` is NULL. On worker 0 it points `*reports_out` at the reports of all
// workers and `*rows_out` at their values (NULL without values) until the next
// call; on the others both become NULL. The values must not change before the
// next call returns.
// Fails with LAC_ERR_PEER or LAC_ERR_CORRUPT.
lac_status train_sync_gather(
    train_sync *s, const void *report, const float *values, size_t n,
    const void **reports_out, const float *const **rows_out);

// train_sync_broadcast replaces the decision of every worker by that of worker
// 0, and values[0..n) too unless `values` is NULL. Between two calls there must
// be another exchange, such as a gather: until then others may be reading.
// Fails with LAC_ERR_PEER or LAC_ERR_CORRUPT.
lac_status train_sync_broadcast(
    train_sync *s, void *decision_inout, float *values, size_t n);

// train_sync_share replaces bytes[0..len) by those of worker 0. All workers
// pass the same length. The bytes must not change before the next call returns.
// Fails with LAC_ERR_PEER or LAC_ERR_CORRUPT.
lac_status train_sync_share(train_sync *s, void *bytes, size_t len);

// train_sync_mean writes the mean of x[0..n) over all workers that are not
// excluded to `mean_out`, with the same bits everywhere, and the mean over
// these workers of the squared distance to it to `*distance_out`. It works in
// pieces, so that worker 0 needs little memory.
// Fails with LAC_ERR_PEER or LAC_ERR_CORRUPT.
lac_status train_sync_mean(
    train_sync *s, const float *x, size_t n, float *mean_out,
    double *distance_out);

// train_sync_difference writes x[0..n) of worker 0 minus that of worker `peer`
// to `out` on worker 0; on the others `out` is not used. It works in pieces
// too. Fails with LAC_ERR_PEER or LAC_ERR_CORRUPT.
lac_status train_sync_difference(
    train_sync *s, uint32_t peer, const float *x, size_t n, float *out);

#endif
