// SPDX-License-Identifier: MIT
// How fast a compressor is, measured against memcpy.
#ifndef LACONIC_CLI_BENCH_COMPRESSOR_H
#define LACONIC_CLI_BENCH_COMPRESSOR_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

// The buffers of all measurements, touched and never all at one offset.
typedef struct cli_bench {
    size_t n;
    size_t runs;
    uint64_t seed;
    float *x;      // what is compressed: normal deviates
    float *y;      // what is added to, and where memcpy writes
    double *times; // of the runs and their memcpys, for the medians
    void *block;
    unsigned char *others; // what fills the caches; NULL for small tensors
    size_t others_size;
} cli_bench;

// Medians of one operation and of the memcpys of the same values that took
// turns with it.
typedef struct cli_bench_time {
    double seconds;
    double memcpy;
} cli_bench_time;

typedef struct cli_bench_result {
    lac_shape shape; // of the values that were compressed
    size_t payload_len;
    cli_bench_time encode;
    cli_bench_time decode_add;
    cli_bench_time encode_add; // with error memory, settled
} cli_bench_result;

// cli_bench_init gets all memory for tensors of n values and fills it.
// Fails with LAC_ERR_NOMEM.
lac_status cli_bench_init(cli_bench *b, size_t n, size_t runs, uint64_t seed);

// cli_bench_fini releases what cli_bench_init got. A zeroed struct is allowed.
void cli_bench_fini(cli_bench *b);

// cli_bench_now returns seconds on a clock that only counts up.
double cli_bench_now(void);

// cli_bench_forget makes the caches forget a large tensor, by way of other
// memory; a small one is measured in the caches.
void cli_bench_forget(const cli_bench *b);

// cli_bench_memcpy returns the seconds that it takes to copy so many bytes of x
// to y, from forgetful caches.
double cli_bench_memcpy(const cli_bench *b, size_t size);

// cli_bench_median returns the median of at least one number and leaves them
// sorted.
double cli_bench_median(double *numbers, size_t count);

// cli_bench_measure runs `c` on the n values as a vector, or as a nearly
// square matrix (of up to sqrt(n) values fewer) if a matrix makes a difference
// to it. Fails as the compressor does or with LAC_ERR_NOMEM.
lac_status cli_bench_measure(
    cli_bench *b, lac_compressor *c, cli_bench_result *out);

#endif
