// SPDX-License-Identifier: MIT
// The speed of a compressor, measured against memcpy.
#ifndef LACONIC_CLI_BENCH_COMPRESSOR_H
#define LACONIC_CLI_BENCH_COMPRESSOR_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

// The most values of a tensor, and runs of a measurement.
enum {
    CLI_BENCH_VALUES_MAX = 1 << 30,
    CLI_BENCH_RUNS_MAX = 10000,
    CLI_BENCH_THREADS_MAX = 256,
};

// The buffers of all measurements. Their pages are present, and their offsets
// within a page differ.
typedef struct cli_bench {
    size_t n;
    size_t runs;
    uint64_t seed;
    float *x;      // the input: normal deviates
    float *y;      // the target of additions and of memcpy
    double *times; // of the runs and of their memcpys, for the medians
    void *block;
    unsigned char *eviction; // read to flush the caches; NULL if n is small
    size_t eviction_size;
} cli_bench;

// The medians of one operation and of the memcpys that alternated with it.
typedef struct cli_bench_time {
    double seconds;
    double memcpy;
} cli_bench_time;

// cli_bench_memcpys returns how many times as long as a memcpy it takes.
static inline double cli_bench_memcpys(const cli_bench_time *t)
{
    return t->seconds / t->memcpy;
}

typedef struct cli_bench_result {
    lac_shape shape; // of the compressed values
    size_t payload_len;
    cli_bench_time encode;
    cli_bench_time decode_add;
    cli_bench_time encode_add; // with error memory: encode and settle
} cli_bench_result;

// cli_bench_init allocates and fills the buffers for tensors of n values.
// Fails with LAC_ERR_NOMEM.
lac_status cli_bench_init(cli_bench *b, size_t n, size_t runs, uint64_t seed);

// cli_bench_fini releases the buffers. A zeroed struct is allowed.
void cli_bench_fini(cli_bench *b);

// cli_bench_now returns seconds on a monotonic clock.
double cli_bench_now(void);

// cli_bench_flush_caches evicts a large tensor from the caches by reading other
// memory. Small tensors are measured in the caches.
void cli_bench_flush_caches(const cli_bench *b);

// cli_bench_memcpy returns the seconds that a copy of `size` bytes from x to y
// takes after the caches were flushed.
double cli_bench_memcpy(const cli_bench *b, size_t size);

// cli_bench_median returns the median of at least one number and sorts them.
double cli_bench_median(double *numbers, size_t count);

// cli_bench_measure measures `c` on the n values as a vector or, if the shape
// matters to `c`, as a nearly square matrix, which has up to sqrt(n) values
// fewer.
// Fails like the compressor or with LAC_ERR_NOMEM.
lac_status cli_bench_measure(
    cli_bench *b, lac_compressor *c, cli_bench_result *out);

#endif
