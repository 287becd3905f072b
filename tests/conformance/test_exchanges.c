// SPDX-License-Identifier: MIT
// Every algorithm sends what lac_algorithm_exchanges lists: in every round of a
// period, for every compressor, setting, world and topology, and with an
// all-reduce of the transport and without. Bytes are equal, or at most those
// listed where values decide.
#define _POSIX_C_SOURCE 200809L
#include "cases.h"

#include "recorder.h"

enum {
    SHAPES = 5,
    FLOATS = 90 * 70 + 13 + 1 + 40 * 20,
    EXCHANGES_MAX = 4096,
    // Settings may let compression begin a few rounds later.
    ROUNDS_BEFORE = 4,
    ROUNDS_MAX = 24, // that are compared of a longer period
};

// The largest tensor has enough values for sums in shares.
static const lac_tensor shapes[SHAPES] = {
    {.name = "large", .shape = {90, 70}}, {.name = "empty", .shape = {0, 3}},
    {.name = "bias", .shape = {13, 1}},   {.name = "one", .shape = {1, 1}},
    {.name = "small", .shape = {40, 20}},
};

typedef struct job {
    const algorithm_case *subject;
    const char *topology; // NULL for gradients
    uint32_t world;
    lac_exchange list[EXCHANGES_MAX];
    size_t count;
    uint32_t period;
    uint64_t first; // round that is compared
    uint32_t rounds;
} job;

typedef struct job_worker {
    lac_layout *layout;
    lac_topology *topology;
    lac_algorithm *a;
    float *x;
    lac_slice slices[SHAPES];
} job_worker;

static lac_algorithm_options job_options(const job *j, const job_worker *w)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = j->subject->spec;
    o.compressor = j->subject->compressor;
    o.layout = w->layout;
    o.topology = w->topology;
    o.timeout = 600;
    return o;
}

static lac_status open_job(const job *j, job_worker *w)
{
    LAC_TRY(lac_layout_open(&w->layout, shapes, SHAPES));
    return j->topology == NULL
               ? LAC_OK
               : lac_topology_open(&w->topology, j->topology, j->world, 3);
}

static void close_job(job_worker *w)
{
    lac_algorithm_close(w->a);
    lac_topology_close(w->topology);
    lac_layout_close(w->layout);
    free(w->x);
}

static lac_status run_rounds(const job *j, const test_worker *t, job_worker *w)
{
    const lac_key key =
        lac_key_make(11, LAC_PURPOSE_DATA, 0, lac_scope_worker(t->rank), 0);
    w->x = malloc(FLOATS * sizeof(*w->x));
    EXPECT(w->x != NULL);
    for (uint32_t i = 0; i < FLOATS; i++) {
        w->x[i] = lac_key_normal(&key, i);
    }
    for (size_t i = 0, at = 0; i < SHAPES; i++) {
        w->slices[i] = (lac_slice){i, LAC_F32, w->x + at, w->x + at};
        at += lac_shape_values(shapes[i].shape);
    }
    if (j->topology != NULL) {
        LAC_TRY(lac_algorithm_start(w->a, w->slices, SHAPES));
    }
    for (uint64_t round = 0; round < j->first + j->rounds; round++) {
        recording = round >= j->first;
        LAC_TRY(
            j->topology == NULL
                ? lac_algorithm_reduce(w->a, round, w->slices, SHAPES)
                : lac_algorithm_mix(w->a, round, w->slices, NULL, SHAPES));
    }
    return LAC_OK;
}

static lac_status run_job(test_worker *t)
{
    const job *const j = t->context;
    job_worker w = {0};
    recording = false;
    lac_status status = open_job(j, &w);
    lac_algorithm_options o = job_options(j, &w);
    o.transport = t->transport;
    if (status == LAC_OK) {
        status = lac_algorithm_open(&w.a, &o);
    }
    if (status == LAC_OK) {
        status = run_rounds(j, t, &w);
    }
    close_job(&w);
    return status;
}

// Lists the exchanges. Returns whether the algorithm takes the topology.
static bool list_job(job *j)
{
    job_worker w = {0};
    bool listed = false;
    if (open_job(j, &w) == LAC_OK) {
        lac_algorithm_options o = job_options(j, &w);
        o.workers = j->world;
        o.transport_name = record_native ? "mpi" : "local";
        listed =
            lac_algorithm_exchanges(
                &o, j->list, EXCHANGES_MAX, &j->count, &j->period) == LAC_OK;
        assert_true(!listed || j->period > 0);
        assert_true(!listed || j->count <= EXCHANGES_MAX || j->period > 64);
        j->count = j->count < EXCHANGES_MAX ? j->count : EXCHANGES_MAX;
    }
    close_job(&w);
    return listed;
}

static uint64_t listed_native(const job *j)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < j->count; i++) {
        const bool native = (j->list[i].flags & LAC_EXCHANGE_ALLREDUCE) != 0;
        bytes += native ? j->list[i].bytes : 0;
    }
    return bytes;
}

static void compare_job(job *j)
{
    test_worker workers[WORLD_MAX];
    if (!list_job(j)) {
        return; // a topology that varies, or that has no such world
    }
    const bool whole = j->period <= ROUNDS_MAX;
    j->first = whole ? (ROUNDS_BEFORE + j->period - 1) / j->period * j->period
                     : ROUNDS_BEFORE;
    j->rounds = whole ? j->period : ROUNDS_MAX;
    begin_records();
    run_workers(j->world, run_job, j, workers);
    assert_all_ok(workers, j->world);
    for (uint64_t r = j->first; r < j->first + j->rounds; r++) {
        assert_recorded(j->list, j->count, (uint32_t)(r % j->period), r);
    }
    assert_int_equal(native_bytes, listed_native(j));
}

static void compare_worlds(const algorithm_case *c, const char *topology)
{
    static const uint32_t worlds[] = {1, 2, 3, 5, 8};
    static job j;
    for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++) {
        j = (job){.subject = c, .topology = topology, .world = worlds[i]};
        if (c->plain || worlds[i] == 5) {
            compare_job(&j);
        }
    }
}

static void compare_gradient(const algorithm_case *c, const void *context)
{
    (void)context;
    if (!c->extreme && !c->searches) {
        compare_worlds(c, NULL);
    }
}

static void compare_gossip(const algorithm_case *c, const void *context)
{
    (void)context;
    size_t count;
    const lac_plugin *const *const topologies = lac_topologies(&count);
    for (size_t i = 0; !c->extreme && !c->searches && i < count; i++) {
        compare_worlds(c, topologies[i]->name);
    }
}

static void test_gradient_algorithms_send_what_they_list(void **state)
{
    (void)state;
    record_native = false;
    visit_family(LAC_FAMILY_GRADIENT, compare_gradient, NULL);
}

static void test_an_allreduce_of_the_transport_is_one_entry(void **state)
{
    (void)state;
    record_native = true;
    visit_family(LAC_FAMILY_GRADIENT, compare_gradient, NULL);
}

static void test_model_algorithms_send_what_they_list(void **state)
{
    (void)state;
    record_native = false;
    visit_family(LAC_FAMILY_MODEL, compare_gossip, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient_algorithms_send_what_they_list),
        cmocka_unit_test(test_an_allreduce_of_the_transport_is_one_entry),
        cmocka_unit_test(test_model_algorithms_send_what_they_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
