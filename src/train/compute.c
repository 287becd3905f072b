// SPDX-License-Identifier: MIT
// Runs the jobs of networks. A network belongs to the thread that opened it. So
// if the networks have a thread of their own, that thread opens, uses and
// closes them, and the worker hands it one job at a time.
#include "train/compute.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "train/pause.h"

// The code of oneDNN needs more stack than ours.
enum { STACK_SIZE = 8 << 20, MESSAGE_SIZE = 512 };

typedef enum phase { OPENING, IDLE, GIVEN, CLOSING } phase;

struct train_compute {
    train_compute_options options;
    nn_network *learner;
    nn_network *tester;
    train_job job;
    train_task *task; // that the thread runs, with its context; NULL: a job
    void *context;
    nn_score score;
    double seconds;
    lac_status status;          // of the last job, or of opening
    char message[MESSAGE_SIZE]; // of the failure
    bool started;               // thread, lock and condition exist
    pthread_t thread;
    pthread_mutex_t lock; // guards phase
    pthread_cond_t changed;
    phase phase;
};

static double compute_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static lac_status open_networks(train_compute *c)
{
    LAC_TRY(nn_network_open(&c->learner, &c->options.learning));
    return nn_network_open(&c->tester, &c->options.testing);
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
    const double begun = compute_now();
    const lac_status status = nn_network_gradient(
        c->learner, &j->state, &j->batch, &j->noise, j->gradient, &c->score);
    train_pause(c->options.step_time);
    c->seconds += compute_now() - begun;
    return status;
}

// Stores the error message too, which belongs to the thread of the failure.
static void store_result(train_compute *c, lac_status status)
{
    c->status = status;
    if (status != LAC_OK) {
        (void)snprintf(
            c->message, sizeof(c->message), "%s", lac_error_message());
    }
}

// Reports the result of the thread as one of the calling thread.
static lac_status forward_result(const train_compute *c)
{
    return c->status == LAC_OK ? LAC_OK : lac_fail(c->status, "%s", c->message);
}

static void change_phase(train_compute *c, phase to)
{
    (void)pthread_mutex_lock(&c->lock);
    c->phase = to;
    (void)pthread_cond_broadcast(&c->changed);
    (void)pthread_mutex_unlock(&c->lock);
}

// Waits until the phase differs from `from`, and returns it.
static phase wait_while(train_compute *c, phase from)
{
    (void)pthread_mutex_lock(&c->lock);
    while (c->phase == from) {
        (void)pthread_cond_wait(&c->changed, &c->lock);
    }
    const phase found = c->phase;
    (void)pthread_mutex_unlock(&c->lock);
    return found;
}

static void *serve(void *argument)
{
    train_compute *const c = argument;
    store_result(c, open_networks(c));
    change_phase(c, IDLE);
    while (wait_while(c, IDLE) == GIVEN) {
        store_result(c, c->task != NULL ? c->task(c->context) : run_job(c));
        change_phase(c, IDLE);
    }
    close_networks(c);
    return NULL;
}

static bool create_thread(train_compute *c)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    const bool created =
        pthread_attr_setstacksize(&attributes, STACK_SIZE) == 0 &&
        pthread_create(&c->thread, &attributes, serve, c) == 0;
    (void)pthread_attr_destroy(&attributes);
    return created;
}

static bool start_thread(train_compute *c)
{
    if (pthread_mutex_init(&c->lock, NULL) != 0) {
        return false;
    }
    if (pthread_cond_init(&c->changed, NULL) != 0) {
        goto no_condition;
    }
    c->started = create_thread(c);
    if (c->started) {
        return true;
    }
    (void)pthread_cond_destroy(&c->changed);
no_condition:
    (void)pthread_mutex_destroy(&c->lock);
    return false;
}

static lac_status open_in_thread(train_compute *c)
{
    if (!start_thread(c)) {
        return lac_fail(
            LAC_ERR_NOMEM,
            "cannot create a thread that computes gradients; run with fewer "
            "workers or without --overlap");
    }
    (void)wait_while(c, OPENING);
    return forward_result(c);
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
    const lac_status status =
        options->own_thread ? open_in_thread(c) : open_networks(c);
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
        change_phase(c, CLOSING);
        (void)pthread_join(c->thread, NULL);
        (void)pthread_cond_destroy(&c->changed);
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

// Returns whether a job is given to the thread. A task is in the thread
// already.
static bool is_threaded(const train_compute *c)
{
    return c->options.own_thread && c->task == NULL;
}

void train_compute_start(train_compute *c, const train_job *job)
{
    c->job = *job;
    if (is_threaded(c)) {
        change_phase(c, GIVEN);
    }
}

lac_status train_compute_finish(train_compute *c, nn_score *out)
{
    lac_status status;
    if (is_threaded(c)) {
        (void)wait_while(c, GIVEN);
        status = forward_result(c);
    } else {
        status = run_job(c);
    }
    *out = c->score;
    return status;
}

void train_compute_start_task(train_compute *c, train_task *task, void *context)
{
    c->task = task;
    c->context = context;
    change_phase(c, GIVEN);
}

lac_status train_compute_finish_task(train_compute *c)
{
    (void)wait_while(c, GIVEN);
    c->task = NULL;
    return forward_result(c);
}

double train_compute_seconds(const train_compute *c)
{
    return c->seconds;
}
