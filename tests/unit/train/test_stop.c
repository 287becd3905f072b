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
    uint64_t stop_step;  // stop in the test after this step
    uint64_t stop_batch; // at this batch of it
    uint32_t tests;      // that were completed
} scene;

static void watch_progress(void *context, const train_progress *p)
{
    scene *const s = context;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_stop_in_a_test_leaves_it_to_the_resume),
        IN_FOLDER(a_stop_in_the_last_test_leaves_it_to_the_resume),
        IN_FOLDER(a_test_may_be_stopped_again),
        IN_FOLDER(a_line_of_a_test_that_is_made_again_is_replaced),
        IN_FOLDER(a_stop_before_a_test_skips_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
