// SPDX-License-Identifier: MIT
// Stops where a run makes no steps of its own: in a test and in the search for
// a rate.
#include <math.h>

#include "train/checkpoint.h"
#include "training.h"

// Tests have one batch of seven images for the own model and one, shared, for
// the averaged one, and the objective.
enum { WORKERS = 2, EPOCH_STEPS = TRAIN / (WORKERS * BATCH) };

// Where the run that was opened last stops.
static struct {
    uint64_t step;  // in the test after this step
    uint64_t batch; // at this batch of it
    uint64_t trial; // 1 + the step of the search; 0: none
} stop_at;

// What its hooks have seen.
static struct {
    uint64_t last_batch;  // that was begun
    uint32_t tests;       // that were completed
    uint32_t trial_steps; // of the search that were reported
    uint32_t records;
    train_facts facts; // that were recorded last
} seen;

static void watch_progress(void *context, const train_progress *p)
{
    training *const t = context;
    if (p->trials > 0) {
        assert_true(p->trials_done < p->trials);
        assert_true(p->trial_rate > 0);
        seen.trial_steps++;
        t->stop = stop_at.trial == 1 + p->trials_done ? 2 : t->stop;
        return;
    }
    seen.last_batch = p->tests > 0 ? p->tests_done : seen.last_batch;
    if (p->tests > 0 && p->step == stop_at.step &&
        p->tests_done >= stop_at.batch) {
        t->stop = 15;
    }
}

static void count_test(void *context, const train_metrics *metrics)
{
    (void)context;
    (void)metrics;
    seen.tests++;
}

static lac_status count_record(void *context, const train_facts *facts)
{
    (void)context;
    seen.records++;
    seen.facts = *facts;
    return LAC_OK;
}

static void open_run(training *t, const char *out, bool resume)
{
    training_open(t, WORKERS, out, resume);
    t->run.plan.usual_rate = 0.01;
    t->run.plan.epochs = 2;
    t->run.plan.tests =
        (train_tests){.every = 1, .epochs = true, .objective = true};
    t->run.hooks.record = count_record;
    t->run.hooks.progress = watch_progress;
    t->run.hooks.tested = count_test;
    memset(&stop_at, 0, sizeof(stop_at));
    memset(&seen, 0, sizeof(seen));
}

// A run without a stop.
static void run_straight(const char *out)
{
    training t;
    assert_int_equal(mkdir(out, 0777), 0);
    open_run(&t, out, false);
    training_run(&t);
    assert_false(t.run.result.interrupted);
    assert_int_equal(seen.tests, 2);
    training_close(&t);
}

// A run that is stopped in the test after `step`.
static void run_to_test(const char *out, uint64_t step, uint64_t batch)
{
    training t;
    uint64_t latest = 0;
    open_run(&t, out, data_is_folder(out));
    if (!data_is_folder(out)) {
        assert_int_equal(mkdir(out, 0777), 0);
    }
    stop_at.step = step;
    stop_at.batch = batch;
    training_run(&t);
    assert_true(t.run.result.interrupted);
    assert_int_equal(t.run.result.stop, 15);
    assert_int_equal(seen.last_batch, batch);
    assert_int_equal(seen.tests, step / EPOCH_STEPS - 1);
    assert_ok(train_checkpoint_latest(out, &latest));
    assert_int_equal(latest, step);
    training_close(&t);
}

static void resume(const char *out, uint32_t tests)
{
    training t;
    open_run(&t, out, true);
    training_run(&t);
    assert_false(t.run.result.interrupted);
    assert_int_equal(seen.tests, tests);
    training_close(&t);
}

// The number of a key in each line of the metrics; returns how many.
static int metrics_of(const char *out, const char *key, double values[4])
{
    char path[64];
    data_bytes file;
    int count = 0;
    (void)snprintf(path, sizeof(path), "%s/metrics.jsonl", out);
    assert_ok(data_file_read(path, &file));
    const char *line = (const char *)file.data;
    const char *const end = line + file.len;
    while (line < end && count < 4) {
        const char *const stop = memchr(line, '\n', (size_t)(end - line));
        assert_non_null(stop);
        cJSON *const o = cJSON_ParseWithLength(line, (size_t)(stop - line));
        values[count++] =
            cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(o, key));
        cJSON_Delete(o);
        line = stop + 1;
    }
    data_bytes_free(&file);
    return count;
}

static void assert_same_runs(const char *out, const char *expected)
{
    static const char *const keys[] = {
        "step",          "epoch",           "train_loss",    "test_loss",
        "averaged_loss", "train_objective", "payload_bytes", "consensus"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        double ours[4], theirs[4];
        assert_int_equal(metrics_of(out, keys[i], ours), 2);
        assert_int_equal(metrics_of(expected, keys[i], theirs), 2);
        assert_memory_equal(ours, theirs, 2 * sizeof(double));
    }
    char path[64], other[64];
    data_bytes a, b;
    (void)snprintf(path, sizeof(path), "%s/model.safetensors", out);
    (void)snprintf(other, sizeof(other), "%s/model.safetensors", expected);
    assert_ok(data_file_read(path, &a));
    assert_ok(data_file_read(other, &b));
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    data_bytes_free(&a);
    data_bytes_free(&b);
}

static void a_stop_in_a_test_leaves_it_to_the_resume(void **state)
{
    (void)state;
    run_straight("straight");
    run_to_test("parts", EPOCH_STEPS, 0);
    resume("parts", 2);
    assert_same_runs("parts", "straight");
}

static void a_stop_in_the_last_test_leaves_it_to_the_resume(void **state)
{
    (void)state;
    run_straight("straight");
    run_to_test("parts", 2 * EPOCH_STEPS, 0);
    assert_false(data_is_file("parts/model.safetensors"));
    resume("parts", 1);
    assert_same_runs("parts", "straight");
    // The run is complete now: another resume tests it and adds no line.
    resume("parts", 1);
    assert_same_runs("parts", "straight");
}

// Also if a later resume is stopped at once.
static void the_line_of_a_test_that_was_made_up_for_stays(void **state)
{
    (void)state;
    training t;
    double steps[4];
    run_to_test("parts", 2 * EPOCH_STEPS, 1);
    resume("parts", 1);
    open_run(&t, "parts", true);
    t.stop = 2;
    training_run(&t);
    training_close(&t);
    assert_int_equal(metrics_of("parts", "step", steps), 2);
}

// A kill while the files were written again: that of worker 1 is older.
static void files_of_before_and_after_a_test_are_resumed(void **state)
{
    (void)state;
    static const char path[] = "parts/step-6/worker-1.safetensors";
    data_bytes older;
    run_straight("straight");
    run_to_test("parts", 2 * EPOCH_STEPS, 0);
    assert_ok(data_file_read(path, &older));
    resume("parts", 1);
    put_file(path, older.data, older.len);
    data_bytes_free(&older);
    resume("parts", 1);
    assert_same_runs("parts", "straight");
}

static void a_test_may_be_stopped_again(void **state)
{
    (void)state;
    run_straight("straight");
    run_to_test("parts", EPOCH_STEPS, 0);
    run_to_test("parts", EPOCH_STEPS, 0);
    resume("parts", 2);
    assert_same_runs("parts", "straight");
}

// A kill after the test that was made up for, before its checkpoint: its line
// is there, and the checkpoint is that of before.
static void a_line_of_a_test_that_is_made_again_is_replaced(void **state)
{
    (void)state;
    run_straight("straight");
    run_to_test("parts", EPOCH_STEPS, 0);
    put_text("parts/metrics.jsonl", "{\"epoch\":1,\"step\":3}\n");
    resume("parts", 2);
    assert_same_runs("parts", "straight");
}

static void a_stop_before_a_test_skips_it(void **state)
{
    (void)state;
    training t;
    run_straight("straight");
    open_run(&t, "straight", true);
    t.stop = 2; // the run is complete, and would be tested again
    training_run(&t);
    assert_true(t.run.result.interrupted);
    assert_int_equal(t.run.result.stop, 2);
    assert_int_equal(seen.tests, 0);
    training_close(&t);
    resume("straight", 1);
}

static void open_search(training *t, const char *out, bool again)
{
    open_run(t, out, again);
    t->run.plan.schedule.rate = (double)NAN;
    t->run.plan.searches_rate = true;
}

// The run has six steps, and so has every trial.
static void a_search_is_reported_and_recorded(void **state)
{
    (void)state;
    training t;
    assert_int_equal(mkdir("out", 0777), 0);
    open_search(&t, "out", false);
    training_run(&t);
    const train_search *const found = &seen.facts.search;
    assert_int_equal(seen.records, 1);
    assert_true(seen.facts.rate_found);
    assert_true(found->count >= 2 && found->count <= 4);
    assert_true(seen.trial_steps <= found->count * 2 * EPOCH_STEPS);
    assert_true(found->trials[0].rate == 0.01);
    assert_true(found->trials[1].rate == 0.02);
    bool chosen = false;
    for (uint64_t i = 0; i < found->count; i++) {
        chosen = chosen || found->trials[i].rate == seen.facts.rate;
    }
    assert_true(chosen);
    assert_true(t.run.result.metrics.usage.search_seconds > 0);
    assert_true(
        t.run.result.seconds >= t.run.result.metrics.usage.search_seconds);
    training_close(&t);
}

// Trials of a run of 60 steps have 48.
enum { SEARCH_EPOCHS = 60 / EPOCH_STEPS };

// Searches from a rate and writes the record.
static void search_from(double usual, train_facts *out)
{
    training t;
    assert_int_equal(mkdir("out", 0777), 0);
    open_search(&t, "out", false);
    t.run.plan.usual_rate = usual;
    t.run.plan.epochs = SEARCH_EPOCHS;
    training_run(&t);
    *out = seen.facts;
    training_close(&t);
    (void)remove_all("out");
}

static void assert_rates(
    const train_facts *f, double rate, uint64_t count, const double *tried)
{
    assert_int_equal(f->search.count, count);
    for (uint64_t i = 0; i < count; i++) {
        assert_true(f->search.trials[i].rate == tried[i]);
    }
    assert_true(f->rate == rate);
}

// A tiny rate changes nothing, and neither does twice as much.
static void without_a_clear_difference_the_usual_rate_stays(void **state)
{
    (void)state;
    train_facts f;
    const double usual = ldexp(1, -30);
    search_from(usual, &f);
    assert_rates(&f, usual, 3, (const double[]){usual, 2 * usual, usual / 2});
    assert_true(f.search.trials[1].loss < f.search.trials[0].loss);
}

// The fourth rate is better than the third, but by less than 5 %.
static void a_rate_that_is_too_large_is_halved_while_it_helps(void **state)
{
    (void)state;
    train_facts f;
    const double usual = 1.0 / 8;
    search_from(usual, &f);
    assert_rates(
        &f, usual / 2, 4,
        (const double[]){usual, 2 * usual, usual / 2, usual / 4});
    const train_trial *const t = f.search.trials;
    assert_true(isinf(t[1].loss));
    assert_true(t[2].loss < 0.95 * t[0].loss);
    assert_true(t[3].loss < t[2].loss && t[3].loss > 0.95 * t[2].loss);
}

// Rates that diverge are abandoned early, and no larger ones are tried. If all
// do, half of the last is taken.
static void a_rate_that_diverges_is_halved(void **state)
{
    (void)state;
    train_facts f;
    const double usual = 1024;
    search_from(usual, &f);
    assert_rates(
        &f, usual / 16, 4,
        (const double[]){usual, usual / 2, usual / 4, usual / 8});
    for (uint64_t i = 0; i < f.search.count; i++) {
        assert_true(isinf(f.search.trials[i].loss));
    }
}

static void a_stop_in_the_search_leaves_only_the_settings(void **state)
{
    (void)state;
    training t;
    uint64_t latest = 0;
    assert_int_equal(mkdir("straight", 0777), 0);
    open_search(&t, "straight", false);
    training_run(&t);
    const double rate = seen.facts.rate;
    training_close(&t);
    // In the first trial and in the second.
    for (uint64_t at = 0; at <= 2 * EPOCH_STEPS; at += 2 * EPOCH_STEPS) {
        if (at > 0) {
            (void)remove_all("out");
        }
        assert_int_equal(mkdir("out", 0777), 0);
        open_search(&t, "out", false);
        stop_at.trial = 2 + at;
        training_run(&t);
        assert_true(t.run.result.interrupted);
        assert_true(t.run.result.searching);
        assert_int_equal(t.run.result.stop, 2);
        assert_int_equal(seen.trial_steps, 2 + at);
        assert_int_equal(seen.records, 1);
        assert_true(isnan(seen.facts.rate));
        assert_int_equal(
            train_checkpoint_latest("out", &latest), LAC_ERR_NOTFOUND);
        assert_false(data_is_file("out/metrics.jsonl"));
        training_close(&t);

        open_search(&t, "out", true);
        training_run(&t);
        assert_false(t.run.result.interrupted);
        assert_false(t.run.result.searching);
        assert_true(seen.facts.rate == rate);
        training_close(&t);
        assert_same_runs("out", "straight");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_stop_in_a_test_leaves_it_to_the_resume),
        IN_FOLDER(a_stop_in_the_last_test_leaves_it_to_the_resume),
        IN_FOLDER(the_line_of_a_test_that_was_made_up_for_stays),
        IN_FOLDER(files_of_before_and_after_a_test_are_resumed),
        IN_FOLDER(a_test_may_be_stopped_again),
        IN_FOLDER(a_line_of_a_test_that_is_made_again_is_replaced),
        IN_FOLDER(a_stop_before_a_test_skips_it),
        IN_FOLDER(a_search_is_reported_and_recorded),
        IN_FOLDER(without_a_clear_difference_the_usual_rate_stays),
        IN_FOLDER(a_rate_that_is_too_large_is_halved_while_it_helps),
        IN_FOLDER(a_rate_that_diverges_is_halved),
        IN_FOLDER(a_stop_in_the_search_leaves_only_the_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
