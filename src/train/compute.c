// SPDX-License-Identifier: MIT
// Jobs of networks. A network belongs to the thread that opened it, so with a
// thread beside the worker that one opens, uses and closes them; the worker
// hands it one job at a time.
#include "train/compute.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// oneDNN writes and calls code of its own, with more on the stack than ours.
enum { STACK_SIZE = 8 << 20, SENTENCE_SIZE = 512 };

typedef enum phase { OPENING, IDLE, GIVEN, CLOSING } phase;

struct train_compute {
    train_compute_options options;
    nn_network *learner;
    nn_network *tester;
    train_job job;
    nn_score score;
    double seconds;
    lac_status status; // of the last job, or of opening
    char sentence[SENTENCE_SIZE];
    bool started; // the thread, the lock and the condition are there
    pthread_t thread;
    pthread_mutex_t lock; // of phase
    pthread_cond_t moved;
    phase phase;
};

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static lac_status open_networks(train_compute *c)
{
    const lac_status status =
        nn_network_open(&c->learner, &c->options.learning);
    return status == LAC_OK ? nn_network_open(&c->tester, &c->options.testing)
                            : status;
}

static void close_networks(train_compute *c)
{
    nn_network_close(c->learner);
    nn_network_close(c->tester);
}

static lac_status run_job(train_compute *c)
{
    const train_job *const j = &c->job;
    if (j->gradient == NULL) {
        return nn_network_evaluate(c->tester, &j->state, &j->batch, &c->score);
    }
    const double begun = now();
    const lac_status status = nn_network_gradient(
        c->learner, &j->state, &j->batch, &j->noise, j->gradient, &c->score);
    c->seconds += now() - begun;
    return status;
}

// The sentence of a failure belongs to the thread it happened in.
static void keep(train_compute *c, lac_status status)
{
    c->status = status;
    if (status != LAC_OK) {
        (void)snprintf(
            c->sentence, sizeof(c->sentence), "%s", lac_error_message());
    }
}

static void move(train_compute *c, phase to)
{
    (void)pthread_mutex_lock(&c->lock);
    c->phase = to;
    (void)pthread_cond_broadcast(&c->moved);
    (void)pthread_mutex_unlock(&c->lock);
}

// Waits until the phase is another one, and returns it.
static phase wait_beyond(train_compute *c, phase from)
{
    (void)pthread_mutex_lock(&c->lock);
    while (c->phase == from) {
        (void)pthread_cond_wait(&c->moved, &c->lock);
    }
    const phase found = c->phase;
    (void)pthread_mutex_unlock(&c->lock);
    return found;
}

static void *serve(void *argument)
{
    train_compute *const c = argument;
    keep(c, open_networks(c));
    move(c, IDLE);
    while (wait_beyond(c, IDLE) == GIVEN) {
        keep(c, run_job(c));
        move(c, IDLE);
    }
    close_networks(c);
    return NULL;
}

static lac_status start_thread(train_compute *c)
{
    pthread_attr_t attributes;
    if (pthread_mutex_init(&c->lock, NULL) != 0) {
        return lac_fail(LAC_ERR_NOMEM, "no room for a thread that computes");
    }
    bool good = pthread_cond_init(&c->moved, NULL) == 0;
    if (good && pthread_attr_init(&attributes) == 0) {
        good = pthread_attr_setstacksize(&attributes, STACK_SIZE) == 0 &&
               pthread_create(&c->thread, &attributes, serve, c) == 0;
        (void)pthread_attr_destroy(&attributes);
    } else {
        good = false;
    }
    c->started = good;
    return good ? LAC_OK
                : lac_fail(LAC_ERR_NOMEM, "no room for a thread that computes");
}

lac_status train_compute_open(
    train_compute **out, const train_compute_options *options)
{
    *out = NULL;
    train_compute *const c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for the networks");
    }
    c->options = *options;
    lac_status status;
    if (options->aside) {
        status = start_thread(c);
        if (status == LAC_OK) {
            (void)wait_beyond(c, OPENING);
            status = c->status == LAC_OK
                         ? LAC_OK
                         : lac_fail(c->status, "%s", c->sentence);
        }
    } else {
        status = open_networks(c);
    }
    if (status != LAC_OK) {
        train_compute_close(c);
        return status;
    }
    *out = c;
    return LAC_OK;
}

void train_compute_close(train_compute *c)
{
    if (c == NULL) {
        return;
    }
    if (c->started) {
        move(c, CLOSING);
        (void)pthread_join(c->thread, NULL);
        (void)pthread_cond_destroy(&c->moved);
        (void)pthread_mutex_destroy(&c->lock);
    } else {
        close_networks(c);
    }
    free(c);
}

const nn_network *train_compute_learner(const train_compute *c)
{
    return c->learner;
}

size_t train_compute_memory(const train_compute *c)
{
    return nn_network_memory(c->learner) + nn_network_memory(c->tester);
}

void train_compute_start(train_compute *c, const train_job *job)
{
    c->job = *job;
    if (c->options.aside) {
        move(c, GIVEN);
    }
}

lac_status train_compute_finish(train_compute *c, nn_score *out)
{
    lac_status status;
    if (c->options.aside) {
        (void)wait_beyond(c, GIVEN);
        status = c->status == LAC_OK ? LAC_OK
                                     : lac_fail(c->status, "%s", c->sentence);
    } else {
        status = run_job(c);
    }
    *out = c->score;
    return status;
}

double train_compute_seconds(const train_compute *c)
{
    return c->seconds;
}
