// SPDX-License-Identifier: MIT
// Evaluates the workers' models and the averaged model on the test set.
//
// Every run is tested on the same sample, the first examples of the set, so
// that the curves of runs can be compared; after the last step also on the
// whole set. Every worker evaluates its own model. The averaged model is
// evaluated by all workers together, each on its share of the examples, or of
// the rows of a text. Where all models have the same bits, as
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

// Combines what all workers found. A hostile one counts only for the models
// that it has evaluated a share of.
static train_quality combine_quality(
    const train_worker *w, const train_report *reports, bool final)
{
    const uint32_t hostile = w->run->plan.hostile;
    const double honest = w->world - (hostile == 0 ? 0 : 1);
    nn_score averaged = {0};
    uint64_t examples = 0;
    double loss = 0, accuracy = 0, worst = 1;
    for (uint32_t k = 0; k < w->world; k++) {
        const train_scores *const s =
            final ? &reports[k].final : &reports[k].test;
        add_score(&averaged, &s->averaged);
        if (hostile == k + 1) {
            continue;
        }
        examples = s->own.count;
        loss += s->own.loss / (double)s->own.count;
        const double one = (double)s->own.correct / (double)s->own.count;
        accuracy += one;
        worst = fmin(worst, one);
    }
    const double averaged_loss = averaged.loss / (double)averaged.count;
    const double averaged_accuracy =
        (double)averaged.correct / (double)averaged.count;
    const bool own = examples > 0;
    return (train_quality){
        .loss = own ? loss / honest : averaged_loss,
        .accuracy = own ? accuracy / honest : averaged_accuracy,
        .worst_accuracy = own ? worst : averaged_accuracy,
        .examples = own ? examples : averaged.count,
        .averaged_loss = averaged_loss,
        .averaged_accuracy = averaged_accuracy,
    };
}

// Whether a model that was tested has no finite loss.
static bool has_no_loss(const train_quality *q)
{
    return q->examples > 0 &&
           !(isfinite(q->loss) && isfinite(q->averaged_loss));
}

// Worker 0 makes the metrics of the reports of all workers.
static void combine_reports(
    train_worker *w, const train_report *reports, train_metrics *out)
{
    nn_score training = {0};
    double train_loss = 0;
    uint64_t labels = 0;
    train_trace trace = {0};
    for (uint32_t k = 0; k < w->world; k++) {
        const train_report *const r = &reports[k];
        train_loss += r->loss;
        labels += r->labels;
        train_trace_merge(&trace, &r->trace);
        add_score(&training, &r->training);
        add_usage(&out->usage, &r->usage, 1.0 / w->world);
    }
    train_trace_judge(&trace, labels, out);
    out->train_loss = train_loss / (double)labels;
    out->has_objective = training.count > 0;
    out->train_objective = training.loss / (double)training.count +
                           train_optimiser_penalty(w->optimiser, w->gradient);
    out->test = combine_quality(w, reports, false);
    if (reports[0].final.averaged.count > 0) {
        out->final = combine_quality(w, reports, true);
    }
    w->decision.diverged = has_no_loss(&out->test) || has_no_loss(&out->final);
}

static lac_status test_averaged(
    train_worker *w, train_feed_part part, test_progress *progress,
    nn_score *out)
{
    const nn_state averaged = {w->gradient, w->mean_running, w->test_carry};
    part.shared = true;
    return test_model(w, &averaged, part, progress, out);
}

// Evaluates the models on the first examples of the test set.
static lac_status test_part(
    train_worker *w, bool same, train_feed_part part, test_progress *progress,
    train_scores *out)
{
    const nn_state own = {w->x, w->running, w->test_carry};
    if (!same) {
        LAC_TRY(test_model(w, &own, part, progress, &out->own));
    }
    return test_averaged(w, part, progress, &out->averaged);
}

// The batches that a worker evaluates its own and the averaged model on.
static uint64_t count_batches(
    const train_worker *w, bool same, train_feed_part part)
{
    const uint64_t own = same ? 0 : train_feed_tests(w->feed, part);
    part.shared = true;
    return own + train_feed_tests(w->feed, part);
}

// Evaluates the models and fills the scores of the report.
static lac_status test_all(train_worker *w, bool same, train_report *report)
{
    const train_tests *const tests = &w->run->plan.tests;
    const train_feed_part sample = {.limit = tests->sample};
    const train_feed_part most = {.limit = tests->final}, whole = {0};
    const train_feed_part training = {.training = true, .shared = true};
    const bool last =
        w->step == w->total_steps && train_feed_equal(w->feed, most, whole);
    const bool sampled = !train_feed_equal(w->feed, sample, whole);
    test_progress progress = {.total = count_batches(w, same, sample)};
    progress.total += last && sampled ? count_batches(w, same, whole) : 0;
    if (tests->objective) {
        progress.total += train_feed_tests(w->feed, training);
        LAC_TRY(test_averaged(w, training, &progress, &report->training));
    }
    LAC_TRY(test_part(w, same, sample, &progress, &report->test));
    if (last && sampled) {
        return test_part(w, same, whole, &progress, &report->final);
    }
    report->final = last ? report->test : report->final;
    return LAC_OK;
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
        combine_reports(w, reports, out);
    }
    return train_worker_broadcast(w);
}
