// SPDX-License-Identifier: MIT
// Stops where a run makes no steps of its own: in a test and in the search for
// a rate.
#include <math.h>

#include "feed_test.h"
#include "train/checkpoint.h"
#include "train/run.h"
#include "workers.h"

// Tests have one batch of seven images for the own model and one, shared, for
// the averaged one, and the objective.
enum { WORKERS = 2, BATCH = 4, EPOCH_STEPS = TRAIN / (WORKERS * BATCH) };

typedef struct scene {
    train_run run;
    data_set *set;
    lac_topology *topology;
    train_worker *workers[WORKERS];
    atomic_int stop;
    uint64_t stop_step;   // stop in the test after this step
    uint64_t stop_batch;  // at this batch of it
    uint64_t last_batch;  // that was begun
    uint32_t tests;       // that were completed
    uint64_t stop_trial;  // 1 + the step of the search to stop in; 0: none
    uint32_t trial_steps; // of the search that were reported
    uint32_t records;
    train_facts facts; // that were recorded last
} scene;

static void watch_progress(void *context, const train_progress *p)
{
    scene *const s = context;
    if (p->trials > 0) {
        assert_true(p->trials_done < p->trials);
        assert_true(p->trial_rate > 0);
        s->trial_steps++;
        s->stop = s->stop_trial == 1 + p->trials_done ? 2 : s->stop;
        return;
    }
    s->last_batch = p->tests > 0 ? p->tests_done : s->last_batch;
    if (p->tests > 0 && p->step == s->stop_step &&
        p->tests_done >= s->stop_batch) {
        s->stop = 15;
    }
}

static void count_test(void *context, const train_metrics *metrics)
{
    scene *const s = context;
    (void)metrics;
    s->tests++;
}

static lac_status count_record(void *context, const train_facts *facts)
{
    scene *const s = context;
    s->records++;
    s->facts = *facts;
    return LAC_OK;
}

static void open_scene(scene *s, const char *out, bool resume)
{
    *s = (scene){.set = open_images()};
    assert_ok(lac_topology_open(&s->topology, "ring", WORKERS, 1));
    s->run = (train_run){
        .plan =
            {
                .model = "logistic",
                .set = s->set,
                .batch = BATCH,
                .optimiser = {.rule = TRAIN_SGD, .momentum = 0.5},
                .schedule = {.course = TRAIN_CONSTANT, .rate = 0.01},
                .usual_rate = 0.01,
                .epochs = 2,
                .tests = {.every = 1, .epochs = true, .objective = true},
                .algorithm = lac_algorithm_options_default(),
                .seed = 1,
                .folder = out,
                .resume = resume,
            },
        .hooks =
            {
                .context = s,
                .record = count_record,
                .progress = watch_progress,
                .tested = count_test,
                .stop = &s->stop,
            },
        .world = WORKERS,
        .workers = s->workers,
    };
    s->run.plan.algorithm.spec = "dpsgd";
    s->run.plan.algorithm.topology = s->topology;
    s->run.plan.algorithm.timeout = 30;
}

static void close_scene(scene *s)
{
    lac_topology_close(s->topology);
    data_set_close(s->set);
}

static lac_status work(test_worker *w)
{
    scene *const s = w->context;
    const lac_status status = train_work(&s->run, w->transport);
    if (status != LAC_OK) {
        lac_transport_abort(w->transport, lac_error_message());
    }
    lac_transport_leave(w->transport);
    w->transport = NULL;
    train_release(&s->run, w->rank);
    return status;
}

static void run_all(scene *s)
{
    test_worker workers[WORKERS];
    run_workers(WORKERS, work, s, workers);
    for (int k = 0; k < WORKERS; k++) {
        assert_ok(workers[k].status);
    }
}

// A run without a stop.
static void run_straight(const char *out)
{
    scene s;
    assert_int_equal(mkdir(out, 0777), 0);
    open_scene(&s, out, false);
    run_all(&s);
    assert_false(s.run.result.interrupted);
    assert_int_equal(s.tests, 2);
    close_scene(&s);
}

// A run that is stopped in the test after `step`.
static void run_to_test(const char *out, uint64_t step, uint64_t batch)
{
    scene s;
    uint64_t latest = 0;
    open_scene(&s, out, data_is_folder(out));
    if (!data_is_folder(out)) {
        assert_int_equal(mkdir(out, 0777), 0);
    }
    s.stop_step = step;
    s.stop_batch = batch;
    run_all(&s);
    assert_true(s.run.result.interrupted);
    assert_int_equal(s.run.result.stop, 15);
    assert_int_equal(s.last_batch, batch);
    assert_int_equal(s.tests, step / EPOCH_STEPS - 1);
    assert_ok(train_checkpoint_latest(out, &latest));
    assert_int_equal(latest, step);
    close_scene(&s);
}

static void resume(const char *out, uint32_t tests)
{
    scene s;
    open_scene(&s, out, true);
    run_all(&s);
    assert_false(s.run.result.interrupted);
    assert_int_equal(s.tests, tests);
    close_scene(&s);
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
    scene s;
    double steps[4];
    run_to_test("parts", 2 * EPOCH_STEPS, 1);
    resume("parts", 1);
    open_scene(&s, "parts", true);
    s.stop = 2;
    run_all(&s);
    close_scene(&s);
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
    scene s;
    run_straight("straight");
    open_scene(&s, "straight", true);
    s.stop = 2; // the run is complete, and would be tested again
    run_all(&s);
    assert_true(s.run.result.interrupted);
    assert_int_equal(s.run.result.stop, 2);
    assert_int_equal(s.tests, 0);
    close_scene(&s);
    resume("straight", 1);
}

static void open_search(scene *s, const char *out, bool again)
{
    open_scene(s, out, again);
    s->run.plan.schedule.rate = (double)NAN;
    s->run.plan.searches_rate = true;
}

// The run has six steps, and so has every trial.
static void a_search_is_reported_and_recorded(void **state)
{
    (void)state;
    scene s;
    assert_int_equal(mkdir("out", 0777), 0);
    open_search(&s, "out", false);
    run_all(&s);
    const train_search *const found = &s.facts.search;
    assert_int_equal(s.records, 1);
    assert_true(s.facts.rate_found);
    assert_true(found->count >= 2 && found->count <= 4);
    assert_true(s.trial_steps <= found->count * 2 * EPOCH_STEPS);
    assert_true(found->trials[0].rate == 0.01);
    assert_true(found->trials[1].rate == 0.02);
    bool chosen = false;
    for (uint64_t i = 0; i < found->count; i++) {
        chosen = chosen || found->trials[i].rate == s.facts.rate;
    }
    assert_true(chosen);
    assert_true(s.run.result.metrics.usage.search_seconds > 0);
    assert_true(
        s.run.result.seconds >= s.run.result.metrics.usage.search_seconds);
    close_scene(&s);
}

// Trials of a run of 60 steps have 48.
enum { SEARCH_EPOCHS = 60 / EPOCH_STEPS };

// Searches from a rate and writes the record.
static void search_from(double usual, train_facts *out)
{
    scene s;
    assert_int_equal(mkdir("out", 0777), 0);
    open_search(&s, "out", false);
    s.run.plan.usual_rate = usual;
    s.run.plan.epochs = SEARCH_EPOCHS;
    run_all(&s);
    *out = s.facts;
    close_scene(&s);
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
    scene straight, s;
    uint64_t latest = 0;
    assert_int_equal(mkdir("straight", 0777), 0);
    open_search(&straight, "straight", false);
    run_all(&straight);
    // In the first trial and in the second.
    for (uint64_t at = 0; at <= 2 * EPOCH_STEPS; at += 2 * EPOCH_STEPS) {
        if (at > 0) {
            (void)remove_all("out");
        }
        assert_int_equal(mkdir("out", 0777), 0);
        open_search(&s, "out", false);
        s.stop_trial = 2 + at;
        run_all(&s);
        assert_true(s.run.result.interrupted);
        assert_true(s.run.result.searching);
        assert_int_equal(s.run.result.stop, 2);
        assert_int_equal(s.trial_steps, 2 + at);
        assert_int_equal(s.records, 1);
        assert_true(isnan(s.facts.rate));
        assert_int_equal(
            train_checkpoint_latest("out", &latest), LAC_ERR_NOTFOUND);
        assert_false(data_is_file("out/metrics.jsonl"));
        close_scene(&s);

        open_search(&s, "out", true);
        run_all(&s);
        assert_false(s.run.result.interrupted);
        assert_false(s.run.result.searching);
        assert_true(s.facts.rate == straight.facts.rate);
        close_scene(&s);
        assert_same_runs("out", "straight");
    }
    close_scene(&straight);
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
