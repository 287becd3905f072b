// SPDX-License-Identifier: MIT
// Threads of a worker: any number of them gives the same bits, in every
// algorithm, and a value that is not finite is found by all of them.
#include "workers.h"

#include <dirent.h>
#include <math.h>

enum {
    WORLD = 2,
    ROUNDS = 3,
    TENSORS = 5,
    LARGE = 301 * 903, // values: enough for three threads
    SMALL = 70,
    ROW = 70000,
    MORE = 300 * 400, // twice: every thread has the end of a tensor
    VALUES = LARGE + SMALL + ROW + 2 * MORE,
};

static const lac_tensor tensors[TENSORS] = {
    {.name = "large", .shape = {301, 903}},
    {.name = "small", .shape = {SMALL, 1}},
    {.name = "row", .shape = {1, ROW}},
    {.name = "more", .shape = {300, 400}},
    {.name = "last", .shape = {400, 300}},
};
static const size_t offsets[TENSORS] = {
    0, LARGE, LARGE + SMALL, LARGE + SMALL + ROW, VALUES - MORE};

typedef struct run {
    const char *algorithm;
    const char *compressor;
    uint32_t threads;
    size_t bad; // the value that is not finite in round 1; VALUES: none
    float (*x)[VALUES];
} run;

static lac_status do_round(
    const run *r, lac_algorithm *a, uint32_t rank, uint64_t round, float *x)
{
    static float update[VALUES];
    const float *updates[TENSORS];
    lac_slice slices[TENSORS];
    for (size_t t = 0; t < TENSORS; t++) {
        slices[t] = (lac_slice){t, LAC_F32, x + offsets[t], x + offsets[t]};
        updates[t] = update + offsets[t];
    }
    if (round == 1 && rank == 1 && r->bad < VALUES) {
        x[r->bad] = NAN;
    }
    if (lac_algorithm_family(a) == LAC_FAMILY_GRADIENT) {
        return lac_algorithm_reduce(a, round, slices, TENSORS);
    }
    if (round == 0) {
        LAC_TRY(lac_algorithm_start(a, slices, TENSORS));
    }
    return lac_algorithm_mix(a, round, slices, updates, TENSORS);
}

// What the workers begin with: sines take longer than the rounds.
static float initial[WORLD][VALUES];

static int draw_initial(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        for (size_t i = 0; i < VALUES; i++) {
            initial[rank][i] = (float)sin(0.7 * (double)i + 2.0 * rank);
        }
    }
    return 0;
}

static lac_status do_rounds(test_worker *w, lac_algorithm *a)
{
    const run *const r = w->context;
    float *const x = r->x[w->rank];
    memcpy(x, initial[w->rank], sizeof(initial[w->rank]));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(do_round(r, a, w->rank, round, x));
    }
    return LAC_OK;
}

static lac_status run_as_worker(test_worker *w)
{
    const run *const r = w->context;
    lac_algorithm_options o = options_for(r->algorithm, r->compressor);
    o.threads = r->threads;
    return with_algorithm(w, o, "complete", tensors, TENSORS, do_rounds);
}

static const char *const cases[][2] = {
    {"allreduce", NULL},
    {"powersgd:rank=2", NULL},
    {"powersgd:rank=3,iterations=2,error-feedback=no", NULL},
    {"powersgd:rank=2,alternating=yes", NULL},
    {"powersgd:rank=1,high=4,interval=1", NULL},
    {"signum", NULL},
    {"error-feedback", "natural"},
    {"error-feedback", "sign"},
    {"error-feedback", "top-k:0.1"},
    {"error-feedback", "random-k:0.5+natural"},
    {"error-feedback", "dithering:bucket=512"},
    {"compressed", "dithering:levels=7,bucket=256"},
    {"compressed", "natural:bits=8"},
    {"ef21", "half"},
    {"dpsgd", NULL},
    {"dpsgd:clip=1", NULL},
    {"naive", "natural"},
    {"choco:gamma=0.3", "sign"},
    {"choco:gamma=0.3", "natural"},
    {"choco:gamma=0.3", "top-k:0.1"},
    {"choco:gamma=0.3", "dithering:levels=7"},
    {"dcd", "dithering:bucket=512"},
    {"dcd", "natural-dithering"},
    {"dcd", "top-k:0.5"},
    {"ecd", "rotated:4"},
    {"ecd", "dithering:levels=1000,bucket=1024"},
    {"deepsqueeze:gamma=0.2", "bfloat16"},
    {"deepsqueeze:gamma=0.2", "low-rank:rank=2"},
    {"beer:gamma=0.2", "half"},
    {"moniqua:theta=4,gamma=0.2", NULL},
    {"powergossip", NULL},
    {"outer:inner=(error-feedback)", "rotated:2"},
};

static void any_number_of_threads_has_the_same_bits(void **state)
{
    (void)state;
    static float one[WORLD][VALUES], several[WORLD][VALUES];
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        run r = {cases[i][0], cases[i][1], .bad = VALUES, .x = one};
        test_worker workers[WORLD];
        print_message("%s\n", r.algorithm);
        run_workers(WORLD, run_as_worker, &r, workers);
        assert_all_ok(workers, WORLD);
        for (r.threads = 2; r.threads <= 3; r.threads++) {
            r.x = several;
            run_workers(WORLD, run_as_worker, &r, workers);
            assert_all_ok(workers, WORLD);
            assert_memory_equal(one, several, sizeof(one));
        }
    }
}

// The last value is that of the last thread. The algorithms take turns.
static void every_thread_finds_values_that_are_not_finite(void **state)
{
    (void)state;
    static float x[WORLD][VALUES];
    static const size_t places[] = {0, LARGE - 1, VALUES - 1};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        run r = {cases[i][0], cases[i][1], 3, places[i % 3], x};
        test_worker workers[WORLD];
        run_workers(WORLD, run_as_worker, &r, workers);
        assert_int_equal(workers[1].status, LAC_ERR_INVALID);
        assert_non_null(strstr(workers[1].message, "not finite"));
        assert_int_not_equal(workers[0].status, LAC_OK);
    }
}

static size_t threads_of_the_process(void)
{
    size_t count = 0;
    DIR *const folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (const struct dirent *e = readdir(folder); e != NULL;
         e = readdir(folder)) {
        count += e->d_name[0] != '.';
    }
    assert_int_equal(closedir(folder), 0);
    return count;
}

static lac_status count_threads(test_worker *w)
{
    size_t *const count = w->context;
    lac_layout *layout = NULL;
    lac_algorithm *a = NULL;
    LAC_TRY(lac_layout_open(&layout, tensors, TENSORS));
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = "outer";
    o.layout = layout;
    o.transport = w->transport;
    o.threads = 4;
    *count = threads_of_the_process();
    const lac_status status = lac_algorithm_open(&a, &o);
    *count = threads_of_the_process() - *count;
    lac_algorithm_close(a);
    lac_layout_close(layout);
    return status;
}

static void an_outer_algorithm_has_the_threads_of_its_inner_one(void **state)
{
    (void)state;
    size_t count = 0;
    test_worker worker = {0};
    run_workers(1, count_threads, &count, &worker);
    assert_all_ok(&worker, 1);
    assert_int_equal(count, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_has_the_same_bits),
        cmocka_unit_test(every_thread_finds_values_that_are_not_finite),
        cmocka_unit_test(an_outer_algorithm_has_the_threads_of_its_inner_one),
    };
    return cmocka_run_group_tests(tests, draw_initial, NULL);
}
