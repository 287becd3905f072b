// SPDX-License-Identifier: MIT
// PowerGossip with several tensors: vectors gossip exactly, local steps are
// added, and how calls group tensors does not matter.
#include "workers.h"

#include <math.h>

enum { WORKERS = 4, TENSORS = 5, VALUES = 12 * 9 + 7 + 6 + 40 * 33 + 1 };

static const lac_tensor tensors[TENSORS] = {
    {.name = "conv", .shape = {12, 9}},  {.name = "bias", .shape = {7, 1}},
    {.name = "row", .shape = {1, 6}},    {.name = "fc", .shape = {40, 33}},
    {.name = "scalar", .shape = {1, 1}},
};

static float first[WORKERS * VALUES], x[WORKERS * VALUES];
static float updates[WORKERS * VALUES], plain[WORKERS * VALUES];

static uint64_t messages; // of worker 0

typedef struct job {
    const char *spec;
    const lac_layout *layout;
    lac_topology *topology;
    uint32_t rounds;
    bool apart;   // a call for each tensor, the last one first
    bool updated; // with local steps
    size_t first; // the tensors that take part
    size_t last;
} job;

static lac_status mix_one(
    const job *m, lac_algorithm *a, uint64_t round, const lac_slice *slices,
    const float *const *steps)
{
    const size_t count = m->last - m->first + 1;
    lac_status status = LAC_OK;
    if (!m->apart) {
        return lac_algorithm_mix(
            a, round, slices + m->first, m->updated ? steps + m->first : NULL,
            count);
    }
    for (size_t i = m->last + 1; status == LAC_OK && i > m->first; i--) {
        status = lac_algorithm_mix(
            a, round, &slices[i - 1], m->updated ? &steps[i - 1] : NULL, 1);
    }
    return status;
}

static lac_status job_body(test_worker *w)
{
    const job *const m = w->context;
    lac_algorithm *a = NULL;
    lac_algorithm_options o = lac_algorithm_options_default();
    lac_slice slices[TENSORS];
    const float *steps[TENSORS];
    for (size_t i = 0; i < TENSORS; i++) {
        const size_t at =
            w->rank * VALUES + lac_layout_tensor(m->layout, i)->offset;
        slices[i] = (lac_slice){i, LAC_F32, x + at, x + at};
        steps[i] = updates + at;
    }
    o.spec = m->spec;
    o.layout = m->layout;
    o.topology = m->topology;
    o.transport = w->transport;
    lac_status status = lac_algorithm_open(&a, &o);
    if (status == LAC_OK) {
        status = lac_algorithm_start(a, slices, TENSORS);
    }
    for (uint64_t round = 0; status == LAC_OK && round < m->rounds; round++) {
        status = mix_one(m, a, round, slices, steps);
    }
    if (status == LAC_OK && w->rank == 0) {
        messages = lac_algorithm_traffic(a).messages;
    }
    // Peers may read this worker's last message until it has left.
    lac_transport_leave(w->transport);
    w->transport = NULL;
    lac_algorithm_close(a);
    return status;
}

// Always starts from the same values.
static void run_job(job m)
{
    test_worker workers[WORKERS];
    lac_layout *layout;
    memcpy(x, first, sizeof(x));
    assert_ok(lac_layout_open(&layout, tensors, TENSORS));
    assert_int_equal(lac_layout_values(layout), VALUES);
    assert_ok(lac_topology_open(&m.topology, "ring", WORKERS, 1));
    m.layout = layout;
    run_workers(WORKERS, job_body, &m, workers);
    assert_all_ok(workers, WORKERS);
    lac_topology_close(m.topology);
    lac_layout_close(layout);
}

static int set_up(void **state)
{
    (void)state;
    const lac_key key =
        lac_key_make(1, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    for (uint32_t i = 0; i < WORKERS * VALUES; i++) {
        first[i] = lac_key_normal(&key, i);
        updates[i] = lac_key_normal(&key, WORKERS * VALUES + i);
    }
    return 0;
}

// On the ring of 4 all weights are 1/3, and the rate is for matrices only. Two
// additions and three products of values below 6: five roundings of 2^-22.
static void vectors_gossip_exactly(void **state)
{
    (void)state;
    run_job((job){
        .spec = "powergossip:rate=1.5,iterations=2",
        .rounds = 1,
        .last = TENSORS - 1,
    });
    for (size_t k = 0; k < WORKERS; k++) {
        for (size_t i = 12 * 9; i < 12 * 9 + 7 + 6; i++) {
            double mean = 0;
            for (size_t other = 0; other < WORKERS; other++) {
                const bool near = (k + 2) % WORKERS != other;
                mean += near ? (double)first[other * VALUES + i] / 3 : 0;
            }
            assert_true(fabs((double)x[k * VALUES + i] - mean) < 5 * 0x1p-22);
        }
    }
}

static void vectors_alone_need_one_exchange(void **state)
{
    (void)state;
    run_job((job){
        .spec = "powergossip:iterations=3",
        .rounds = 2,
        .first = 1,
        .last = 2,
    });
    assert_int_equal(messages, 2 * 2);
    assert_memory_equal(x, first, 12 * 9 * sizeof(*x));
    assert_true(x[12 * 9] != first[12 * 9]);
}

static void a_local_step_is_added_last(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "powergossip", "powergossip:rank=3", "powergossip:rank=2,iterations=2"};
    for (size_t s = 0; s < 3; s++) {
        job m = {.spec = specs[s], .rounds = 1, .last = TENSORS - 1};
        run_job(m);
        memcpy(plain, x, sizeof(x));
        m.updated = true;
        run_job(m);
        for (size_t i = 0; i < WORKERS * VALUES; i++) {
            assert_true(x[i] == plain[i] + updates[i]);
        }
    }
}

static void grouping_does_not_matter(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "powergossip", "powergossip:rank=2,iterations=3",
        "powergossip:warm-start=no"};
    for (size_t s = 0; s < 3; s++) {
        job m = {
            .spec = specs[s],
            .rounds = 5,
            .last = TENSORS - 1,
            .updated = true,
        };
        run_job(m);
        memcpy(plain, x, sizeof(x));
        m.apart = true;
        run_job(m);
        assert_memory_equal(x, plain, sizeof(x));
    }
}

static void settings_are_checked(void **state)
{
    (void)state;
    lac_algorithm_options o = lac_algorithm_options_default();
    lac_layout *layout;
    lac_topology *topology;
    lac_cost cost;
    assert_ok(lac_layout_open(&layout, tensors, TENSORS));
    assert_ok(lac_topology_open(&topology, "ring", WORKERS, 1));
    o.layout = layout;
    o.topology = topology;
    static const char *const wrong[] = {
        "powergossip:rank=0", "powergossip:rank=33", "powergossip:iterations=0",
        "powergossip:rate=0", "powergossip:warm-start=1"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        o.spec = wrong[i];
        assert_status(lac_algorithm_cost(&o, &cost), LAC_ERR_INVALID);
    }
    o.spec = "powergossip:diffusion_rate=1.308,warm-start=no";
    assert_ok(lac_algorithm_cost(&o, &cost));
    o.compressor = "sign";
    assert_fails(
        lac_algorithm_cost(&o, &cost), LAC_ERR_INVALID,
        "powergossip: compressor sign was given, but it takes none");
    lac_topology_close(topology);
    lac_layout_close(layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_gossip_exactly),
        cmocka_unit_test(vectors_alone_need_one_exchange),
        cmocka_unit_test(a_local_step_is_added_last),
        cmocka_unit_test(grouping_does_not_matter),
        cmocka_unit_test(settings_are_checked),
    };
    return cmocka_run_group_tests_name(
        "powergossip_tensors", tests, set_up, NULL);
}
