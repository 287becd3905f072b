// SPDX-License-Identifier: MIT
// Evaluates the workers' models and the averaged model on the test set.
//
// Every worker evaluates its own model on all batches. The averaged model is
// evaluated by all workers together, each on its share of the batches; a text
// is one sequence and is evaluated by worker 0. Where all models have the same
// bits, as with gradient algorithms, and no worker has its own statistics, the
// result for the averaged model holds for all. The workers synchronise every
// few batches, so that a slow one does not exceed the timeout of the others.
#include <math.h>
#include <string.h>

#include "train/worker.h"

// Batches between barriers.
enum { BARRIER_EVERY = 2 };

static lac_status barrier(train_worker *w)
{
    train_report report = {0};
    const train_report *reports = NULL;
    LAC_TRY(train_worker_gather(w, &report, &reports));
    return train_worker_broadcast(w);
}

static bool is_mine(const train_worker *w, bool text, uint64_t batch)
{
    return text ? w->rank == 0 : batch % w->world == w->rank;
}

// Evaluates one model on all batches or on this worker's share.
static lac_status test_model(
    train_worker *w, const nn_state *state, bool shared, nn_score *out)
{
    const bool text = data_set_info(w->run->plan.set)->kind == DATA_TEXT;
    const uint64_t batches = train_feed_tests(w->feed);
    const nn_network *const net = train_compute_learner(w->compute);
    memset(w->test_carry, 0, nn_network_carry(net) * sizeof(float));
    *out = (nn_score){0};
    for (uint64_t i = 0; i < batches; i++) {
        if (!shared || is_mine(w, text, i)) {
            nn_score score = {0};
            train_job job = {.state = *state};
            train_feed_test(w->feed, i, &job.batch);
            train_compute_start(w->compute, &job);
            LAC_TRY(train_compute_finish(w->compute, &score));
            out->loss += score.loss;
            out->correct += score.correct;
            out->count += score.count;
        }
        if (i % BARRIER_EVERY == BARRIER_EVERY - 1) {
            LAC_TRY(barrier(w));
        }
    }
    return LAC_OK;
}

static void add_usage(train_usage *sum, const train_usage *u, double share)
{
    sum->traffic.payload_bytes += u->traffic.payload_bytes;
    sum->traffic.wire_bytes += u->traffic.wire_bytes;
    sum->traffic.messages += u->traffic.messages;
    sum->compute_seconds += u->compute_seconds * share;
    sum->compress_seconds += u->compress_seconds * share;
    sum->wait_seconds += u->wait_seconds * share;
}

// Worker 0 combines the scores of all workers.
static void combine_scores(
    train_worker *w, const train_report *reports, train_metrics *out)
{
    const double world = w->world;
    nn_score averaged = {0};
    double loss = 0, train_loss = 0, accuracy = 0;
    uint64_t labels = 0;
    for (uint32_t k = 0; k < w->world; k++) {
        const train_report *const r = &reports[k];
        train_loss += r->loss;
        labels += r->labels;
        averaged.loss += r->averaged.loss;
        averaged.correct += r->averaged.correct;
        averaged.count += r->averaged.count;
        loss += r->own.loss / (double)r->own.count;
        accuracy += (double)r->own.correct / (double)r->own.count;
        add_usage(&out->usage, &r->usage, 1 / world);
    }
    const bool own = reports[0].own.count > 0;
    out->train_loss = train_loss / (double)labels;
    out->averaged_loss = averaged.loss / (double)averaged.count;
    out->averaged_accuracy = (double)averaged.correct / (double)averaged.count;
    out->test_loss = own ? loss / world : out->averaged_loss;
    out->test_accuracy = own ? accuracy / world : out->averaged_accuracy;
    w->decision.diverged =
        averaged.count > 0 &&
        !(isfinite(out->test_loss) && isfinite(out->averaged_loss));
}

lac_status train_worker_test(train_worker *w, train_metrics *out)
{
    train_report report = {0};
    const train_report *reports = NULL;
    double ignored = 0;
    *out = (train_metrics){
        .text = data_set_info(w->run->plan.set)->kind == DATA_TEXT,
    };
    LAC_TRY(train_sync_mean(w->sync, w->x, w->n, w->gradient, &out->consensus));
    LAC_TRY(train_sync_mean(
        w->sync, w->running, w->statistics, w->mean_running, &ignored));
    const bool same = out->consensus == 0 && w->statistics == 0;
    const nn_state own = {w->x, w->running, w->test_carry};
    const nn_state averaged = {w->gradient, w->mean_running, w->test_carry};
    if (!same) {
        LAC_TRY(test_model(w, &own, false, &report.own));
    }
    LAC_TRY(test_model(w, &averaged, true, &report.averaged));
    LAC_TRY(train_worker_gather(w, &report, &reports));
    if (reports != NULL) {
        combine_scores(w, reports, out);
    }
    return train_worker_broadcast(w);
}
