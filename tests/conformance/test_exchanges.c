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

static lac_algorithm_options job_options(const job *j)
{
    lac_algorithm_options o =
        options_for(j->subject->spec, j->subject->compressor);
    o.seed = 3;
    o.timeout = 600;
    return o;
}

static lac_status run_rounds(test_worker *w, lac_algorithm *a)
{
    const job *const j = w->context;
    float x[FLOATS];
    lac_slice slices[SHAPES];
    const lac_key key =
        lac_key_make(11, LAC_PURPOSE_DATA, 0, lac_scope_worker(w->rank), 0);
    for (uint32_t i = 0; i < FLOATS; i++) {
        x[i] = lac_key_normal(&key, i);
    }
    for (size_t i = 0, at = 0; i < SHAPES; i++) {
        slices[i] = (lac_slice){i, LAC_F32, x + at, x + at};
        at += lac_shape_values(shapes[i].shape);
    }
    if (j->topology != NULL) {
        LAC_TRY(lac_algorithm_start(a, slices, SHAPES));
    }
    for (uint64_t round = 0; round < j->first + j->rounds; round++) {
        recording = round >= j->first;
        LAC_TRY(
            j->topology == NULL
                ? lac_algorithm_reduce(a, round, slices, SHAPES)
                : lac_algorithm_mix(a, round, slices, NULL, SHAPES));
    }
    return LAC_OK;
}

static lac_status run_job(test_worker *w)
{
    const job *const j = w->context;
    recording = false;
    return with_algorithm(
        w, job_options(j), j->topology, shapes, SHAPES, run_rounds);
}

// Lists the exchanges. Returns whether the algorithm takes the topology.
static bool list_job(job *j)
{
    handles h = {0};
    lac_algorithm_options o = job_options(j);
    bool listed = false;
    if (open_parts(&h, &o, j->topology, j->world, shapes, SHAPES) == LAC_OK) {
        o.workers = j->world;
        o.transport_name = record_native ? "mpi" : "local";
        listed =
            lac_algorithm_exchanges(
                &o, j->list, EXCHANGES_MAX, &j->count, &j->period) == LAC_OK;
        assert_true(!listed || j->period > 0);
        assert_true(!listed || j->count <= EXCHANGES_MAX || j->period > 64);
        j->count = j->count < EXCHANGES_MAX ? j->count : EXCHANGES_MAX;
    }
    close_handles(&h);
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
