// SPDX-License-Identifier: MIT
// The computation of a round grows with the number of messages that a worker
// gets, so the table has two numbers for each algorithm and compressor:
//
//     memcpys = own + each * degree
//
// A choice that the table lacks has the times of the most similar one: of the
// same algorithm and compressor with other settings, then of the same
// algorithm, then of the same family, and of several the one with the nearest
// size of payload.
//
// A measurement has few workers, since all of them run on this machine. Above
// DEGREE_MAX it is extrapolated from two.
#include "cli/plan/compression.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/bench/compressor.h"
#include "cli/bench/step.h"
#include "cli/plan/cache.h"
#include "cli/report/processor.h"

enum {
    // Bytes of the memcpy that is measured: more than the cache that a core
    // uses has. It takes some 10 milliseconds.
    COPY_SIZE = 64 << 20,
    COPY_RUNS = 3,      // of a measurement
    MEASUREMENTS = 5,   // that have to agree
    RESOLUTION = 10000, // nanoseconds of a clock that will do

    MEASURED_RUNS = 5,
    DEGREE_MIN = 3,
    DEGREE_MAX = 7,

    KEY_SIZE = 1024,
    NAME_SIZE = 64, // of an algorithm and its compressor
};

// How the time depends on the number of workers.
typedef enum pattern {
    // Each neighbour's message, or that of each other worker, is decoded.
    GOSSIP,
    GATHER,
    SHARED, // the workers share the additions: `each` is 0
} pattern;

// One line of the table.
typedef struct reference {
    pattern pattern;
    const char *algorithm;
    const char *compressor; // or NULL
    double bits;            // of payload for each value of ResNet-50
    double own, each;
} reference;

#define PLAN_TIME(pattern, algorithm, compressor, bits, own, each)             \
    {pattern, algorithm, compressor, bits, own, each},
static const reference references[] = {
#include "cli/plan/compression_times.def"
};

// Measurements that differ by more say that the machine is busy.
#define AGREEMENT 1.1

struct plan_speed {
    bool measure;
    double copy_rate;    // bytes a second
    double slowest_copy; // of the measurements; 0 if they agree
    bool copied_before;  // it was measured in an earlier run
    unsigned measured, cached;
    unsigned lacking;                // choices that are not in the table
    char similar[2 * NAME_SIZE + 4]; // the first: "choco half as choco sign"
    char source[PLAN_SOURCE_SIZE];
};

// A choice, and the reference that is used for it.
typedef struct choice {
    cli_bench_step step;
    const reference *reference;
    const lac_layout *layout;
} choice;

// Seconds for which the processor has worked for this thread. On a busy machine
// every copy waits for the turns of others, which last about as long. Without
// that clock, or with a coarse one, it is the usual clock.
static double thread_seconds(void)
{
    struct timespec t = {0}, resolution = {.tv_sec = 1};
    if (clock_getres(CLOCK_THREAD_CPUTIME_ID, &resolution) != 0 ||
        resolution.tv_sec > 0 || resolution.tv_nsec > RESOLUTION ||
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) {
        return cli_bench_now();
    }
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Returns the bytes a second of the fastest of several copies: others share the
// memory with them.
static double measure_copy(unsigned char *to, const unsigned char *from)
{
    double least = (double)INFINITY;
    for (size_t i = 0; i < COPY_RUNS; i++) {
        const double begun = thread_seconds();
        memcpy(to, from, COPY_SIZE);
        const double seconds = thread_seconds() - begun;
        least = seconds > 0 ? fmin(least, seconds) : least;
    }
    return COPY_SIZE / least;
}

// The key of the memcpy in the cache of times.
static void write_copy_key(char key[KEY_SIZE])
{
    char processor[CLI_PROCESSOR_SIZE];
    cli_processor(processor);
    (void)snprintf(
        key, KEY_SIZE, "laconic %s\nprocessor %s\nmemcpy of %d bytes\n",
        lac_version(), processor, COPY_SIZE);
}

// Takes the fastest of several measurements, and stores it if they agree. Both
// buffers are written first: all pages that never were share one.
static lac_status measure_copies(plan_speed *s)
{
    char key[KEY_SIZE];
    unsigned char *const buffers = malloc(2 * (size_t)COPY_SIZE);
    if (buffers == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "plan: no memory for a memcpy");
    }
    double slowest = (double)INFINITY;
    memset(buffers, 1, 2 * (size_t)COPY_SIZE);
    for (size_t i = 0; i < MEASUREMENTS; i++) {
        const double rate = measure_copy(buffers, buffers + COPY_SIZE);
        s->copy_rate = fmax(s->copy_rate, rate);
        slowest = fmin(slowest, rate);
    }
    free(buffers);
    if (s->copy_rate > AGREEMENT * slowest) {
        s->slowest_copy = slowest;
    } else if (s->copy_rate > 0) {
        write_copy_key(key);
        plan_cache_write(key, COPY_SIZE / s->copy_rate);
    }
    return LAC_OK;
}

// A stored rate is used unless the user asks for measurements.
static lac_status find_copy_rate(plan_speed *s)
{
    char key[KEY_SIZE];
    double seconds = 0;
    write_copy_key(key);
    s->copied_before = !s->measure && plan_cache_read(key, &seconds);
    if (s->copied_before) {
        s->copy_rate = COPY_SIZE / seconds;
        return LAC_OK;
    }
    return measure_copies(s);
}

static void write_source(plan_speed *s)
{
    const unsigned all = s->measured + s->cached;
    int len = 0;
    if (s->measure) {
        len = snprintf(
            s->source, PLAN_SOURCE_SIZE,
            "measured on this machine, %u of %u times in an earlier run",
            s->cached, all);
    } else {
        len = snprintf(
            s->source, PLAN_SOURCE_SIZE,
            "constants of a reference machine, scaled by a memcpy of %.1f GB/s "
            "here%s",
            1e-9 * s->copy_rate, s->copied_before ? ", measured earlier" : "");
    }
    if (s->slowest_copy > 0 && len > 0 && len < PLAN_SOURCE_SIZE) {
        len += snprintf(
            s->source + len, (size_t)(PLAN_SOURCE_SIZE - len),
            "; the machine is busy: memcpys of %.1f to %.1f GB/s",
            1e-9 * s->slowest_copy, 1e-9 * s->copy_rate);
    }
    if (s->lacking > 0 && len > 0 && len < PLAN_SOURCE_SIZE) {
        (void)snprintf(
            s->source + len, (size_t)(PLAN_SOURCE_SIZE - len), "; %s%s",
            s->similar, s->lacking > 1 ? ", and others" : "");
    }
}

lac_status plan_speed_open(plan_speed **out, bool measure)
{
    *out = NULL;
    plan_speed *const s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "plan: no memory");
    }
    s->measure = measure;
    const lac_status status = find_copy_rate(s);
    if (status != LAC_OK) {
        free(s);
        return status;
    }
    write_source(s);
    *out = s;
    return LAC_OK;
}

void plan_speed_close(plan_speed *s)
{
    free(s);
}

// Whether two specs, or none, are of the same plug-in.
static bool same_plugin(const char *a, const char *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    const size_t len = strcspn(a, ":+");
    return len == strcspn(b, ":+") && strncmp(a, b, len) == 0;
}

static bool same_spec(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool is_exact(const cli_bench_step *step, const reference *r)
{
    return same_spec(step->spec, r->algorithm) &&
           same_spec(step->compressor, r->compressor);
}

// Returns how unlike a reference a choice is: whole numbers for the plug-ins,
// less than 1 for the size of the payload.
static double difference(const cli_bench_step *step, const reference *r)
{
    if ((step->family == LAC_FAMILY_MODEL) != (r->pattern == GOSSIP)) {
        return DBL_MAX;
    }
    const double values = fmax((double)step->values, 1);
    const double bits = fmax(8 * step->payload_bytes / values, DBL_MIN);
    const double ratio = fabs(log(bits / r->bits));
    const int plugins = 2 * !same_plugin(step->spec, r->algorithm) +
                        !same_plugin(step->compressor, r->compressor);
    return is_exact(step, r) ? -1 : plugins + ratio / (1 + ratio);
}

static const reference *find_reference(const cli_bench_step *step)
{
    const size_t count = sizeof(references) / sizeof(references[0]);
    const reference *best = &references[0];
    for (size_t i = 1; i < count; i++) {
        if (difference(step, &references[i]) < difference(step, best)) {
            best = &references[i];
        }
    }
    return best;
}

// "choco with sign"
static const char *write_names(
    const char *algorithm, const char *compressor, char text[NAME_SIZE])
{
    (void)snprintf(
        text, NAME_SIZE, "%s%s%s", algorithm, compressor == NULL ? "" : " ",
        compressor == NULL ? "" : compressor);
    return text;
}

static void note_similar(plan_speed *s, const choice *c)
{
    char ours[NAME_SIZE], theirs[NAME_SIZE];
    const reference *const r = c->reference;
    if (is_exact(&c->step, r) || s->lacking++ > 0) {
        return;
    }
    (void)snprintf(
        s->similar, sizeof(s->similar), "%s as %s",
        write_names(c->step.spec, c->step.compressor, ours),
        write_names(r->algorithm, r->compressor, theirs));
}

static double estimate(plan_speed *s, const choice *c, double degree)
{
    const reference *const r = c->reference;
    const double bytes = sizeof(float) * (double)c->step.values;
    note_similar(s, c);
    return (r->own + r->each * degree) * bytes / s->copy_rate;
}

// The key has no path and nothing of the environment but the processor.
static void write_key(const choice *c, uint32_t degree, char key[KEY_SIZE])
{
    char processor[CLI_PROCESSOR_SIZE];
    const char *const compressor = c->step.compressor;
    cli_processor(processor);
    (void)snprintf(
        key, KEY_SIZE,
        "laconic %s\nprocessor %s\nalgorithm %s\ncompressor %s\n"
        "layout %016" PRIx64 "\ndegree %" PRIu32 "\n",
        lac_version(), processor, c->step.spec,
        compressor == NULL ? "" : compressor, lac_layout_hash(c->layout),
        degree);
}

static lac_status measure_degree(
    plan_speed *s, const choice *c, uint32_t degree, double *out)
{
    char key[KEY_SIZE];
    cli_bench_step step = {
        .spec = c->step.spec, .compressor = c->step.compressor};
    const cli_bench_step_options options = {
        .runs = MEASURED_RUNS,
        .seed = 1,
        .kernels = "best",
        .layout = c->layout,
        .degree = degree,
    };
    write_key(c, degree, key);
    if (plan_cache_read(key, out)) {
        s->cached++;
        return LAC_OK;
    }
    (void)fprintf(
        stderr, "measuring %s%s%s, %" PRIu32 " other worker%s\n", step.spec,
        step.compressor == NULL ? "" : " ",
        step.compressor == NULL ? "" : step.compressor, degree,
        degree == 1 ? "" : "s");
    LAC_TRY(cli_bench_step_check(&step, &options));
    LAC_TRY(cli_bench_step_measure(&step, &options));
    plan_cache_write(key, step.seconds);
    s->measured++;
    *out = step.seconds;
    return LAC_OK;
}

// Measures at one degree, or at two and continues their line.
static lac_status measure_choice(
    plan_speed *s, const choice *c, double degree, double *out)
{
    const bool line = c->reference->pattern != SHARED;
    const double within = fmin(degree, DEGREE_MAX);
    uint32_t low = (uint32_t)within;
    uint32_t high = line && within > low ? low + 1 : low;
    double first = 0, second = 0;
    if (line && degree > DEGREE_MAX) {
        low = DEGREE_MIN;
        high = DEGREE_MAX;
    }
    LAC_TRY(measure_degree(s, c, low, &first));
    if (high == low) {
        *out = first;
        return LAC_OK;
    }
    LAC_TRY(measure_degree(s, c, high, &second));
    const double slope = fmax(0, second - first) / (high - low);
    *out = first + slope * (degree - low);
    return LAC_OK;
}

lac_status plan_compression_seconds(
    plan_speed *s, const char *algorithm, const char *compressor,
    const lac_layout *layout, uint32_t workers, double degree, double *out)
{
    choice c = {
        .step = {.spec = algorithm, .compressor = compressor},
        .layout = layout,
    };
    const cli_bench_step_options options = {
        .seed = 1, .layout = layout, .degree = 1};
    LAC_TRY(cli_bench_step_check(&c.step, &options));
    if (workers <= 1 || same_plugin(algorithm, "allreduce")) {
        *out = 0;
        return LAC_OK;
    }
    c.reference = find_reference(&c.step);
    if (s->measure) {
        LAC_TRY(measure_choice(s, &c, degree, out));
    } else {
        *out = estimate(s, &c, degree);
    }
    write_source(s);
    return LAC_OK;
}

const char *plan_speed_source(const plan_speed *s)
{
    return s->source;
}
