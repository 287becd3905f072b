// SPDX-License-Identifier: MIT
// Short training runs: logistic regression on the images of feed_test.h, by
// threads on a ring. Tests set what else they need in `run`.
#ifndef LACONIC_TESTS_TRAINING_H
#define LACONIC_TESTS_TRAINING_H

#include "feed_test.h"
#include "train/run.h"
#include "workers.h"

enum { TRAINING_WORKERS = 3, BATCH = 4 };

typedef struct training {
    data_set *set;
    lac_topology *topology;
    train_worker *workers[TRAINING_WORKERS];
    atomic_int stop;
    train_run run;
} training;

// One epoch by `world` workers, without `workers` and hooks.
static inline train_run epoch_of(
    const data_set *set, const lac_topology *ring, uint32_t world,
    const char *out)
{
    train_run run = {
        .plan =
            {
                .model = "logistic",
                .set = set,
                .batch = BATCH,
                .optimiser = {.rule = TRAIN_SGD, .momentum = 0.5},
                .schedule = {.course = TRAIN_CONSTANT, .rate = 0.01},
                .epochs = 1,
                .algorithm = lac_algorithm_options_default(),
                .seed = 1,
                .folder = out,
            },
        .world = world,
    };
    run.plan.algorithm.spec = "dpsgd";
    run.plan.algorithm.topology = ring;
    run.plan.algorithm.timeout = 30;
    return run;
}

static inline void training_open(
    training *t, uint32_t world, const char *out, bool resume)
{
    *t = (training){.set = open_images()};
    assert_ok(lac_topology_open(&t->topology, "ring", world, 1));
    t->run = epoch_of(t->set, t->topology, world, out);
    t->run.plan.resume = resume;
    t->run.hooks.context = t;
    t->run.hooks.stop = &t->stop;
    t->run.workers = t->workers;
}

static inline void training_close(training *t)
{
    lac_topology_close(t->topology);
    data_set_close(t->set);
}

// Ends a worker of a run; a failure ends the others too.
static inline lac_status leave_run(
    test_worker *w, train_run *run, lac_status status)
{
    if (status != LAC_OK) {
        lac_transport_abort(w->transport, lac_error_message());
    }
    lac_transport_leave(w->transport);
    w->transport = NULL;
    train_release(run, w->rank);
    return status;
}

// A body: a worker of a training.
static inline lac_status training_work(test_worker *w)
{
    training *const t = w->context;
    return leave_run(w, &t->run, train_work(&t->run, w->transport));
}

// Runs all workers, which must succeed.
static inline void training_run(training *t)
{
    test_worker workers[TRAINING_WORKERS];
    run_workers(t->run.world, training_work, t, workers);
    assert_all_ok(workers, t->run.world);
}

#endif
