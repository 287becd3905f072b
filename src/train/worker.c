// SPDX-License-Identifier: MIT
// Opens and closes a worker: its networks, buffers, algorithm and optimiser.
#include "train/worker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEST_BATCH = 100, ALIGNMENT = 64, GRADIENTS = 5 };

// Seconds that gradients are timed for at least, unless they are many.
#define GRADIENTS_SECONDS 0.5

static float *aligned_zeros(size_t n)
{
    const size_t bytes = n * sizeof(float);
    const size_t room = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    float *const memory = aligned_alloc(ALIGNMENT, room);
    if (memory != NULL) {
        memset(memory, 0, room);
    }
    return memory;
}

static lac_status open_compute(train_worker *w)
{
    const train_plan *const p = &w->run->plan;
    const data_info *const info = data_set_info(p->set);
    const nn_sample sample = train_feed_sample(info);
    const bool text = info->kind == DATA_TEXT;
    const train_compute_options options = {
        .learning =
            {
                .model = p->model,
                .sample = sample,
                .batch = p->batch,
                .steps = p->steps,
                .training = true,
            },
        .testing =
            {
                .model = p->model,
                .sample = sample,
                .batch = text ? p->batch : TEST_BATCH,
                .steps = p->steps,
            },
        .own_thread = p->overlap,
        .step_time = p->step_time,
    };
    const train_feed_options feed = {
        .set = p->set,
        .rule = p->split,
        .rank = w->rank,
        .world = w->world,
        .batch = p->batch,
        .steps = p->steps,
        .test_batch = options.testing.batch,
        .augment = p->augment,
        .seed = p->seed,
    };
    LAC_TRY(train_feed_open(&w->feed, &feed));
    return train_compute_open(&w->compute, &options);
}

static void cut_slices(train_worker *w, const lac_layout *layout)
{
    for (size_t t = 0; t < w->tensors; t++) {
        const size_t offset = lac_layout_tensor(layout, t)->offset;
        float *const x = w->x + offset;
        float *const gradient = w->gradient + offset;
        w->model_slices[t] = (lac_slice){t, LAC_F32, x, x};
        w->gradient_slices[t] = (lac_slice){t, LAC_F32, gradient, gradient};
        w->updates[t] = gradient;
    }
}

static lac_status worker_allocate(train_worker *w)
{
    const nn_network *const net = train_compute_learner(w->compute);
    const lac_layout *const layout = nn_network_layout(net);
    const size_t carry = nn_network_carry(net);
    w->n = lac_layout_values(layout);
    w->statistics = lac_layout_values(nn_network_statistics(net));
    w->tensors = lac_layout_count(layout);
    w->x = aligned_zeros(w->n);
    w->gradient = aligned_zeros(w->n);
    w->running = aligned_zeros(w->statistics);
    w->mean_running = aligned_zeros(w->statistics);
    w->carry = aligned_zeros(carry);
    w->test_carry = aligned_zeros(carry);
    w->model_slices = calloc(w->tensors, sizeof(*w->model_slices));
    w->gradient_slices = calloc(w->tensors, sizeof(*w->gradient_slices));
    w->updates = calloc(w->tensors, sizeof(*w->updates));
    if (w->x == NULL || w->gradient == NULL || w->running == NULL ||
        w->mean_running == NULL || w->carry == NULL || w->test_carry == NULL ||
        w->model_slices == NULL || w->gradient_slices == NULL ||
        w->updates == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "no memory for the %zu parameters of worker %u",
            w->n, w->rank);
    }
    cut_slices(w, layout);
    return LAC_OK;
}

bool train_copies_fragments(const train_plan *p)
{
    return p->overlap && p->local_steps.delay > 0;
}

static lac_status open_algorithm(train_worker *w)
{
    lac_algorithm_options options = w->run->plan.algorithm;
    options.layout = nn_network_layout(train_compute_learner(w->compute));
    options.transport = w->transport;
    options.training = true;
    options.timing = true;
    LAC_TRY(lac_algorithm_open(&w->algorithm, &options));
    if (train_local_steps_streams(&w->run->plan.local_steps)) {
        LAC_TRY(train_stream_open(
            &w->stream, &options, w->algorithm, w->model_slices,
            train_copies_fragments(&w->run->plan)));
    }
    w->state_len = lac_algorithm_state_size(w->algorithm);
    w->state = malloc(w->state_len + 1);
    return w->state != NULL
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_NOMEM, "no memory for the state of worker %u",
                     w->rank);
}

static lac_status open_optimiser(train_worker *w)
{
    train_optimiser_options optimiser = w->run->plan.optimiser;
    optimiser.layout = nn_network_layout(train_compute_learner(w->compute));
    return train_optimiser_open(&w->optimiser, &optimiser);
}

static lac_status open_syncs(train_worker *w)
{
    train_sync_options options = {
        .transport = w->transport,
        .report_size = sizeof(train_report),
        .decision_size = sizeof(train_decision),
        .timeout = w->run->plan.algorithm.timeout,
        .excluded = w->run->plan.hostile,
    };
    LAC_TRY(train_sync_open(&w->sync, &options));
    options.report_size = sizeof(train_claim);
    options.decision_size = sizeof(train_origin);
    return train_sync_open(&w->start_sync, &options);
}

// The labels of a step over all workers.
static uint64_t step_labels(const train_worker *w)
{
    const train_plan *const p = &w->run->plan;
    const bool text = data_set_info(p->set)->kind == DATA_TEXT;
    return (uint64_t)p->batch * (text ? p->steps : 1) * w->world;
}

lac_status train_worker_open(train_worker *w)
{
    LAC_TRY(open_syncs(w));
    LAC_TRY(train_worker_compare(w));
    LAC_TRY(open_compute(w));
    LAC_TRY(worker_allocate(w));
    LAC_TRY(open_algorithm(w));
    LAC_TRY(open_optimiser(w));
    w->epoch_steps = train_feed_steps(w->feed);
    w->total_steps = w->run->plan.epochs * w->epoch_steps;
    w->first_steps = train_first_steps(step_labels(w), w->epoch_steps);
    const train_tests *const tests = &w->run->plan.tests;
    w->test_every = tests->every * (tests->epochs ? w->epoch_steps : 1);
    return LAC_OK;
}

// Times the gradients of the first steps. The first one of all also prepares
// the network.
static lac_status time_gradient(train_worker *w, double *out)
{
    double least = (double)INFINITY, before = 0;
    nn_network_initialise(
        train_compute_learner(w->compute), w->run->plan.seed, w->x, w->running);
    for (uint64_t i = 0; i < GRADIENTS && before < GRADIENTS_SECONDS; i++) {
        nn_score score;
        train_job job = {
            .state = {w->x, w->running, w->carry},
            .gradient = w->gradient,
        };
        train_feed_batch(w->feed, 0, i % w->epoch_steps, &job.batch);
        train_compute_start(w->compute, &job);
        LAC_TRY(train_compute_finish(w->compute, &score));
        const double now = train_compute_seconds(w->compute);
        least = fmin(least, now - before);
        before = now;
    }
    *out = least;
    return LAC_OK;
}

lac_status train_plan_facts(
    const train_run *run, train_facts *out, double *gradient_out)
{
    train_run copy = *run;
    copy.plan.step_time = 0;
    train_worker *const w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for a worker");
    }
    w->run = &copy;
    w->schedule = run->plan.schedule;
    w->world = run->world;
    lac_status status = open_compute(w);
    if (status == LAC_OK) {
        status = worker_allocate(w);
    }
    if (status == LAC_OK) {
        status = open_optimiser(w);
    }
    if (status == LAC_OK) {
        w->epoch_steps = train_feed_steps(w->feed);
        train_worker_facts(w, out);
        status = time_gradient(w, gradient_out);
    }
    train_worker_close(w);
    return status;
}

void train_worker_close(train_worker *w)
{
    train_sync_close(w->start_sync);
    train_sync_close(w->sync);
    train_stream_close(w->stream);
    lac_algorithm_close(w->algorithm);
    train_optimiser_close(w->optimiser);
    train_compute_close(w->compute);
    train_feed_close(w->feed);
    free(w->settings);
    free(w->state);
    free(w->updates);
    free(w->gradient_slices);
    free(w->model_slices);
    free(w->test_carry);
    free(w->carry);
    free(w->mean_running);
    free(w->running);
    free(w->gradient);
    free(w->x);
    free(w);
}

train_usage train_worker_usage(const train_worker *w)
{
    const lac_traffic sent = lac_algorithm_traffic(w->algorithm);
    const double waited = lac_algorithm_waited(w->algorithm) - w->waited_before;
    train_usage u = w->usage_before;
    const train_usage *const not = &w->searched;
    u.traffic.payload_bytes += sent.payload_bytes - not ->traffic.payload_bytes;
    u.traffic.wire_bytes += sent.wire_bytes - not ->traffic.wire_bytes;
    u.traffic.messages += sent.messages - not ->traffic.messages;
    u.compute_seconds +=
        train_compute_seconds(w->compute) - not ->compute_seconds;
    u.compress_seconds += fmax(0, w->algorithm_seconds - waited);
    u.wait_seconds += waited;
    u.test_seconds += w->test_seconds;
    u.search_seconds += w->search_seconds;
    return u;
}

double train_worker_elapsed(const train_worker *w)
{
    return w->elapsed_before + w->search_seconds +
           lac_transport_now(w->transport) - w->started;
}
