// SPDX-License-Identifier: MIT
// Evaluates the workers' models and the averaged model on the test set.
//
// Every worker evaluates its own model on the first examples of the set. The
// averaged model is evaluated by all workers together, each on its share of the
// examples, or of the rows of a text. Where all models have the same bits, as
// with gradient algorithms, and no worker has its own statistics, the result
// for the averaged model holds for all. The workers synchronise after
// every batch, so that a slow one does not exceed the timeout of the others,
// and all give up the test when one of them is asked to end. If the objective
// is asked for, they also evaluate the averaged model on the training set in
// shares.
#include <math.h>
#include <string.h>

#include "train/worker.h"

// The batches of a test.
typedef struct test_progress {
    uint64_t done, total;
} test_progress;

static void add_score(nn_score *sum, const nn_score *score)
{
    sum->loss += score->loss;
    sum->correct += score->correct;
    sum->count += score->count;
}

// Evaluates one model on a part of the test set, up to a stop.
static lac_status test_model(
    train_worker *w, const nn_state *state, train_feed_part part,
    test_progress *progress, nn_score *out)
{
    const uint64_t batches = train_feed_tests(w->feed, part);
    const nn_network *const net = train_compute_learner(w->compute);
    memset(w->test_carry, 0, nn_network_carry(net) * sizeof(float));
    *out = (nn_score){0};
    for (uint64_t i = 0; i < batches && w->decision.stop == 0; i++) {
        nn_score score = {0};
        train_job job = {.state = *state};
        train_worker_testing(w, progress->done++, progress->total);
        train_feed_test(w->feed, part, i, &job.batch);
        if (job.batch.count > 0) {
            train_compute_start(w->compute, &job);
            LAC_TRY(train_compute_finish(w->compute, &score));
            add_score(out, &score);
        }
        LAC_TRY(train_worker_check(w));
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
    sum->test_seconds += u->test_seconds * share;
    sum->search_seconds += u->search_seconds * share;
}

// Worker 0 combines the scores of all workers. A hostile one counts only for
// the models that it has evaluated a share of.
static void combine_scores(
    train_worker *w, const train_report *reports, train_metrics *out)
{
    const uint32_t hostile = w->run->plan.hostile;
    const double honest = w->world - (hostile == 0 ? 0 : 1);
    nn_score averaged = {0}, training = {0};
    double loss = 0, train_loss = 0, accuracy = 0, worst = 1;
    uint64_t labels = 0;
    train_trace trace = {0};
    for (uint32_t k = 0; k < w->world; k++) {
        const train_report *const r = &reports[k];
        train_loss += r->loss;
        labels += r->labels;
        train_trace_merge(&trace, &r->trace);
        add_score(&averaged, &r->averaged);
        add_score(&training, &r->training);
        add_usage(&out->usage, &r->usage, 1.0 / w->world);
        if (hostile == k + 1) {
            continue;
        }
        loss += r->own.loss / (double)r->own.count;
        const double one = (double)r->own.correct / (double)r->own.count;
        accuracy += one;
        worst = fmin(worst, one);
    }
    const bool own = reports[0].own.count > 0;
    train_trace_judge(&trace, labels, out);
    out->train_loss = train_loss / (double)labels;
    out->averaged_loss = averaged.loss / (double)averaged.count;
    out->averaged_accuracy = (double)averaged.correct / (double)averaged.count;
    out->has_objective = training.count > 0;
    out->train_objective = training.loss / (double)training.count +
                           train_optimiser_penalty(w->optimiser, w->gradient);
    out->test_loss = own ? loss / honest : out->averaged_loss;
    out->test_accuracy = own ? accuracy / honest : out->averaged_accuracy;
    out->worst_accuracy = own ? worst : out->averaged_accuracy;
    out->test_examples = own ? reports[0].own.count : averaged.count;
    w->decision.diverged =
        averaged.count > 0 &&
        !(isfinite(out->test_loss) && isfinite(out->averaged_loss));
}

// Evaluates the models and fills the scores of the report.
static lac_status test_all(train_worker *w, bool same, train_report *report)
{
    const train_tests *const tests = &w->run->plan.tests;
    const train_feed_part part = {.limit = tests->own};
    const train_feed_part share = {.limit = tests->averaged, .shared = true};
    const nn_state own = {w->x, w->running, w->test_carry};
    const nn_state averaged = {w->gradient, w->mean_running, w->test_carry};
    const train_feed_part training = {.training = true, .shared = true};
    test_progress progress = {.total = train_feed_tests(w->feed, share)};
    progress.total += same ? 0 : train_feed_tests(w->feed, part);
    if (tests->objective) {
        progress.total += train_feed_tests(w->feed, training);
        LAC_TRY(
            test_model(w, &averaged, training, &progress, &report->training));
    }
    if (!same) {
        LAC_TRY(test_model(w, &own, part, &progress, &report->own));
    }
    return test_model(w, &averaged, share, &progress, &report->averaged);
}

lac_status train_worker_test(train_worker *w, train_metrics *out)
{
    const double begun = lac_transport_now(w->transport);
    train_report report = {0};
    const train_report *reports = NULL;
    double ignored = 0;
    *out = (train_metrics){
        .text = data_set_info(w->run->plan.set)->kind == DATA_TEXT,
    };
    w->untested = w->decision.stop != 0;
    if (w->untested) {
        return LAC_OK;
    }
    LAC_TRY(train_sync_mean(w->sync, w->x, w->n, w->gradient, &out->consensus));
    LAC_TRY(train_sync_mean(
        w->sync, w->running, w->statistics, w->mean_running, &ignored));
    LAC_TRY(test_all(w, out->consensus == 0 && w->statistics == 0, &report));
    w->test_seconds += lac_transport_now(w->transport) - begun;
    w->untested = w->decision.stop != 0;
    if (w->untested) {
        return LAC_OK;
    }
    LAC_TRY(train_worker_gather(w, &report, &reports));
    if (reports != NULL) {
        combine_scores(w, reports, out);
    }
    return train_worker_broadcast(w);
}
