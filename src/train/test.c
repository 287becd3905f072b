// SPDX-License-Identifier: MIT
// How well the workers' models and the averaged one predict the test set.
//
// Every worker tests its own model on all of it. The averaged model is tested
// by all of them together, a share of the batches each; a text is one sequence
// and is left to worker 0. Where all models are the same to the bit, as with
// gradient algorithms, and no worker has statistics of its own, that serves for
// both. The workers keep in step, so that nobody runs out of patience with a
// slower one.
#include <math.h>
#include <string.h>

#include "train/worker.h"

// Batches between meetings.
enum { BEAT = 2 };

static lac_status beat(train_worker *w)
{
    train_report report = {0};
    const train_report *reports = NULL;
    const lac_status status = train_worker_meet(w, &report, &reports);
    return status == LAC_OK ? train_worker_agree(w) : status;
}

static bool is_mine(const train_worker *w, bool text, uint64_t batch)
{
    return text ? w->rank == 0 : batch % w->world == w->rank;
}

// Tests one model, on all batches or on this worker's share.
static lac_status test_model(
    train_worker *w, const nn_state *state, bool shared, nn_score *out)
{
    const bool text = data_set_info(w->run->plan.set)->kind == DATA_TEXT;
    const uint64_t batches = train_feed_tests(w->feed);
    const nn_network *const net = train_compute_learner(w->compute);
    memset(w->test_carry, 0, nn_network_carry(net) * sizeof(float));
    *out = (nn_score){0};
    for (uint64_t i = 0; i < batches; i++) {
        lac_status status = LAC_OK;
        if (!shared || is_mine(w, text, i)) {
            nn_score score = {0};
            train_job job = {.state = *state};
            train_feed_test(w->feed, i, &job.batch);
            train_compute_start(w->compute, &job);
            status = train_compute_finish(w->compute, &score);
            out->loss += score.loss;
            out->correct += score.correct;
            out->count += score.count;
        }
        if (status == LAC_OK && i % BEAT == BEAT - 1) {
            status = beat(w);
        }
        if (status != LAC_OK) {
            return status;
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

// Worker 0 adds up what all have found.
static void judge(
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
    w->agreed.diverged = averaged.count > 0 && !(isfinite(out->test_loss) &&
                                                 isfinite(out->averaged_loss));
}

lac_status train_worker_test(train_worker *w, train_metrics *out)
{
    train_report report = {0};
    const train_report *reports = NULL;
    double ignored = 0;
    *out = (train_metrics){
        .text = data_set_info(w->run->plan.set)->kind == DATA_TEXT,
    };
    lac_status status = train_meeting_mean(
        w->meeting, w->x, w->n, w->gradient, &out->consensus);
    if (status == LAC_OK) {
        status = train_meeting_mean(
            w->meeting, w->running, w->statistics, w->mean_running, &ignored);
    }
    const bool same = out->consensus == 0 && w->statistics == 0;
    const nn_state own = {w->x, w->running, w->test_carry};
    const nn_state averaged = {w->gradient, w->mean_running, w->test_carry};
    if (status == LAC_OK && !same) {
        status = test_model(w, &own, false, &report.own);
    }
    if (status == LAC_OK) {
        status = test_model(w, &averaged, true, &report.averaged);
    }
    if (status == LAC_OK) {
        status = train_worker_meet(w, &report, &reports);
    }
    if (status == LAC_OK && reports != NULL) {
        judge(w, reports, out);
    }
    return status == LAC_OK ? train_worker_agree(w) : status;
}
