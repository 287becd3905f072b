// SPDX-License-Identifier: MIT
// Measures compressors. A run is a memcpy of the same floats, then each
// operation once, so that a machine that slows down slows all of them; the
// median of the runs is the result. One run before the first makes every page
// present.
#include "cli/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    // Buffers that begin at the same place of a 2 MiB page, or of a 4 KiB page,
    // fight for the same lines of the caches; these steps keep them apart, and
    // apart from the memory that the library gets, which begins a page.
    STAGGER = 4096 + 64,
    LARGE_PAGE = 2 << 20,
    OPERATIONS = 4,
};

double cli_bench_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The place for buffer `index`, behind `*at_inout`: an odd multiple of STAGGER
// beyond a multiple of LARGE_PAGE.
static void *place(
    unsigned char *block, size_t *at_inout, size_t index, size_t size)
{
    const size_t start = (*at_inout + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    const size_t at = start + (2 * index + 1) * STAGGER;
    *at_inout = at + size;
    return block + at;
}

lac_status cli_bench_init(cli_bench *b, size_t n, size_t runs, uint64_t seed)
{
    const size_t size = n * sizeof(float);
    *b = (cli_bench){.n = n, .runs = runs, .seed = seed};
    b->times = calloc(runs * OPERATIONS, sizeof(double));
    b->block =
        aligned_alloc(LARGE_PAGE, (2 * size / LARGE_PAGE + 6) * LARGE_PAGE);
    if (b->times == NULL || b->block == NULL) {
        cli_bench_fini(b);
        return lac_fail(LAC_ERR_NOMEM, "bench: no memory for %zu values", n);
    }
    size_t at = 0;
    b->x = place(b->block, &at, 1, size);
    b->y = place(b->block, &at, 2, size);
    const lac_key key = lac_key_make(
        seed, LAC_PURPOSE_DATA, 0, lac_scope_shared(), lac_name_hash("bench"));
    for (size_t i = 0; i < n; i++) {
        b->x[i] = lac_key_normal(&key, (uint32_t)i);
    }
    memcpy(b->y, b->x, size);
    return LAC_OK;
}

void cli_bench_fini(cli_bench *b)
{
    free(b->block);
    free(b->times);
    *b = (cli_bench){0};
}

// What one compressor needs beside the buffers of all.
typedef struct subject {
    lac_compressor *c;
    lac_memory *memory;
    lac_shape shape;
    uint8_t *payload;
    size_t cap, len;
} subject;

// Runs everything once; times[0..OPERATIONS) get the seconds.
static lac_status run_once(
    const cli_bench *b, subject *s, uint64_t round, double *times)
{
    const lac_key key = lac_key_make(
        b->seed, LAC_PURPOSE_COMPRESS, round, lac_scope_shared(),
        lac_name_hash("bench"));
    const double start = cli_bench_now();
    memcpy(b->y, b->x, s->shape.rows * s->shape.cols * sizeof(float));
    const double copied = cli_bench_now();
    lac_status status = lac_compressor_encode(
        s->c, &key, s->shape, b->x, s->payload, s->cap, &s->len);
    const double encoded = cli_bench_now();
    if (status == LAC_OK) {
        status = lac_compressor_decode_add(
            s->c, &key, s->shape, s->payload, s->len, 0.5f, b->y);
    }
    const double added = cli_bench_now();
    size_t len = 0;
    if (status == LAC_OK) {
        status =
            lac_memory_encode(s->memory, &key, b->x, s->payload, s->cap, &len);
    }
    if (status == LAC_OK) {
        status = lac_memory_settle(s->memory, &key, s->payload, len);
    }
    times[0] = copied - start;
    times[1] = encoded - copied;
    times[2] = added - encoded;
    times[3] = cli_bench_now() - added;
    return status;
}

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double cli_bench_median(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof(*numbers), compare);
    return (numbers[(count - 1) / 2] + numbers[count / 2]) / 2;
}

// The median of one operation over all runs.
static double median(cli_bench *b, size_t operation)
{
    return cli_bench_median(b->times + operation * b->runs, b->runs);
}

static lac_status run_all(cli_bench *b, subject *s, cli_bench_result *out)
{
    double times[OPERATIONS];
    lac_status status = run_once(b, s, 0, times);
    for (size_t run = 0; run < b->runs && status == LAC_OK; run++) {
        status = run_once(b, s, run + 1, times);
        for (size_t i = 0; i < OPERATIONS; i++) {
            b->times[i * b->runs + run] = times[i];
        }
    }
    if (status != LAC_OK) {
        return status;
    }
    *out = (cli_bench_result){
        .shape = s->shape,
        .payload_len = s->len,
        .memcpy = median(b, 0),
        .encode = median(b, 1),
        .decode_add = median(b, 2),
        .encode_add = median(b, 3),
    };
    return LAC_OK;
}

// A compressor that looks at rows and columns shows it in its bound.
static lac_shape choose_shape(const lac_compressor *c, size_t n)
{
    const size_t rows = (size_t)sqrt((double)n);
    const lac_shape matrix = {rows, n / rows};
    const lac_shape vector = {matrix.rows * matrix.cols, 1};
    const bool same = lac_compressor_bound(c, matrix, LAC_SCOPE_SHARED) ==
                      lac_compressor_bound(c, vector, LAC_SCOPE_SHARED);
    return same ? (lac_shape){n, 1} : matrix;
}

lac_status cli_bench_measure(
    cli_bench *b, lac_compressor *c, cli_bench_result *out)
{
    subject s = {.c = c, .shape = choose_shape(c, b->n)};
    lac_status status = lac_memory_open(&s.memory, c, s.shape);
    if (status != LAC_OK) {
        return status;
    }
    size_t at = 0;
    s.cap = lac_compressor_bound(c, s.shape, LAC_SCOPE_SHARED);
    void *const block =
        aligned_alloc(LARGE_PAGE, (s.cap / LARGE_PAGE + 2) * LARGE_PAGE);
    if (block == NULL) {
        status = lac_fail(
            LAC_ERR_NOMEM, "bench: no memory for a payload of %zu bytes",
            s.cap);
    } else {
        s.payload = place(block, &at, 3, s.cap);
        status = run_all(b, &s, out);
    }
    free(block);
    lac_memory_close(s.memory);
    return status;
}
