// SPDX-License-Identifier: MIT
// What the conformance tests of model algorithms share: every registered one
// with several compressors, played by workers on a layout with odd tensors.
#ifndef LACONIC_TESTS_GOSSIP_H
#define LACONIC_TESTS_GOSSIP_H

#include "crew.h"

typedef struct player player;

// One performance of an algorithm.
typedef struct play {
    const char *algorithm;
    const char *compressor; // or NULL
    const char *topology;
    uint32_t world;
    lac_status (*script)(player *p);
    lac_status (*judge)(player *p); // for scripts that save
    const struct play *from;        // for scripts that load
    // What one worker may have otherwise than the others.
    uint32_t odd; // its rank; LAC_RANK_ANY for none
    lac_algorithm_options odd_options;
    double timeout;
    bool spoilt[WORLD_MAX]; // workers that a failed round changed
    float x[WORLD_MAX][VALUES];
    saves saved; // by scripts
} play;

// One worker of it.
struct player {
    play *piece;
    uint32_t rank;
    lac_layout *layout;
    lac_topology *topology;
    lac_algorithm *a;
    lac_transport *transport;
    float *x;
    lac_slice slices[TENSORS];
};

static inline lac_algorithm_options player_options(const player *p)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = p->piece->algorithm;
    o.compressor = p->piece->compressor;
    o.layout = p->layout;
    o.topology = p->topology;
    o.transport = p->transport;
    o.timeout = p->piece->timeout > 0 ? p->piece->timeout : 30;
    if (p->rank == p->piece->odd) {
        const lac_algorithm_options *const odd = &p->piece->odd_options;
        o.spec = odd->spec != NULL ? odd->spec : o.spec;
        o.compressor = odd->compressor != NULL ? odd->compressor : o.compressor;
        o.layout = odd->layout != NULL ? odd->layout : o.layout;
        o.topology = odd->topology != NULL ? odd->topology : o.topology;
        o.seed = odd->seed != 0 ? odd->seed : o.seed;
    }
    return o;
}

static inline lac_status player_open(player *p)
{
    const lac_algorithm_options o = player_options(p);
    return lac_algorithm_open(&p->a, &o);
}

static inline lac_status player_start(player *p)
{
    return lac_algorithm_start(p->a, p->slices, TENSORS);
}

// What the local step adds in odd rounds, to every other tensor.
static inline const float *const *player_updates(
    const player *p, uint64_t round, const float **room)
{
    static const float steps[VALUES] = {0.25f, -0.5f, 0.125f, 1, 0.75f};
    for (size_t t = 0; t < TENSORS; t++) {
        room[t] = (t + p->rank) % 2 == 0 ? steps : NULL;
    }
    return round % 2 == 1 ? room : NULL;
}

static inline lac_status player_mix(player *p, uint64_t round)
{
    const float *room[TENSORS];
    return lac_algorithm_mix(
        p->a, round, p->slices, player_updates(p, round, room), TENSORS);
}

static inline lac_status player_save(player *p)
{
    return save_state(&p->piece->saved, p->rank, p->a);
}

// Loads what this worker saved in a piece.
static inline lac_status player_load(player *p, const play *from)
{
    return lac_algorithm_load(
        p->a, from->saved.states[p->rank], from->saved.lens[p->rank]);
}

static inline lac_status play_body(test_worker *w)
{
    play *const piece = w->context;
    player p = {
        .piece = piece,
        .rank = w->rank,
        .transport = w->transport,
        .x = piece->x[w->rank],
    };
    lac_status status = lac_layout_open(&p.layout, tensors, TENSORS);
    if (status == LAC_OK) {
        status = lac_topology_open(&p.topology, piece->topology, w->world, 3);
    }
    for (size_t t = 0; status == LAC_OK && t < TENSORS; t++) {
        float *const x = p.x + lac_layout_tensor(p.layout, t)->offset;
        p.slices[t] = (lac_slice){t, LAC_F32, x, x};
    }
    if (status == LAC_OK) {
        status = piece->script(&p);
    }
    lac_transport_leave(w->transport);
    w->transport = NULL;
    lac_algorithm_close(p.a);
    lac_topology_close(p.topology);
    lac_layout_close(p.layout);
    return status;
}

static inline void play_fill(play *piece)
{
    fill_normal(piece->x[0], (size_t)WORLD_MAX * VALUES, 11);
}

// Performs it and returns what became of every worker.
static inline void play_run(play *piece, test_worker *workers_out)
{
    run_workers(piece->world, play_body, piece, workers_out);
    share_rows(piece->x, sizeof(*piece->x), piece->world);
    share_rows(piece->spoilt, sizeof(*piece->spoilt), piece->world);
    share_saves(&piece->saved, piece->world);
}

static inline void play_well(play *piece)
{
    test_worker workers[WORLD_MAX];
    play_run(piece, workers);
    assert_all_ok(workers, piece->world);
}

// A duty is called with a play whose algorithm, compressor, topology (a ring)
// and world (5) are set and may be changed.
typedef void duty(play *piece);

static inline bool has_param(const lac_plugin *plugin, const char *name)
{
    for (const lac_param *p = plugin->params; p != NULL && p->name; p++) {
        if (strcmp(p->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static inline void run_duty(
    const lac_plugin *plugin, const char *compressor, const void *context)
{
    duty *const *const run = context;
    char spec[128];
    (void)snprintf(
        spec, sizeof(spec), "%s%s", plugin->name,
        has_param(plugin, "gamma") ? ":gamma=0.3" : "");
    play piece = {
        .algorithm = spec,
        .compressor = compressor,
        .topology = "ring",
        .world = 5,
        .odd = LAC_RANK_ANY,
    };
    print_message("%s, %s\n", spec, compressor ? compressor : "alone");
    play_fill(&piece);
    (*run)(&piece);
    free_saves(&piece.saved);
}

static inline void for_all_models(duty *run)
{
    visit_family(LAC_FAMILY_MODEL, run_duty, &run);
}

#define DUTY(name)                                                             \
    static void all_##name(void **state)                                       \
    {                                                                          \
        (void)state;                                                           \
        for_all_models(name);                                                  \
    }

static inline const laci_algorithm_ops *ops_of(const play *piece)
{
    size_t count;
    const lac_plugin *const *const table = lac_algorithms(&count);
    const size_t len = strcspn(piece->algorithm, ":");
    for (size_t i = 0; i < count; i++) {
        if (strlen(table[i]->name) == len &&
            strncmp(table[i]->name, piece->algorithm, len) == 0) {
            return (const void *)table[i];
        }
    }
    return NULL;
}

#endif
