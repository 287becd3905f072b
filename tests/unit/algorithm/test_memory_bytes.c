// SPDX-License-Identifier: MIT
// The memory that lac_algorithm_cost reports is the memory that rounds touch:
// after two rounds, the growth of resident memory is within 5 % of it.
#include "workers.h"

#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

enum { WORLD = 2, ROUNDS = 2, TENSORS = 4 };

static const lac_tensor tensors[TENSORS] = {
    {.name = "wide", .shape = {2048, 3000}},
    {.name = "tall", .shape = {3000, 1024}},
    {.name = "square", .shape = {1500, 1500}},
    {.name = "bias", .shape = {4096, 1}},
};

// An algorithm with a compressor whose payload has a fixed size.
typedef struct subject {
    const char *algorithm;
    const char *compressor;
    lac_nonfinite nonfinite;
} subject;

static const subject subjects[] = {
    {"allreduce", NULL, LAC_NONFINITE_STOP},
    {"allreduce", NULL, LAC_NONFINITE_RAW},
    {"powersgd:rank=2", NULL, LAC_NONFINITE_STOP},
    {"powersgd:rank=2", NULL, LAC_NONFINITE_PROPAGATE},
    {"powersgd:rank=1,high=2", NULL, LAC_NONFINITE_STOP},
    {"signum", NULL, LAC_NONFINITE_STOP},
    {"signum", NULL, LAC_NONFINITE_RAW},
    {"compressed", "natural", LAC_NONFINITE_STOP},
    {"error-feedback", "sign", LAC_NONFINITE_STOP},
    {"error-feedback", "natural", LAC_NONFINITE_RAW},
    {"error-feedback", "sign", LAC_NONFINITE_PROPAGATE},
    {"error-feedback", "half", LAC_NONFINITE_STOP},
    {"ef21", "sign", LAC_NONFINITE_STOP},
    {"ef21:momentum=0.9", "sign", LAC_NONFINITE_RAW},
    {"integer", NULL, LAC_NONFINITE_STOP},
    {"integer:bits=16,memory=no", NULL, LAC_NONFINITE_RAW},
    {"dpsgd", NULL, LAC_NONFINITE_STOP},
    {"dpsgd:clip=1", NULL, LAC_NONFINITE_STOP},
    {"naive", "natural", LAC_NONFINITE_STOP},
    {"dcd", "natural", LAC_NONFINITE_STOP},
    {"ecd", "half", LAC_NONFINITE_STOP},
    {"choco:gamma=0.4", "sign", LAC_NONFINITE_STOP},
    {"choco:gamma=0.4", "half", LAC_NONFINITE_STOP},
    {"beer:gamma=0.4", "natural", LAC_NONFINITE_STOP},
    {"deepsqueeze:gamma=0.4", "natural", LAC_NONFINITE_STOP},
    {"moniqua", NULL, LAC_NONFINITE_STOP},
    {"powergossip:rank=2", NULL, LAC_NONFINITE_STOP},
};

typedef struct run {
    subject subject;
    lac_layout *layout;
    lac_topology *topology;
    float *x[WORLD]; // resident before the run
    double before;   // resident bytes
    double growth;
} run;

static double resident_bytes(void)
{
    long pages = 0;
    FILE *const file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1) {
        pages = 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static lac_algorithm_options options_of(const run *r)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = r->subject.algorithm;
    o.compressor = r->subject.compressor;
    o.nonfinite = r->subject.nonfinite;
    o.layout = r->layout;
    o.topology = r->topology;
    return o;
}

// Some algorithms need less memory for a mix.
static lac_status mix_in_two(
    lac_algorithm *a, uint64_t round, const lac_slice *slices)
{
    LAC_TRY(lac_algorithm_begin(a, round, slices, TENSORS));
    return lac_algorithm_end(a, round, slices, NULL, TENSORS);
}

static lac_status run_rounds(lac_algorithm *a, float *x, const run *r)
{
    lac_slice slices[TENSORS];
    for (size_t i = 0; i < TENSORS; i++) {
        float *const values = x + lac_layout_tensor(r->layout, i)->offset;
        slices[i] = (lac_slice){i, LAC_F32, values, values};
    }
    const bool model = lac_algorithm_family(a) == LAC_FAMILY_MODEL;
    if (model) {
        LAC_TRY(lac_algorithm_start(a, slices, TENSORS));
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(
            model ? mix_in_two(a, round, slices)
                  : lac_algorithm_reduce(a, round, slices, TENSORS));
    }
    return LAC_OK;
}

static lac_status measure(test_worker *w)
{
    run *const r = w->context;
    lac_algorithm_options o = options_of(r);
    o.transport = w->transport;
    lac_algorithm *a = NULL;
    LAC_TRY(lac_algorithm_open(&a, &o));
    const lac_status status = run_rounds(a, r->x[w->rank], r);
    workers_barrier(w->world);
    if (w->rank == 0) {
        r->growth = resident_bytes() - r->before;
    }
    workers_barrier(w->world);
    lac_algorithm_close(a);
    return status;
}

static void compare_memory(run *r)
{
    test_worker workers[WORLD];
    lac_cost cost;
    const lac_algorithm_options o = options_of(r);
    assert_ok(lac_algorithm_cost(&o, &cost));
    r->before = resident_bytes();
    run_workers(WORLD, measure, r, workers);
    assert_all_ok(workers, WORLD);
    const double expected = WORLD * (double)cost.memory_bytes;
    if (r->growth < expected * 0.95 || r->growth > expected * 1.05) {
        print_error(
            "%s %s: reports %.1f MB a worker, %.1f MB are resident\n",
            r->subject.algorithm,
            r->subject.compressor == NULL ? "" : r->subject.compressor,
            (double)cost.memory_bytes / 1e6, r->growth / WORLD / 1e6);
        fail();
    }
}

static void every_algorithm_reports_the_memory_it_touches(void **state)
{
    (void)state;
#ifdef SANITIZED
    skip();
#endif
    run r = {0};
    // What is freed then leaves resident memory at once.
    assert_int_equal(mallopt(M_MMAP_THRESHOLD, 128 * 1024), 1);
    // A huge page is resident as a whole, however little of it is touched.
    assert_int_equal(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
    if (!(resident_bytes() > 0)) {
        skip();
    }
    assert_ok(lac_layout_open(&r.layout, tensors, TENSORS));
    assert_ok(lac_topology_open(&r.topology, "ring", WORLD, 1));
    const size_t n = lac_layout_values(r.layout);
    for (size_t k = 0; k < WORLD; k++) {
        r.x[k] = malloc(n * sizeof(float));
        assert_non_null(r.x[k]);
    }
    for (size_t i = 0; i < sizeof(subjects) / sizeof(*subjects); i++) {
        for (size_t k = 0; k < WORLD; k++) {
            fill_normal(r.x[k], n, k + 1);
        }
        r.subject = subjects[i];
        compare_memory(&r);
    }
    for (size_t k = 0; k < WORLD; k++) {
        free(r.x[k]);
    }
    lac_topology_close(r.topology);
    lac_layout_close(r.layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_reports_the_memory_it_touches),
    };
    return cmocka_run_group_tests_name("memory_bytes", tests, NULL, NULL);
}
