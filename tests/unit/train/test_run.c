// SPDX-License-Identifier: MIT
// Edge cases of runs: before the first step, and failing checkpoints.
#include "train/run.h"

#include "feed_test.h"
#include "train/checkpoint.h"
#include "workers.h"

enum { WORKERS = 3, EPOCH_STEPS = TRAIN / (WORKERS * 4) };

typedef struct scene {
    train_run run;
    data_set *set;
    lac_topology *topology;
    train_worker *workers[WORKERS];
    atomic_int stop;
    int readied;
    bool absent; // worker 1 gives up instead of working
} scene;

static lac_status count_ready(void *context, const train_facts *facts)
{
    scene *const s = context;
    (void)facts;
    s->readied++;
    return LAC_OK;
}

static void open_scene(scene *s, bool resume)
{
    *s = (scene){.set = open_images()};
    assert_ok(lac_topology_open(&s->topology, "ring", WORKERS, 1));
    s->run = (train_run){
        .plan =
            {
                .model = "logistic",
                .set = s->set,
                .batch = 4,
                .optimiser = {.rule = TRAIN_SGD, .momentum = 0.5},
                .schedule = {.course = TRAIN_CONSTANT, .rate = 0.01},
                .epochs = 1,
                .algorithm = lac_algorithm_options_default(),
                .seed = 1,
                .folder = ".",
                .resume = resume,
            },
        .hooks = {.context = s, .ready = count_ready, .stop = &s->stop},
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
    const lac_status status =
        s->absent && w->rank == 1
            ? lac_fail(LAC_ERR_INVALID, "worker 1 fails at once")
            : train_work(&s->run, w->transport);
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

static void a_run_that_is_stopped_at_once_leaves_a_checkpoint(void **state)
{
    (void)state;
    scene s;
    uint64_t step = 7;
    open_scene(&s, false);
    s.stop = 1;
    run_all(&s);
    assert_true(s.run.result.interrupted);
    assert_ok(train_checkpoint_latest(".", &step));
    assert_int_equal(step, 0);
    close_scene(&s);

    open_scene(&s, true);
    run_all(&s);
    assert_false(s.run.result.interrupted);
    assert_ok(train_checkpoint_latest(".", &step));
    assert_int_equal(step, EPOCH_STEPS);
    close_scene(&s);
}

// Until then another process may still read the folder.
static void nothing_is_ready_before_all_workers_are(void **state)
{
    (void)state;
    scene s;
    test_worker workers[WORKERS];
    open_scene(&s, false);
    s.absent = true;
    run_workers(WORKERS, work, &s, workers);
    assert_int_equal(workers[0].status, LAC_ERR_PEER);
    assert_int_equal(s.readied, 0);
    close_scene(&s);
}

// As if another run had written before this one locked the folder.
static lac_status find_another(void *context)
{
    (void)context;
    return rename("written/step-2", "step-2") == 0 &&
                   rename("written/latest", "latest") == 0
               ? LAC_OK
               : lac_fail(LAC_ERR_INVALID, "the other run wrote nothing");
}

static void what_another_run_did_meanwhile_is_not_undone(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, false);
    assert_int_equal(mkdir("written", 0777), 0);
    s.run.plan.folder = "written";
    run_all(&s);
    close_scene(&s);

    open_scene(&s, true);
    s.run.hooks.lock = find_another;
    run_all(&s);
    assert_int_equal(s.run.result.facts.first_step, EPOCH_STEPS);
    close_scene(&s);
}

static void a_run_without_a_checkpoint_begins_its_metrics_again(void **state)
{
    (void)state;
    static const char old[] = "{\"epoch\":1,\"step\":3}\n";
    scene s;
    data_bytes file;
    put_text("metrics.jsonl", old);
    open_scene(&s, true);
    run_all(&s);
    assert_int_equal(s.readied, 1);
    assert_ok(data_file_read("metrics.jsonl", &file));
    assert_non_null(memchr(file.data, '\n', file.len));
    assert_ptr_equal(
        memchr(file.data, '\n', file.len), file.data + file.len - 1);
    data_bytes_free(&file);
    close_scene(&s);
}

// Removes the folder of the run before the first step.
static lac_status remove_folder(void *context, const train_facts *facts)
{
    (void)context;
    (void)facts;
    assert_int_equal(rmdir("out"), 0);
    return LAC_OK;
}

static void a_run_fails_if_its_folder_is_removed(void **state)
{
    (void)state;
    for (uint64_t every = 0; every <= 1; every++) {
        scene s;
        test_worker workers[WORKERS];
        assert_int_equal(mkdir("out", 0777), 0);
        open_scene(&s, false);
        s.run.plan.folder = "out";
        s.run.plan.checkpoint_every = every;
        s.run.hooks.ready = remove_folder;
        run_workers(WORKERS, work, &s, workers);
        assert_int_equal(workers[0].status, LAC_ERR_INVALID);
        assert_string_equal(
            workers[0].message,
            every == 0 ? "out: the folder of the run is missing, expected one "
                         "that exists "
                         "until the run ends"
                       : "out: the folder of the run is missing, expected one "
                         "that exists "
                         "until the run ends; the "
                         "run ends without a checkpoint");
        assert_false(data_is_folder("out"));
        close_scene(&s);
    }
}

// Creates a file with the name of a set's folder.
static lac_status block_second_step(void *context, const train_facts *facts)
{
    (void)context;
    (void)facts;
    put_text("step-2", "");
    return LAC_OK;
}

static void a_checkpoint_that_fails_names_the_one_before(void **state)
{
    (void)state;
    scene s;
    test_worker workers[WORKERS];
    open_scene(&s, false);
    s.run.plan.checkpoint_every = 1;
    s.run.hooks.ready = block_second_step;
    run_workers(WORKERS, work, &s, workers);
    assert_int_equal(workers[0].status, LAC_ERR_INVALID);
    assert_string_equal(
        workers[0].message,
        "./step-2: is not a folder; the run ends, its last complete checkpoint "
        "is that of step 1");
    close_scene(&s);
}

// Creates a folder with the name of the second file of worker 1.
static lac_status block_worker_1(void *context, const train_facts *facts)
{
    (void)context;
    (void)facts;
    EXPECT(mkdir("out/step-2", 0777) == 0);
    EXPECT(mkdir("out/step-2/worker-1.safetensors", 0777) == 0);
    return LAC_OK;
}

// Worker 1 may have left before worker 0 has sent its decision to all. Which
// comes first varies.
static void the_files_of_a_failed_checkpoint_are_removed(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        scene s;
        test_worker workers[WORKERS];
        assert_int_equal(mkdir("out", 0777), 0);
        open_scene(&s, false);
        s.run.plan.folder = "out";
        s.run.plan.checkpoint_every = 1;
        s.run.hooks.ready = block_worker_1;
        run_workers(WORKERS, work, &s, workers);
        assert_string_equal(
            workers[0].message, "worker 1 could not write its checkpoint");
        assert_true(data_is_file("out/step-1/worker-0.safetensors"));
        assert_false(data_is_file("out/step-2/worker-0.safetensors"));
        (void)remove_all("out");
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_run_that_is_stopped_at_once_leaves_a_checkpoint),
        IN_FOLDER(nothing_is_ready_before_all_workers_are),
        IN_FOLDER(what_another_run_did_meanwhile_is_not_undone),
        IN_FOLDER(a_run_without_a_checkpoint_begins_its_metrics_again),
        IN_FOLDER(a_run_fails_if_its_folder_is_removed),
        IN_FOLDER(a_checkpoint_that_fails_names_the_one_before),
        IN_FOLDER(the_files_of_a_failed_checkpoint_are_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
