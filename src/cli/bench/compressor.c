// SPDX-License-Identifier: MIT
// Measures compressors. An operation alternates with a memcpy of the same
// floats, so that a machine that slows down slows both. The result is the
// median of the runs. The caches are flushed before each measurement of a large
// tensor: how much of it would remain there depends on other processes that
// share a cache, and a model in training does not fit anyway. An additional
// first run makes every page present.
#include "cli/bench/compressor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    // Buffers with the same offset in a 2 MiB page, or in a 4 KiB page, compete
    // for the same cache lines. This step gives each buffer, and the memory of
    // the library, which begins a page, an offset of its own.
    STAGGER = 4096 + 64,
    LARGE_PAGE = 2 << 20,
    LINE = 64,
    LARGE_TENSOR = 8 << 20,   // bytes; smaller ones may stay in the caches
    CACHE_UNKNOWN = 64 << 20, // bytes, if the system does not report the size
};

double cli_bench_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Returns the position of buffer `index` after `*at_inout`: an odd multiple of
// STAGGER past a multiple of LARGE_PAGE.
static void *place_buffer(
    unsigned char *block, size_t *at_inout, size_t index, size_t size)
{
    const size_t start = (*at_inout + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    const size_t at = start + (2 * index + 1) * STAGGER;
    *at_inout = at + size;
    return block + at;
}

// Twice the size of the largest cache.
static size_t choose_eviction_size(void)
{
    long cache = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return 2 * (cache > 0 ? (size_t)cache : CACHE_UNKNOWN);
}

// The memory is written, since all pages that were never written share one.
static bool allocate_eviction(cli_bench *b)
{
    b->eviction_size = choose_eviction_size();
    b->eviction = malloc(b->eviction_size);
    if (b->eviction != NULL) {
        memset(b->eviction, 1, b->eviction_size);
    }
    return b->eviction != NULL;
}

void cli_bench_flush_caches(const cli_bench *b)
{
    const volatile unsigned char *const memory = b->eviction;
    for (size_t i = 0; memory != NULL && i < b->eviction_size; i += LINE) {
        (void)memory[i];
    }
}

lac_status cli_bench_init(cli_bench *b, size_t n, size_t runs, uint64_t seed)
{
    const size_t size = n * sizeof(float);
    *b = (cli_bench){.n = n, .runs = runs, .seed = seed};
    b->times = calloc(2 * runs, sizeof(double));
    b->block =
        aligned_alloc(LARGE_PAGE, (2 * size / LARGE_PAGE + 6) * LARGE_PAGE);
    if (b->times == NULL || b->block == NULL ||
        (size >= LARGE_TENSOR && !allocate_eviction(b))) {
        cli_bench_fini(b);
        return lac_fail(LAC_ERR_NOMEM, "bench: no memory for %zu values", n);
    }
    size_t at = 0;
    b->x = place_buffer(b->block, &at, 1, size);
    b->y = place_buffer(b->block, &at, 2, size);
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
    free(b->eviction);
    free(b->block);
    free(b->times);
    *b = (cli_bench){0};
}

double cli_bench_memcpy(const cli_bench *b, size_t size)
{
    cli_bench_flush_caches(b);
    const double begun = cli_bench_now();
    memcpy(b->y, b->x, size);
    return cli_bench_now() - begun;
}

// The buffers of one compressor.
typedef struct subject {
    lac_compressor *c;
    lac_memory *memory;
    lac_shape shape;
    uint8_t *payload;
    size_t cap, len;
    float max_magnitude; // of the values, as an algorithm knows it
} subject;

static lac_status bench_encode(
    const cli_bench *b, subject *s, const lac_key *key)
{
    return lac_compressor_encode(
        s->c, key, s->shape, b->x, s->payload, s->cap, &s->len);
}

static lac_status bench_decode_add(
    const cli_bench *b, subject *s, const lac_key *key)
{
    return lac_compressor_decode_add(
        s->c, key, s->shape, s->payload, s->len, 0.5f, b->y);
}

static lac_status bench_encode_add(
    const cli_bench *b, subject *s, const lac_key *key)
{
    size_t len;
    LAC_TRY(lac_memory_encode_bounded(
        s->memory, key, b->x, s->max_magnitude, s->payload, s->cap, &len));
    return lac_memory_settle(s->memory, key, s->payload, len);
}

typedef lac_status operation(const cli_bench *, subject *, const lac_key *);

static lac_status time_operation(
    const cli_bench *b, subject *s, operation *run, uint64_t round,
    cli_bench_time *out)
{
    const lac_key key = lac_key_make(
        b->seed, LAC_PURPOSE_COMPRESS, round, lac_scope_shared(),
        lac_name_hash("bench"));
    out->memcpy =
        cli_bench_memcpy(b, lac_shape_values(s->shape) * sizeof(float));
    cli_bench_flush_caches(b);
    const double begun = cli_bench_now();
    const lac_status status = run(b, s, &key);
    out->seconds = cli_bench_now() - begun;
    return status;
}

static int compare_doubles(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double cli_bench_median(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof(*numbers), compare_doubles);
    return (numbers[(count - 1) / 2] + numbers[count / 2]) / 2;
}

static lac_status measure_operation(
    cli_bench *b, subject *s, operation *run, cli_bench_time *out)
{
    double *const seconds = b->times, *const copies = b->times + b->runs;
    cli_bench_time once;
    LAC_TRY(time_operation(b, s, run, 0, &once));
    for (size_t i = 0; i < b->runs; i++) {
        LAC_TRY(time_operation(b, s, run, i + 1, &once));
        seconds[i] = once.seconds;
        copies[i] = once.memcpy;
    }
    out->seconds = cli_bench_median(seconds, b->runs);
    out->memcpy = cli_bench_median(copies, b->runs);
    return LAC_OK;
}

// decode_add reads the payload that encode wrote; encode_add overwrites it.
static lac_status measure_all(cli_bench *b, subject *s, cli_bench_result *out)
{
    LAC_TRY(measure_operation(b, s, bench_encode, &out->encode));
    LAC_TRY(measure_operation(b, s, bench_decode_add, &out->decode_add));
    out->shape = s->shape;
    out->payload_len = s->len;
    return measure_operation(b, s, bench_encode_add, &out->encode_add);
}

// The bound of a compressor that uses rows and columns depends on the shape.
static lac_shape choose_shape(const lac_compressor *c, size_t n)
{
    const size_t rows = (size_t)sqrt((double)n);
    const lac_shape matrix = {rows, n / rows};
    const lac_shape vector = {lac_shape_values(matrix), 1};
    const bool same = lac_compressor_bound(c, matrix, LAC_SCOPE_SHARED) ==
                      lac_compressor_bound(c, vector, LAC_SCOPE_SHARED);
    return same ? (lac_shape){n, 1} : matrix;
}

lac_status cli_bench_measure(
    cli_bench *b, lac_compressor *c, cli_bench_result *out)
{
    subject s = {.c = c, .shape = choose_shape(c, b->n)};
    LAC_TRY(lac_memory_open(&s.memory, c, s.shape));
    lac_status status = LAC_OK;
    size_t at = 0;
    for (size_t i = 0; i < b->n; i++) {
        s.max_magnitude = fmaxf(s.max_magnitude, fabsf(b->x[i]));
    }
    s.cap = lac_compressor_bound(c, s.shape, LAC_SCOPE_SHARED);
    void *const block =
        aligned_alloc(LARGE_PAGE, (s.cap / LARGE_PAGE + 2) * LARGE_PAGE);
    if (block == NULL) {
        status = lac_fail(
            LAC_ERR_NOMEM, "bench: no memory for a payload of %zu bytes",
            s.cap);
    } else {
        s.payload = place_buffer(block, &at, 3, s.cap);
        status = measure_all(b, &s, out);
    }
    free(block);
    lac_memory_close(s.memory);
    return status;
}
