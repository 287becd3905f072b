// SPDX-License-Identifier: MIT
// The traffic for ResNet-20, to the float: as cost states it and as it is sent.
#include "cost.h"
#include "workers.h"

#include <math.h>
#include <stdio.h>

enum {
    VALUES = 272474,
    ROWS_SUM = 794,  // of all matrices
    COLS_SUM = 5755, // of all matrices
    VECTORS = 1578,  // values of tensors of one column
    TENSORS_MAX = 80,
    WORKERS = 4,
    NEIGHBOURS = 2,
    STEPS = 49, // an epoch, of 50,000 images and 8 workers with 128 each
};

typedef struct net {
    char names[TENSORS_MAX][16];
    lac_tensor tensors[TENSORS_MAX];
    size_t count;
} net;

static void add(net *n, size_t rows, size_t cols)
{
    char *const name = n->names[n->count];
    (void)snprintf(name, sizeof(n->names[0]), "t%zu", n->count);
    n->tensors[n->count] = (lac_tensor){.name = name, .shape = {rows, cols}};
    n->count++;
}

// A convolution with its batch norm.
static void add_convolution(net *n, size_t out, size_t in, size_t kernel)
{
    add(n, out, in * kernel * kernel);
    add(n, out, 1);
    add(n, out, 1);
}

// Shortcuts between stages are convolutions of 1 x 1.
static lac_layout *resnet_20(void)
{
    static net n;
    n.count = 0;
    add_convolution(&n, 16, 3, 3);
    size_t in = 16;
    for (size_t out = 16; out <= 64; out *= 2) {
        for (size_t block = 0; block < 3; block++) {
            add_convolution(&n, out, in, 3);
            add_convolution(&n, out, out, 3);
            if (in != out) {
                add_convolution(&n, out, in, 1);
            }
            in = out;
        }
    }
    add(&n, 10, 64);
    add(&n, 10, 1);
    lac_layout *layout;
    assert_ok(lac_layout_open(&layout, n.tensors, n.count));
    assert_int_equal(lac_layout_values(layout), VALUES);
    return layout;
}

static lac_cost cost_of(const char *spec, const char *compressor)
{
    return cost_for(spec, compressor, 8, resnet_20());
}

// The megabytes of an epoch in the table are rounded to two digits.
static void assert_cost(lac_cost cost, double bytes, double mebibytes)
{
    assert_true(cost.payload_bytes == bytes);
    const double epoch = bytes * NEIGHBOURS * STEPS / 0x1p20;
    assert_true(fabs(epoch - mebibytes) <= 0.005);
}

static void the_cost_is_that_of_the_papers(void **state)
{
    (void)state;
    const double matrices = ROWS_SUM + COLS_SUM;
    assert_cost(
        cost_of("powergossip", NULL), 4 * (matrices / 2 + VECTORS), 1.81);
    assert_cost(
        cost_of("powergossip:iterations=2", NULL), 4 * (matrices + VECTORS),
        3.04);
    assert_cost(
        cost_of("powergossip:iterations=4", NULL), 4 * (2 * matrices + VECTORS),
        5.49);
    assert_cost(cost_of("dpsgd", NULL), 4.0 * VALUES, 101.86);
}

// A scale of 4 bytes a tensor, and a bit a value. The paper's table leaves out
// that every tensor ends with a whole byte, which here adds nothing but for the
// last vector, of 10 values.
static void the_cost_of_signs_is_that_of_the_papers(void **state)
{
    (void)state;
    lac_layout *const layout = resnet_20();
    double bytes = 0;
    for (size_t i = 0; i < lac_layout_count(layout); i++) {
        const lac_shape shape = lac_layout_tensor(layout, i)->shape;
        bytes += (double)(4 + (shape.rows * shape.cols + 7) / 8);
    }
    lac_layout_close(layout);
    assert_cost(cost_of("choco:gamma=0.4", "sign"), bytes, 3.21);
}

static void messages_and_phases_count_iterations(void **state)
{
    (void)state;
    const lac_cost cost = cost_of("powergossip:iterations=4", NULL);
    assert_true(cost.messages == 4 * NEIGHBOURS);
    assert_true(cost.phases == 4);
}

// The settings of the workers, and their traffic after each of two rounds.
typedef struct job {
    const char *spec;
    const lac_layout *layout;
    lac_topology *topology;
    lac_traffic after[2];
} job;

static lac_status job_body(test_worker *w)
{
    job *const m = w->context;
    lac_algorithm *a = NULL;
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = m->spec;
    o.layout = m->layout;
    o.topology = m->topology;
    o.transport = w->transport;
    float *const x = calloc(VALUES, sizeof(*x));
    lac_slice slices[TENSORS_MAX];
    const size_t count = lac_layout_count(m->layout);
    for (size_t i = 0; i < count; i++) {
        float *const at = x + lac_layout_tensor(m->layout, i)->offset;
        slices[i] = (lac_slice){i, LAC_F32, at, at};
    }
    lac_status status = lac_algorithm_open(&a, &o);
    if (status == LAC_OK) {
        status = lac_algorithm_start(a, slices, count);
    }
    for (uint64_t round = 0; status == LAC_OK && round < 2; round++) {
        status = lac_algorithm_mix(a, round, slices, NULL, count);
        if (w->rank == 1) {
            m->after[round] = lac_algorithm_traffic(a);
        }
    }
    // Peers may read this worker's last message until it has left.
    lac_transport_leave(w->transport);
    w->transport = NULL;
    lac_algorithm_close(a);
    free(x);
    return status;
}

static void run_job(job *m)
{
    test_worker workers[WORKERS];
    lac_layout *const layout = resnet_20();
    m->layout = layout;
    assert_ok(lac_topology_open(&m->topology, "ring", WORKERS, 1));
    run_workers(WORKERS, job_body, m, workers);
    assert_all_ok(workers, WORKERS);
    lac_topology_close(m->topology);
    lac_layout_close(layout);
}

static void traffic_is_the_cost(void **state)
{
    (void)state;
    job one = {.spec = "powergossip"};
    run_job(&one);
    const uint64_t odd = 4 * NEIGHBOURS * (ROWS_SUM + VECTORS);
    const uint64_t even = 4 * NEIGHBOURS * (COLS_SUM + VECTORS);
    assert_int_equal(one.after[0].payload_bytes, odd);
    assert_int_equal(one.after[1].payload_bytes, odd + even);
    assert_int_equal(one.after[1].messages, 2 * NEIGHBOURS);
    job four = {.spec = "powergossip:iterations=4"};
    run_job(&four);
    assert_int_equal(
        four.after[0].payload_bytes,
        4 * NEIGHBOURS * (2 * (ROWS_SUM + COLS_SUM) + VECTORS));
    assert_int_equal(four.after[0].messages, 4 * NEIGHBOURS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cost_is_that_of_the_papers),
        cmocka_unit_test(the_cost_of_signs_is_that_of_the_papers),
        cmocka_unit_test(messages_and_phases_count_iterations),
        cmocka_unit_test(traffic_is_the_cost),
    };
    return cmocka_run_group_tests_name("powergossip_cost", tests, NULL, NULL);
}
