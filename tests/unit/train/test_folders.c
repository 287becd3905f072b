// SPDX-License-Identifier: MIT
// Workers with folders of their own. However one or all of them end, all
// continue from the same step and reach the same bits.
//
// Workers are threads here, but each has its own run, as processes have. The
// runs are made in child processes, which can be killed, at every call that
// changes the names in a folder. test_checkpoint_end.c has kills within a file.
#include <stdatomic.h>

#include "kills.h"
#include "train/checkpoint.h"
#include "training.h"

enum { WORKERS = 2, STEPS = TRAIN / (WORKERS * BATCH), NOBODY = -1, ALL = 2 };

typedef struct scene {
    data_set *set;
    lac_topology *topology;
    train_run runs[WORKERS];
    train_worker *workers[WORKERS][WORKERS];
    train_setting rate[WORKERS];
    int victim; // a rank, NOBODY or ALL
    long calls; // that change a folder, until the victim is killed
    char messages[WORKERS][512];
} scene;

static atomic_int victims, finished;
static _Thread_local lac_transport *own_transport;
static _Thread_local bool kills_all;

// Kills the process, or ends the worker of this thread and notifies its peer,
// which then goes on until it needs the worker.
static void be_killed(void)
{
    if (kills_all) {
        (void)raise(SIGKILL);
    }
    victims = 1;
    lac_transport_abort(own_transport, "killed");
    if (finished > 0) {
        (void)raise(SIGKILL);
    }
    for (;;) {
        (void)pause();
    }
}

static void open_scene(scene *s, bool resume)
{
    static const char *const folders[WORKERS] = {"a", "b"};
    *s = (scene){.set = open_images(), .victim = NOBODY};
    assert_ok(lac_topology_open(&s->topology, "ring", WORKERS, 1));
    for (uint32_t k = 0; k < WORKERS; k++) {
        s->rate[k] = (train_setting){"lr", "0.01"};
        train_run *const run = &s->runs[k];
        *run = epoch_of(s->set, s->topology, WORKERS, folders[k]);
        run->plan.checkpoint_every = 1;
        run->plan.resume = resume;
        run->plan.settings = &s->rate[k];
        run->plan.setting_count = 1;
        run->process = k + 1;
        run->workers = s->workers[k];
    }
}

static lac_status work(test_worker *w)
{
    scene *const s = w->context;
    train_run *const run = &s->runs[w->rank];
    own_transport = w->transport;
    kills_all = s->victim == ALL;
    calls_left = s->victim == (int)w->rank || (kills_all && w->rank == 0)
                     ? s->calls
                     : -1;
    const lac_status status = train_work(run, w->transport);
    calls_left = -1;
    finished++;
    if (victims > 0) {
        (void)raise(SIGKILL); // nobody waits for the thread of the victim
    }
    if (status != LAC_OK) {
        (void)snprintf(
            s->messages[w->rank], sizeof(s->messages[w->rank]), "%s",
            lac_error_message());
    }
    return leave_run(w, run, status);
}

// Runs both workers in this process and returns how it ended.
static int run_scene(scene *s)
{
    test_worker workers[WORKERS];
    run_workers(WORKERS, work, s, workers);
    int code = COMPLETE;
    for (int k = 0; k < WORKERS; k++) {
        code = workers[k].status == LAC_OK ? code : FAILED;
    }
    lac_topology_close(s->topology);
    data_set_close(s->set);
    return code;
}

// A run in a child process, in which a worker is killed at call `calls`.
static int run_killed(bool resume, int victim, long calls)
{
    const pid_t child = fork();
    if (child == 0) {
        scene s;
        open_scene(&s, resume);
        s.victim = victim;
        s.calls = calls;
        _exit(run_scene(&s));
    }
    return end_of(child);
}

static int run_whole(bool resume)
{
    return run_killed(resume, NOBODY, 0);
}

// The tensors of a file; its header also has the seconds that were spent.
static data_bytes body_of(const char *path)
{
    data_bytes bytes;
    uint64_t header;
    assert_ok(data_file_read(path, &bytes));
    assert_true(bytes.len > sizeof(header));
    memcpy(&header, bytes.data, sizeof(header));
    const size_t begin = sizeof(header) + (size_t)header;
    assert_true(begin < bytes.len);
    bytes.len -= begin;
    memmove(bytes.data, bytes.data + begin, bytes.len);
    return bytes;
}

static void assert_same_tensors(const char *path, const char *expected)
{
    data_bytes found = body_of(path), whole = body_of(expected);
    assert_int_equal(found.len, whole.len);
    assert_memory_equal(found.data, whole.data, whole.len);
    data_bytes_free(&found);
    data_bytes_free(&whole);
}

// Both folders hold the last two sets, and worker 0 has results.
static void assert_complete(void)
{
    uint64_t latest = 0;
    assert_same_tensors("a/step-3/worker-0.safetensors", "whole-0");
    assert_same_tensors("b/step-3/worker-1.safetensors", "whole-1");
    assert_same_tensors("a/model.safetensors", "whole-model");
    assert_ok(train_checkpoint_latest("a", &latest));
    assert_int_equal(latest, STEPS);
    assert_ok(train_checkpoint_latest("b", &latest));
    assert_int_equal(latest, STEPS);
    assert_true(data_is_file("a/step-2/worker-0.safetensors"));
    assert_true(data_is_file("b/step-2/worker-1.safetensors"));
    // Folder, latest, two sets of one file; metrics and model.
    assert_int_equal(remove_all("a"), 1 + 1 + 2 * 2 + 2);
    assert_int_equal(remove_all("b"), 1 + 1 + 2 * 2);
}

static void make_whole(void)
{
    assert_int_equal(run_whole(false), COMPLETE);
    assert_int_equal(rename("a/step-3/worker-0.safetensors", "whole-0"), 0);
    assert_int_equal(rename("b/step-3/worker-1.safetensors", "whole-1"), 0);
    assert_int_equal(rename("a/model.safetensors", "whole-model"), 0);
    (void)remove_all("a");
    (void)remove_all("b");
}

// Kills the victim at every call that changes a folder, and resumes.
static void kill_everywhere(int victim)
{
    long k = 0;
    make_whole();
    for (int end = KILLED; end != COMPLETE; k++) {
        end = run_killed(false, victim, k);
        assert_int_not_equal(end, FAILED);
        assert_int_equal(run_whole(true), COMPLETE);
        assert_complete();
    }
    assert_true(k > 3 * 3); // three checkpoints: a folder and two files
}

static void worker_0_may_be_killed_anywhere(void **state)
{
    (void)state;
    kill_everywhere(0);
}

static void worker_1_may_be_killed_anywhere(void **state)
{
    (void)state;
    kill_everywhere(1);
}

static void all_may_be_killed_anywhere(void **state)
{
    (void)state;
    kill_everywhere(ALL);
}

// A run that resumes can be killed too, while it removes what it does not
// continue from.
static void a_resume_may_be_killed_anywhere(void **state)
{
    (void)state;
    make_whole();
    int end = KILLED;
    for (long k = 0; end != COMPLETE; k++) {
        assert_int_equal(run_whole(false), COMPLETE);
        assert_int_equal(remove_all("b/step-3"), 2);
        end = run_killed(true, 1, k);
        assert_int_not_equal(end, FAILED);
        assert_int_equal(run_whole(true), COMPLETE);
        assert_complete();
    }
}

// Worker 0 has prepared its folder, the only one that has step 3.
static lac_status check_rewound(void *context, const train_facts *facts)
{
    uint64_t latest = 0;
    (void)context;
    EXPECT(facts->first_step == 2 && facts->newest_step == 3);
    EXPECT(facts->lacking == 1);
    LAC_TRY(train_checkpoint_latest("a", &latest));
    EXPECT(latest == 2);
    EXPECT(!data_is_folder("a/step-3") && data_is_folder("a/step-2"));
    return LAC_OK;
}

// Else the files of one step could be of different starts, which differ if the
// user has changed --epochs.
static void a_set_that_is_not_resumed_is_removed_before_the_first_step(
    void **state)
{
    (void)state;
    make_whole();
    assert_int_equal(run_whole(false), COMPLETE);
    assert_int_equal(remove_all("b/step-3"), 2);
    const pid_t child = fork();
    if (child == 0) {
        scene s;
        open_scene(&s, true);
        s.runs[0].hooks.ready = check_rewound;
        _exit(run_scene(&s));
    }
    assert_int_equal(end_of(child), COMPLETE);
    assert_complete();
}

static int message_of_different_settings(void)
{
    scene s;
    open_scene(&s, false);
    s.rate[1].value = "0.02";
    const int code = run_scene(&s);
    static const char expected[] =
        "--lr is \"0.02\" on worker 1, but \"0.01\" on worker 0, expected the "
        "same on all workers";
    return code == FAILED && strcmp(s.messages[1], expected) == 0 &&
                   strstr(s.messages[0], "worker 1") != NULL
               ? COMPLETE
               : FAILED;
}

static void a_setting_that_differs_is_named(void **state)
{
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        _exit(message_of_different_settings());
    }
    assert_int_equal(end_of(child), COMPLETE);
    assert_false(data_is_folder("a"));
    assert_false(data_is_folder("b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(worker_0_may_be_killed_anywhere),
        IN_FOLDER(worker_1_may_be_killed_anywhere),
        IN_FOLDER(all_may_be_killed_anywhere),
        IN_FOLDER(a_resume_may_be_killed_anywhere),
        IN_FOLDER(a_set_that_is_not_resumed_is_removed_before_the_first_step),
        IN_FOLDER(a_setting_that_differs_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
