// SPDX-License-Identifier: MIT
// What the conformance tests of gradient algorithms share: every registered
// one with several compressors, run by workers on a layout with odd tensors.
// Gradients are normal numbers that depend on worker, round and value.
#ifndef LACONIC_TESTS_GRADIENT_H
#define LACONIC_TESTS_GRADIENT_H

#include "crew.h"

enum { ROUNDS = 5 };

// Where the tensors begin among the values.
static const size_t offsets[TENSORS + 1] = {0, 35, 35, 48, 49, VALUES};

typedef struct crewman crewman;

// One run of an algorithm by all workers.
typedef struct voyage {
    const char *algorithm;
    const char *compressor; // or NULL
    uint32_t world;
    lac_status (*script)(crewman *m);
    lac_nonfinite nonfinite;
    size_t plague; // of those in test_gradient_failures.c
    float results[WORLD_MAX][ROUNDS][VALUES];
    saves saved; // by scripts
    lac_traffic traffic[WORLD_MAX];
} voyage;

// One worker of it.
struct crewman {
    voyage *v;
    uint32_t rank;
    lac_layout *layout;
    lac_algorithm *a;
    lac_transport *transport;
    float gradient[VALUES];
};

static inline void fill_gradient(uint32_t rank, uint64_t round, float *g)
{
    const lac_key key =
        lac_key_make(11, LAC_PURPOSE_DATA, round, lac_scope_worker(rank), 0);
    for (uint32_t i = 0; i < VALUES; i++) {
        g[i] = lac_key_normal(&key, i);
    }
}

static inline lac_algorithm_options crewman_options(const crewman *m)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = m->v->algorithm;
    o.compressor = m->v->compressor;
    o.layout = m->layout;
    o.transport = m->transport;
    o.timeout = 30;
    o.nonfinite = m->v->nonfinite;
    return o;
}

static inline lac_status crewman_open(crewman *m)
{
    const lac_algorithm_options o = crewman_options(m);
    return lac_algorithm_open(&m->a, &o);
}

static inline float *result_of(const crewman *m, uint64_t round)
{
    return m->v->results[m->rank][round];
}

// The slices of m->gradient and the results of a round.
static inline void make_slices(crewman *m, uint64_t round, lac_slice *slices)
{
    for (size_t t = 0; t < TENSORS; t++) {
        slices[t] = (lac_slice){
            t, LAC_F32, m->gradient + offsets[t],
            result_of(m, round) + offsets[t]};
    }
}

// Reduces what is in m->gradient.
static inline lac_status reduce_given(crewman *m, uint64_t round)
{
    lac_slice slices[TENSORS];
    make_slices(m, round, slices);
    return lac_algorithm_reduce(m->a, round, slices, TENSORS);
}

static inline lac_status reduce_round(crewman *m, uint64_t round)
{
    fill_gradient(m->rank, round, m->gradient);
    return reduce_given(m, round);
}

static inline lac_status crewman_save(crewman *m)
{
    return save_state(&m->v->saved, m->rank, m->a);
}

static inline lac_status voyage_body(test_worker *w)
{
    crewman m = {.v = w->context, .rank = w->rank, .transport = w->transport};
    lac_status status = lac_layout_open(&m.layout, tensors, TENSORS);
    if (status == LAC_OK) {
        status = m.v->script(&m);
    }
    lac_transport_leave(w->transport);
    w->transport = NULL;
    lac_algorithm_close(m.a);
    lac_layout_close(m.layout);
    return status;
}

static inline void voyage_run(
    voyage *v, lac_status (*script)(crewman *m), test_worker *workers_out)
{
    v->script = script;
    run_workers(v->world, voyage_body, v, workers_out);
    share_rows(v->results, sizeof(*v->results), v->world);
    share_rows(v->traffic, sizeof(*v->traffic), v->world);
    share_saves(&v->saved, v->world);
}

static inline void voyage_well(voyage *v, lac_status (*script)(crewman *m))
{
    test_worker workers[WORLD_MAX];
    voyage_run(v, script, workers);
    assert_all_ok(workers, v->world);
}

// All workers have the same bits.
static inline void assert_agreement(const voyage *v)
{
    for (uint32_t rank = 1; rank < v->world; rank++) {
        assert_memory_equal(
            v->results[0], v->results[rank], sizeof(v->results[0]));
    }
}

static inline void assert_finite(const voyage *v)
{
    for (size_t k = 0; k < (size_t)ROUNDS * VALUES; k++) {
        assert_true(isfinite(v->results[0][k / VALUES][k % VALUES]));
    }
}

static inline lac_status reduce_rounds(crewman *m)
{
    LAC_TRY(crewman_open(m));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(m, round));
    }
    m->v->traffic[m->rank] = lac_algorithm_traffic(m->a);
    return crewman_save(m);
}

// A duty is called with a voyage whose algorithm and compressor are set, of 5
// workers, which may be changed.
typedef void duty(voyage *v);

// Algorithms whose settings change what they do.
static const char *const variants[] = {
    "powersgd:rank=3,min-compression-rate=0",
    "powersgd:rank=2,alternating=yes",
    "powersgd:rank=2,warm-start=no,error-feedback=no",
    "powersgd:rank=32,min-compression-rate=0,start-iteration=2",
    "powersgd:alternating=yes,start-iteration=1",
};

enum { VARIANTS = sizeof(variants) / sizeof(*variants) };

static inline void run_duty(const char *name, const char *compressor, duty *run)
{
    voyage v = {.algorithm = name, .compressor = compressor, .world = 5};
    print_message("%s, %s\n", name, compressor ? compressor : "alone");
    run(&v);
    free_saves(&v.saved);
}

static inline void run_plugin(
    const lac_plugin *plugin, const char *compressor, const void *context)
{
    duty *const *const run = context;
    run_duty(plugin->name, compressor, *run);
}

static inline void for_all_gradients(duty *run)
{
    visit_family(LAC_FAMILY_GRADIENT, run_plugin, &run);
    for (size_t i = 0; i < VARIANTS; i++) {
        run_duty(variants[i], NULL, run);
    }
}

#define DUTY(name)                                                             \
    static void all_##name(void **state)                                       \
    {                                                                          \
        (void)state;                                                           \
        for_all_gradients(name);                                               \
    }

#endif
