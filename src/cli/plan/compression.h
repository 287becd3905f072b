// SPDX-License-Identifier: MIT
// The time that a worker computes in a round: encoding, decoding and the
// algorithm's own passes over the model, without waiting for the network.
//
// Unless it is measured, it is taken from a table of a reference machine
// (compression_times.def), in memcpys of the model, times a memcpy that is
// measured on this machine. A measurement is that of `laconic bench`, and is
// stored in the cache folder of the user.
#ifndef LACONIC_CLI_PLAN_COMPRESSION_H
#define LACONIC_CLI_PLAN_COMPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <laconic/laconic.h>

typedef struct plan_speed plan_speed;

// plan_speed_open prepares the estimates, or with `measure` measurements.
// Fails with LAC_ERR_NOMEM.
lac_status plan_speed_open(plan_speed **out, bool measure);
void plan_speed_close(plan_speed *s);

// plan_compression_seconds writes the time of a round of an algorithm and its
// compressor, or NULL, for a worker that gets the payloads of `degree` others:
// its neighbours, a mean, or all other workers if the algorithm averages
// gradients. It is 0 for a single worker, which sends nothing, and for
// allreduce, which others are compared with: it compresses nothing, and adds
// what has arrived while the rest is on its way. A measurement that is not
// stored takes seconds, and is announced on stderr.
// Fails like lac_algorithm_cost or, if it measures, like
// cli_bench_step_measure.
lac_status plan_compression_seconds(
    plan_speed *s, const char *algorithm, const char *compressor,
    const lac_layout *layout, uint32_t workers, double degree, double *out);

// plan_speed_source returns one line, shorter than PLAN_SOURCE_SIZE, about the
// origin of the times so far.
enum { PLAN_SOURCE_SIZE = 256 };
const char *plan_speed_source(const plan_speed *s);

#endif
