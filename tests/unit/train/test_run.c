// SPDX-License-Identifier: MIT
// Edge cases of runs: before the first step, and failing checkpoints.
#include "train/checkpoint.h"
#include "training.h"

enum { WORKERS = 3, EPOCH_STEPS = TRAIN / (WORKERS * BATCH) };

static int readied; // calls of count_ready

static lac_status count_ready(void *context, const train_facts *facts)
{
    (void)context;
    (void)facts;
    readied++;
    return LAC_OK;
}

static void open_run(training *t, bool resume)
{
    training_open(t, WORKERS, ".", resume);
    t->run.hooks.ready = count_ready;
    readied = 0;
}

static void a_run_that_is_stopped_at_once_leaves_a_checkpoint(void **state)
{
    (void)state;
    training t;
    uint64_t step = 7;
    open_run(&t, false);
    t.stop = 1;
    training_run(&t);
    assert_true(t.run.result.interrupted);
    assert_ok(train_checkpoint_latest(".", &step));
    assert_int_equal(step, 0);
    training_close(&t);

    open_run(&t, true);
    training_run(&t);
    assert_false(t.run.result.interrupted);
    assert_ok(train_checkpoint_latest(".", &step));
    assert_int_equal(step, EPOCH_STEPS);
    training_close(&t);
}

static lac_status work_without_worker_1(test_worker *w)
{
    training *const t = w->context;
    if (w->rank != 1) {
        return training_work(w);
    }
    return leave_run(
        w, &t->run, lac_fail(LAC_ERR_INVALID, "worker 1 fails at once"));
}

// Until then another process may still read the folder.
static void nothing_is_ready_before_all_workers_are(void **state)
{
    (void)state;
    training t;
    test_worker workers[WORKERS];
    open_run(&t, false);
    run_workers(WORKERS, work_without_worker_1, &t, workers);
    assert_int_equal(workers[0].status, LAC_ERR_PEER);
    assert_int_equal(readied, 0);
    training_close(&t);
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
    training t;
    open_run(&t, false);
    assert_int_equal(mkdir("written", 0777), 0);
    t.run.plan.folder = "written";
    training_run(&t);
    training_close(&t);

    open_run(&t, true);
    t.run.hooks.lock = find_another;
    training_run(&t);
    assert_int_equal(t.run.result.facts.first_step, EPOCH_STEPS);
    training_close(&t);
}

static void a_run_without_a_checkpoint_begins_its_metrics_again(void **state)
{
    (void)state;
    static const char old[] = "{\"epoch\":1,\"step\":3}\n";
    training t;
    data_bytes file;
    put_text("metrics.jsonl", old);
    open_run(&t, true);
    training_run(&t);
    assert_int_equal(readied, 1);
    assert_ok(data_file_read("metrics.jsonl", &file));
    assert_non_null(memchr(file.data, '\n', file.len));
    assert_ptr_equal(
        memchr(file.data, '\n', file.len), file.data + file.len - 1);
    data_bytes_free(&file);
    training_close(&t);
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
        training t;
        test_worker workers[WORKERS];
        assert_int_equal(mkdir("out", 0777), 0);
        open_run(&t, false);
        t.run.plan.folder = "out";
        t.run.plan.checkpoint_every = every;
        t.run.hooks.ready = remove_folder;
        run_workers(WORKERS, training_work, &t, workers);
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
        training_close(&t);
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
    training t;
    test_worker workers[WORKERS];
    open_run(&t, false);
    t.run.plan.checkpoint_every = 1;
    t.run.hooks.ready = block_second_step;
    run_workers(WORKERS, training_work, &t, workers);
    assert_int_equal(workers[0].status, LAC_ERR_INVALID);
    assert_string_equal(
        workers[0].message,
        "./step-2: is not a folder; the run ends, its last complete checkpoint "
        "is that of step 1");
    training_close(&t);
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
        training t;
        test_worker workers[WORKERS];
        assert_int_equal(mkdir("out", 0777), 0);
        open_run(&t, false);
        t.run.plan.folder = "out";
        t.run.plan.checkpoint_every = 1;
        t.run.hooks.ready = block_worker_1;
        run_workers(WORKERS, training_work, &t, workers);
        assert_string_equal(
            workers[0].message, "worker 1 could not write its checkpoint");
        assert_true(data_is_file("out/step-1/worker-0.safetensors"));
        assert_false(data_is_file("out/step-2/worker-0.safetensors"));
        (void)remove_all("out");
        training_close(&t);
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
