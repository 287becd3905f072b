// SPDX-License-Identifier: MIT
// Every algorithm with a tensor of so many values that a worker asks whether to
// share them among threads. Workers that were given no threads compute what
// workers with two threads do. Settings are the default ones, except for those
// that start a search.
#include "cases.h"

enum { LARGE_WORLD = 2, LARGE_ROUNDS = 2, LARGE = 300 * 1000 + 80000 };

static const lac_tensor large_tensors[] = {
    {.name = "matrix", .shape = {300, 1000}},
    {.name = "vector", .shape = {80000, 1}},
};

enum { LARGE_TENSORS = 2 };

typedef struct large_run {
    const algorithm_case *subject;
    uint32_t threads;
    float (*x)[LARGE]; // the values of every worker
} large_run;

static lac_status do_rounds(test_worker *w, lac_algorithm *a)
{
    float *const x = ((const large_run *)w->context)->x[w->rank];
    static const float no_step[LARGE];
    const float *const steps[] = {no_step, no_step + 300 * 1000};
    const lac_slice slices[] = {
        {0, LAC_F32, x, x},
        {1, LAC_F32, x + 300 * 1000, x + 300 * 1000},
    };
    const bool gossip = lac_algorithm_family(a) == LAC_FAMILY_MODEL;
    if (gossip) {
        LAC_TRY(lac_algorithm_start(a, slices, LARGE_TENSORS));
    }
    for (uint64_t round = 0; round < LARGE_ROUNDS; round++) {
        LAC_TRY(
            gossip ? lac_algorithm_mix(a, round, slices, steps, LARGE_TENSORS)
                   : lac_algorithm_reduce(a, round, slices, LARGE_TENSORS));
    }
    return LAC_OK;
}

static lac_status run_as_worker(test_worker *w)
{
    const large_run *const run = w->context;
    lac_algorithm_options o =
        options_for(run->subject->spec, run->subject->compressor);
    o.timeout = 600;
    o.threads = run->threads;
    return with_algorithm(
        w, o, "complete", large_tensors, LARGE_TENSORS, do_rounds);
}

static void run_with(
    const algorithm_case *c, uint32_t threads, float (*x)[LARGE])
{
    static float initial[LARGE_WORLD][LARGE];
    large_run run = {c, threads, x};
    test_worker workers[LARGE_WORLD];
    if (initial[0][0] == 0) {
        fill_normal(initial[0], sizeof(initial) / sizeof(**initial), 5);
    }
    memcpy(x, initial, sizeof(initial));
    run_workers(LARGE_WORLD, run_as_worker, &run, workers);
    assert_all_ok(workers, LARGE_WORLD);
}

static void need_no_threads(const algorithm_case *c, const void *context)
{
    static float alone[LARGE_WORLD][LARGE], shared[LARGE_WORLD][LARGE];
    (void)context;
    print_message("%s, %s\n", c->spec, c->compressor ? c->compressor : "alone");
    run_with(c, 0, alone);
    run_with(c, 2, shared);
    assert_memory_equal(alone, shared, sizeof(alone));
}

static void all_large_rounds_need_no_threads(void **state)
{
    (void)state;
    visit_plain(LAC_FAMILY_GRADIENT, need_no_threads, NULL);
    visit_plain(LAC_FAMILY_MODEL, need_no_threads, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_large_rounds_need_no_threads),
    };
    return cmocka_run_group_tests(tests, setup_workers, teardown_workers);
}
