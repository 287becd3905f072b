// SPDX-License-Identifier: MIT
// Shared by the conformance tests of gradient algorithms: runs a body as every
// worker, with an algorithm open on a layout with unusual shapes. Gradients are
// normal numbers that depend on worker, round and value.
#ifndef LACONIC_TESTS_GRADIENT_H
#define LACONIC_TESTS_GRADIENT_H

#include "cases.h"

enum { ROUNDS = 8 };

typedef struct gradient_worker gradient_worker;
typedef lac_status gradient_body(gradient_worker *w);

// One run of an algorithm by all workers.
typedef struct gradient_run {
    const algorithm_case *subject;
    const char *algorithm;
    const char *compressor; // or NULL
    uint32_t world;
    gradient_body *body;
    lac_nonfinite nonfinite;
    size_t fault_set; // of those in test_gradient_failures.c
    bool impulse;     // gradients are zero after round 0
    float results[WORLD_MAX][ROUNDS][VALUES];
    saves saved;
    lac_traffic traffic[WORLD_MAX];
} gradient_run;

// One worker of it.
struct gradient_worker {
    gradient_run *run;
    uint32_t rank;
    lac_layout *layout;
    lac_algorithm *a;
    lac_algorithm *retired[2]; // closed at the end: peers may still read them
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

static inline lac_algorithm_options worker_options(const gradient_worker *w)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = w->run->algorithm;
    o.compressor = w->run->compressor;
    o.layout = w->layout;
    o.transport = w->transport;
    o.timeout = 600;
    o.nonfinite = w->run->nonfinite;
    return o;
}

static inline lac_status worker_open(gradient_worker *w)
{
    const lac_algorithm_options o = worker_options(w);
    return lac_algorithm_open(&w->a, &o);
}

// Opens a new handle in the place of the old one.
static inline lac_status worker_reopen(gradient_worker *w)
{
    const size_t place = w->retired[0] != NULL;
    EXPECT(w->retired[place] == NULL);
    w->retired[place] = w->a;
    w->a = NULL;
    return worker_open(w);
}

static inline float *result_of(const gradient_worker *w, uint64_t round)
{
    return w->run->results[w->rank][round];
}

// The slices of w->gradient and the results of a round.
static inline void make_slices(
    gradient_worker *w, uint64_t round, lac_slice *slices)
{
    for (size_t t = 0; t < TENSORS; t++) {
        slices[t] = (lac_slice){
            t, LAC_F32, w->gradient + offsets[t],
            result_of(w, round) + offsets[t]};
    }
}

// Reduces the values of w->gradient.
static inline lac_status reduce_given(gradient_worker *w, uint64_t round)
{
    lac_slice slices[TENSORS];
    make_slices(w, round, slices);
    return lac_algorithm_reduce(w->a, round, slices, TENSORS);
}

static inline lac_status reduce_round(gradient_worker *w, uint64_t round)
{
    fill_gradient(w->rank, round, w->gradient);
    if (w->run->impulse && round > 0) {
        memset(w->gradient, 0, sizeof(w->gradient));
    }
    return reduce_given(w, round);
}

static inline lac_status worker_save(gradient_worker *w)
{
    return save_state(&w->run->saved, w->rank, w->a);
}

static inline lac_status worker_load(gradient_worker *w)
{
    return load_state(&w->run->saved, w->rank, w->a);
}

static inline lac_status gradient_body_of(test_worker *t)
{
    gradient_worker w = {
        .run = t->context, .rank = t->rank, .transport = t->transport};
    lac_status status = lac_layout_open(&w.layout, tensors, TENSORS);
    if (status == LAC_OK) {
        status = w.run->body(&w);
    }
    lac_transport_leave(t->transport);
    t->transport = NULL;
    lac_algorithm_close(w.a);
    lac_algorithm_close(w.retired[0]);
    lac_algorithm_close(w.retired[1]);
    lac_layout_close(w.layout);
    return status;
}

// Runs `body` and writes the result of every worker.
static inline void run_gradient(
    gradient_run *run, gradient_body *body, test_worker *workers_out)
{
    run->body = body;
    run_workers(run->world, gradient_body_of, run, workers_out);
    share_rows(run->results, sizeof(*run->results), run->world);
    share_rows(run->traffic, sizeof(*run->traffic), run->world);
    share_saves(&run->saved, run->world);
}

static inline void run_gradient_ok(gradient_run *run, gradient_body *body)
{
    test_worker workers[WORLD_MAX] = {{0}};
    run_gradient(run, body, workers);
    assert_all_ok(workers, run->world);
}

// All workers have the same bits.
static inline void assert_same_results(const gradient_run *run)
{
    for (uint32_t rank = 1; rank < run->world; rank++) {
        assert_memory_equal(
            run->results[0], run->results[rank], sizeof(run->results[0]));
    }
}

static inline void assert_finite(const gradient_run *run)
{
    for (size_t k = 0; k < (size_t)ROUNDS * VALUES; k++) {
        assert_true(isfinite(run->results[0][k / VALUES][k % VALUES]));
    }
}

static inline lac_status reduce_rounds(gradient_worker *w)
{
    LAC_TRY(worker_open(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(w, round));
    }
    w->run->traffic[w->rank] = lac_algorithm_traffic(w->a);
    return worker_save(w);
}

// A duty is called with a run of 5 workers whose algorithm and compressor are
// set. It may change them.
typedef void gradient_duty(gradient_run *run);

static inline void run_duty(const algorithm_case *c, const void *context)
{
    gradient_duty *const *const duty = context;
    gradient_run run = {
        .subject = c,
        .algorithm = c->spec,
        .compressor = c->compressor,
        .world = is_short() ? 3 : 5,
    };
    print_message("%s, %s\n", c->spec, c->compressor ? c->compressor : "alone");
    (*duty)(&run);
    free_saves(&run.saved);
}

#define DUTY(name)                                                             \
    static void all_##name(void **state)                                       \
    {                                                                          \
        gradient_duty *const duty = name;                                      \
        (void)state;                                                           \
        visit_family(LAC_FAMILY_GRADIENT, run_duty, &duty);                    \
    }

#endif
