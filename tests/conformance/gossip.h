// SPDX-License-Identifier: MIT
// Shared by the conformance tests of model algorithms: runs a body as every
// worker, with an algorithm open on a layout with unusual shapes.
#ifndef LACONIC_TESTS_GOSSIP_H
#define LACONIC_TESTS_GOSSIP_H

#include "cases.h"

typedef struct gossip_worker gossip_worker;
typedef lac_status gossip_body(gossip_worker *w);

// One run of an algorithm by all workers.
typedef struct gossip_run {
    const algorithm_case *subject;
    const char *algorithm;
    const char *compressor; // or NULL
    const char *topology;
    uint32_t world;
    gossip_body *body;
    gossip_body *check;            // for bodies that save
    const struct gossip_run *from; // for bodies that load
    uint64_t rounds;               // for bodies that mix without a failure
    // The round that has local updates; LAC_RANK_ANY for all odd rounds.
    uint32_t update_round;
    // The rank of a worker with other options; LAC_RANK_ANY for none.
    uint32_t odd;
    lac_algorithm_options odd_options;
    double timeout;
    bool changed[WORLD_MAX]; // workers that a failed round has changed
    bool takes_update[WORLD_MAX];
    float x[WORLD_MAX][VALUES];
    saves saved;
    saves earlier; // for bodies that compare two states
} gossip_run;

// One worker of it.
struct gossip_worker {
    gossip_run *run;
    uint32_t rank;
    lac_layout *layout;
    lac_topology *topology;
    lac_algorithm *a;
    lac_algorithm *retired[2]; // closed at the end: peers may still read them
    lac_transport *transport;
    float *x;
    lac_slice slices[TENSORS];
};

static inline lac_algorithm_options worker_options(const gossip_worker *w)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = w->run->algorithm;
    o.compressor = w->run->compressor;
    o.layout = w->layout;
    o.topology = w->topology;
    o.transport = w->transport;
    o.timeout = w->run->timeout > 0 ? w->run->timeout : 600;
    if (w->rank == w->run->odd) {
        const lac_algorithm_options *const odd = &w->run->odd_options;
        o.spec = odd->spec != NULL ? odd->spec : o.spec;
        o.compressor = odd->compressor != NULL ? odd->compressor : o.compressor;
        o.layout = odd->layout != NULL ? odd->layout : o.layout;
        o.topology = odd->topology != NULL ? odd->topology : o.topology;
        o.seed = odd->seed != 0 ? odd->seed : o.seed;
    }
    return o;
}

static inline lac_status worker_open(gossip_worker *w)
{
    const lac_algorithm_options o = worker_options(w);
    return lac_algorithm_open(&w->a, &o);
}

// Opens a new handle in the place of the old one.
static inline lac_status worker_reopen(gossip_worker *w)
{
    const size_t place = w->retired[0] != NULL;
    EXPECT(w->retired[place] == NULL);
    w->retired[place] = w->a;
    w->a = NULL;
    return worker_open(w);
}

static inline lac_status worker_start(gossip_worker *w)
{
    return lac_algorithm_start(w->a, w->slices, TENSORS);
}

// Returns the local update of value i.
static inline float update_value(uint32_t rank, size_t i)
{
    static const float steps[] = {0.25f, -0.5f, 0.125f, 1, 0.75f, 0, -0.375f};
    return steps[(i + rank) % (sizeof(steps) / sizeof(*steps))];
}

// Returns whether a tensor has local updates: every other one has.
static inline bool has_update(uint32_t rank, size_t tensor)
{
    return (tensor + rank) % 2 == 0;
}

static inline bool round_has_updates(const gossip_run *run, uint64_t round)
{
    return run->update_round == LAC_RANK_ANY ? round % 2 == 1
                                             : round == run->update_round;
}

// Fills `steps` with the updates of a round and points `room` at them.
static inline const float *const *worker_updates(
    const gossip_worker *w, uint64_t round, float *steps, const float **room)
{
    for (size_t i = 0; i < VALUES; i++) {
        steps[i] = update_value(w->rank, i);
    }
    for (size_t t = 0; t < TENSORS; t++) {
        room[t] = has_update(w->rank, t)
                      ? steps + lac_layout_tensor(w->layout, t)->offset
                      : NULL;
    }
    return round_has_updates(w->run, round) ? room : NULL;
}

static inline lac_status worker_mix(gossip_worker *w, uint64_t round)
{
    float steps[VALUES];
    const float *room[TENSORS];
    return lac_algorithm_mix(
        w->a, round, w->slices, worker_updates(w, round, steps, room), TENSORS);
}

static inline lac_status worker_end(gossip_worker *w, uint64_t round)
{
    float steps[VALUES];
    const float *room[TENSORS];
    return lac_algorithm_end(
        w->a, round, w->slices, worker_updates(w, round, steps, room), TENSORS);
}

static inline lac_status worker_save(gossip_worker *w)
{
    return save_state(&w->run->saved, w->rank, w->a);
}

// Loads the state that this worker saved in a run.
static inline lac_status worker_load(gossip_worker *w, const gossip_run *from)
{
    return load_state(&from->saved, w->rank, w->a);
}

// A body: starts, mixes run->rounds rounds and saves.
static inline lac_status mix_rounds(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    w->run->takes_update[w->rank] = lac_algorithm_takes_update(w->a);
    LAC_TRY(worker_start(w));
    for (uint64_t round = 0; round < w->run->rounds; round++) {
        LAC_TRY(worker_mix(w, round));
    }
    return worker_save(w);
}

static inline lac_status gossip_body_of(test_worker *t)
{
    gossip_run *const run = t->context;
    gossip_worker w = {
        .run = run,
        .rank = t->rank,
        .transport = t->transport,
        .x = run->x[t->rank],
    };
    lac_status status = lac_layout_open(&w.layout, tensors, TENSORS);
    if (status == LAC_OK) {
        status = lac_topology_open(&w.topology, run->topology, t->world, 3);
    }
    for (size_t i = 0; status == LAC_OK && i < TENSORS; i++) {
        float *const x = w.x + lac_layout_tensor(w.layout, i)->offset;
        w.slices[i] = (lac_slice){i, LAC_F32, x, x};
    }
    if (status == LAC_OK) {
        status = run->body(&w);
    }
    lac_transport_leave(t->transport);
    t->transport = NULL;
    lac_algorithm_close(w.a);
    lac_algorithm_close(w.retired[0]);
    lac_algorithm_close(w.retired[1]);
    lac_topology_close(w.topology);
    lac_layout_close(w.layout);
    return status;
}

static inline void fill_values(gossip_run *run)
{
    fill_normal(run->x[0], (size_t)WORLD_MAX * VALUES, 11);
}

// Runs the body and writes the result of every worker.
static inline void run_gossip(gossip_run *run, test_worker *workers_out)
{
    run_workers(run->world, gossip_body_of, run, workers_out);
    share_rows(run->x, sizeof(*run->x), run->world);
    share_rows(run->changed, sizeof(*run->changed), run->world);
    share_rows(run->takes_update, sizeof(*run->takes_update), run->world);
    share_saves(&run->saved, run->world);
}

static inline void run_gossip_ok(gossip_run *run, gossip_body *body)
{
    test_worker workers[WORLD_MAX] = {{0}};
    run->body = body;
    run_gossip(run, workers);
    assert_all_ok(workers, run->world);
}

// A duty is called with a run whose algorithm, compressor, topology (a ring)
// and world (5, or 3 in a short test) are set. It may change them.
typedef struct gossip_duty {
    void (*run)(gossip_run *run);
    bool searches; // visits cases with a search
} gossip_duty;

static inline void run_duty(const algorithm_case *c, const void *context)
{
    const gossip_duty *const duty = context;
    gossip_run run = {
        .subject = c,
        .algorithm = c->spec,
        .compressor = c->compressor,
        .topology = "ring",
        .world = is_short() ? 3 : 5,
        .rounds = 4,
        .update_round = LAC_RANK_ANY,
        .odd = LAC_RANK_ANY,
    };
    // A search may take seconds, less without compression.
    if (c->searches && !(duty->searches && WORKERS_ARE_LOCAL &&
                         is_uncompressed(c->compressor))) {
        return;
    }
    print_message("%s, %s\n", c->spec, c->compressor ? c->compressor : "alone");
    fill_values(&run);
    duty->run(&run);
    free_saves(&run.saved);
    free_saves(&run.earlier);
}

#define DUTY_OF(name, with_searches)                                           \
    static void all_##name(void **state)                                       \
    {                                                                          \
        const gossip_duty duty = {name, with_searches};                        \
        (void)state;                                                           \
        visit_family(LAC_FAMILY_MODEL, run_duty, &duty);                       \
    }

#define DUTY(name)               DUTY_OF(name, false)
#define DUTY_WITH_SEARCHES(name) DUTY_OF(name, true)

#endif
