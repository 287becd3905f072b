// SPDX-License-Identifier: MIT
// Synchronisation of threads: all workers receive the same decision, and the
// mean is that of all.
#include "train/sync.h"

#include <math.h>

#include "lac_test.h"
#include "workers.h"

enum { WORKERS = 5, VALUES = 70001 }; // more than a piece, and no multiple

typedef struct scene {
    float *x; // of all workers
    float *mean[WORKERS];
    uint32_t excluded; // as in the options
    double distance[WORKERS];
    uint32_t received[WORKERS];
} scene;

static lac_status open_sync(
    test_worker *w, size_t report, size_t decision, train_sync **out)
{
    return train_sync_open(
        out, &(train_sync_options){
                 .transport = w->transport,
                 .report_size = report,
                 .decision_size = decision,
                 .timeout = 30,
             });
}

// Ends a worker's part with its status.
static lac_status leave_sync(test_worker *w, train_sync *m, lac_status status)
{
    lac_transport_leave(w->transport);
    w->transport = NULL;
    train_sync_close(m);
    return status;
}

static void run(lac_status (*body)(test_worker *w), scene *s)
{
    test_worker workers[WORKERS];
    run_workers(WORKERS, body, s, workers);
    for (int k = 0; k < WORKERS; k++) {
        assert_ok(workers[k].status);
    }
}

// Every worker reports its rank; the decision is the sum of squares.
static lac_status gather_ranks(test_worker *w)
{
    scene *const s = w->context;
    train_sync *m = NULL;
    const void *reports = NULL;
    const float *const *rows = NULL;
    uint32_t sum = 0;
    lac_status status = open_sync(w, sizeof(w->rank), sizeof(sum), &m);
    for (int i = 0; status == LAC_OK && i < 3; i++) {
        status = train_sync_gather(m, &w->rank, NULL, 0, &reports, &rows);
        sum = 0;
        for (uint32_t k = 0; status == LAC_OK && reports && k < WORKERS; k++) {
            const uint32_t rank = ((const uint32_t *)reports)[k];
            sum += rank * rank;
        }
        if (status == LAC_OK) {
            status = train_sync_broadcast(m, &sum, NULL, 0);
        }
    }
    s->received[w->rank] = sum;
    return leave_sync(w, m, status);
}

static void all_receive_the_decision_of_worker_0(void **state)
{
    (void)state;
    scene s = {0};
    run(gather_ranks, &s);
    for (uint32_t k = 0; k < WORKERS; k++) {
        assert_int_equal(s.received[k], 0 + 1 + 4 + 9 + 16);
    }
}

static lac_status average(test_worker *w)
{
    scene *const s = w->context;
    train_sync *m = NULL;
    lac_status status = train_sync_open(
        &m, &(train_sync_options){
                .transport = w->transport,
                .report_size = 8,
                .decision_size = 8,
                .timeout = 30,
                .excluded = s->excluded,
            });
    if (status == LAC_OK) {
        status = train_sync_mean(
            m, s->x + (size_t)w->rank * VALUES, VALUES, s->mean[w->rank],
            &s->distance[w->rank]);
    }
    return leave_sync(w, m, status);
}

static void run_mean(scene *s)
{
    for (int k = 0; k < WORKERS; k++) {
        s->mean[k] = test_calloc(VALUES, sizeof(float));
    }
    run(average, s);
}

static void clear(scene *s)
{
    for (int k = 0; k < WORKERS; k++) {
        test_free(s->mean[k]);
    }
    test_free(s->x);
}

static lac_status subtract(test_worker *w)
{
    scene *const s = w->context;
    train_sync *m = NULL;
    lac_status status = open_sync(w, 8, 8, &m);
    if (status == LAC_OK) {
        status = train_sync_difference(
            m, 3, s->x + (size_t)w->rank * VALUES, VALUES,
            w->rank == 0 ? s->mean[0] : NULL);
    }
    return leave_sync(w, m, status);
}

static void worker_0_gets_the_difference_to_a_peer(void **state)
{
    (void)state;
    scene s = {
        .x = test_calloc((size_t)WORKERS * VALUES, sizeof(float)),
        .mean[0] = test_calloc(VALUES, sizeof(float)),
    };
    for (size_t i = 0; i < (size_t)WORKERS * VALUES; i++) {
        s.x[i] = (float)((i * 2654435761u) % 1000);
    }
    run(subtract, &s);
    for (size_t i = 0; i < VALUES; i++) {
        assert_true(s.mean[0][i] == s.x[i] - s.x[3 * (size_t)VALUES + i]);
    }
    test_free(s.mean[0]);
    test_free(s.x);
}

static void the_mean_and_the_distance_are_those_of_all_rows(void **state)
{
    (void)state;
    scene s = {.x = test_calloc((size_t)WORKERS * VALUES, sizeof(float))};
    double distance = 0;
    for (size_t i = 0; i < (size_t)WORKERS * VALUES; i++) {
        s.x[i] = (float)((double)((i * 2654435761u) % 1000) / 1000);
    }
    run_mean(&s);
    for (size_t i = 0; i < VALUES; i++) {
        double mean = 0;
        for (size_t k = 0; k < WORKERS; k++) {
            mean += (double)s.x[k * VALUES + i] / WORKERS;
        }
        // The mean is rounded to a float once.
        assert_true(
            (double)s.mean[0][i] - mean < 1e-7 &&
            mean - (double)s.mean[0][i] < 1e-7);
        for (size_t k = 0; k < WORKERS; k++) {
            const double d = (double)s.x[k * VALUES + i] - mean;
            distance += d * d / WORKERS;
        }
    }
    for (int k = 0; k < WORKERS; k++) {
        assert_memory_equal(s.mean[k], s.mean[0], VALUES * sizeof(float));
        // Two orders of adding 350,000 doubles: far below 1e-9 of the sum.
        assert_true(
            s.distance[k] < distance * (1 + 1e-9) &&
            s.distance[k] > distance * (1 - 1e-9));
    }
    clear(&s);
}

// So the training loop may evaluate equal models once.
static void equal_models_have_distance_0_and_are_their_mean(void **state)
{
    (void)state;
    scene s = {.x = test_calloc((size_t)WORKERS * VALUES, sizeof(float))};
    for (size_t i = 0; i < (size_t)WORKERS * VALUES; i++) {
        s.x[i] = 1.0F / (float)(1 + i % VALUES);
    }
    run_mean(&s);
    for (int k = 0; k < WORKERS; k++) {
        assert_true(s.distance[k] == 0);
        assert_memory_equal(s.mean[k], s.x, VALUES * sizeof(float));
    }
    clear(&s);
}

// Its values may be anything: with them neither result would be finite.
static void an_excluded_worker_counts_for_nothing(void **state)
{
    (void)state;
    for (uint32_t excluded = 0; excluded < WORKERS; excluded += 2) {
        scene s = {
            .x = test_calloc((size_t)WORKERS * VALUES, sizeof(float)),
            .excluded = excluded + 1,
        };
        for (size_t i = 0; i < (size_t)WORKERS * VALUES; i++) {
            const uint32_t rank = (uint32_t)(i / VALUES);
            // The others are alternately at 1 and at 3.
            const uint32_t place = rank - (rank > excluded ? 1 : 0);
            s.x[i] = rank == excluded ? NAN : place % 2 == 0 ? 1 : 3;
        }
        run_mean(&s);
        for (int k = 0; k < WORKERS; k++) {
            assert_true(s.mean[k][0] == 2 && s.mean[k][VALUES - 1] == 2);
            assert_true(s.distance[k] == VALUES);
        }
        clear(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_receive_the_decision_of_worker_0),
        cmocka_unit_test(worker_0_gets_the_difference_to_a_peer),
        cmocka_unit_test(the_mean_and_the_distance_are_those_of_all_rows),
        cmocka_unit_test(equal_models_have_distance_0_and_are_their_mean),
        cmocka_unit_test(an_excluded_worker_counts_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
