// SPDX-License-Identifier: MIT
// laconic train: workers train one model together, with compressed messages.
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/compare/report.h"
#include "cli/data/fetch.h"
#include "cli/launch/launch.h"
#include "cli/launch/place.h"
#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "cli/report/processor.h"
#include "cli/report/progress.h"
#include "cli/report/table.h"
#include "cli/topology/network.h"
#include "cli/train/config.h"
#include "cli/train/defaults.h"
#include "cli/train/dry_run.h"
#include "cli/train/folder.h"
#include "cli/train/manifest.h"
#include "cli/train/report.h"
#include "cli/train/seeds.h"
#include "cli/train/settings.h"
#include "cli/train/warnings.h"
#include "data/file.h"
#include "nn/headroom.h"
#include "nn/network.h"
#include "train/feed.h"
#include "train/mark.h"
#include "train/run.h"

enum {
    STACK_SIZE = 8 << 20, // for oneDNN
    CLI_SIGNAL = 128,     // exit codes of signals, as a shell has them
    WHAT_SIZE = 80,
};

// The number of a signal; the run then ends with a checkpoint. All workers read
// it. It is atomic because a signal handler cannot take a lock.
static atomic_int stop_requested;

// One run of the command. Everything is NULL or owned by it.
typedef struct job {
    cli_train_settings s;
    train_run run;
    data_set *set;
    lac_layout *layout;
    lac_topology *topology;
    cJSON *config, *manifest; // own texts of the settings
    cJSON *settings;
    train_setting *shared; // its settings, equal on all workers
    int folder_lock;
    cli_progress progress;
    cli_progress testing;   // of a test
    cli_progress searching; // of the search for a rate
    const char *named;      // the --out of the user; that of --seeds is above
    bool listed;            // in a peers file: this worker has its own terminal
    cJSON *results;         // of several runs; or NULL, borrowed
} job;

static void request_stop(int number)
{
    stop_requested = number;
}

static void *receive_signals(void *signals)
{
    (void)pthread_sigmask(SIG_UNBLOCK, signals, NULL);
    for (;;) {
        (void)pause();
    }
    return NULL;
}

// A second signal ends the program at once. Every mpirun passes SIGUSR1 on and
// waits; after the others some kill the workers within a second.
//
// A thread of its own receives the signals, and all that are created later
// block them: the code that oneDNN generates uses small heap blocks as its
// stack, and what the kernel stores there for a handler corrupts the heap.
static void catch_stop_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1};
    static sigset_t signals;
    static bool received; // by a thread that an earlier run of --seeds made
    pthread_t thread;
    struct sigaction action = {.sa_handler = request_stop};
    action.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
    (void)sigemptyset(&action.sa_mask);
    (void)sigemptyset(&signals);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        (void)sigaction(numbers[i], &action, NULL);
        (void)sigaddset(&signals, numbers[i]);
    }
    if (received) {
        return;
    }
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    received = pthread_create(&thread, NULL, receive_signals, &signals) == 0;
    if (received) {
        (void)pthread_detach(thread);
    } else {
        (void)pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    }
}

static lac_status open_data(job *j)
{
    char cache[DATA_PATH_SIZE];
    const bool cached = cli_cache_folder(cache) == LAC_OK;
    const data_options options = {
        .name = j->s.data,
        .folder = cli_given(j->s.data_dir),
        .cache = cached ? cache : NULL,
        .limit = (size_t)j->s.limit,
    };
    return data_set_open(&j->set, &options);
}

// Opens the layout of the model for these data, taken from the smallest
// network.
static lac_status open_model_layout(job *j)
{
    nn_network *net = NULL;
    const nn_options smallest = {
        .model = j->s.model,
        .sample = train_feed_sample(data_set_info(j->set)),
        .batch = 1,
        .steps = 1,
    };
    LAC_TRY(nn_network_open(&net, &smallest));
    lac_status status = LAC_OK;
    const lac_layout *const layout = nn_network_layout(net);
    const size_t count = lac_layout_count(layout);
    lac_tensor *const tensors = calloc(count, sizeof(*tensors));
    if (tensors == NULL) {
        status = lac_fail(LAC_ERR_NOMEM, "no memory for a layout");
    } else {
        for (size_t i = 0; i < count; i++) {
            tensors[i] = *lac_layout_tensor(layout, i);
        }
        status = lac_layout_open(&j->layout, tensors, count);
    }
    free(tensors);
    nn_network_close(net);
    return status;
}

static lac_status open_plan(job *j)
{
    LAC_TRY(open_model_layout(j));
    LAC_TRY(cli_train_apply_defaults(&j->s, j->set));
    return cli_train_plan(&j->s, j->set, j->topology, j->layout, &j->run.plan);
}

static lac_status prepare_folder(job *j)
{
    j->settings = cli_manifest_settings(cli_train_options, &j->s);
    if (j->settings == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for the manifest");
    }
    LAC_TRY(
        cli_train_shared(j->settings, &j->shared, &j->run.plan.setting_count));
    j->run.plan.settings = j->shared;
    if (j->s.dry_run) {
        return LAC_OK;
    }
    return cli_train_folder_check(
        j->s.out, j->settings, j->s.resume, &j->run.plan.run_id);
}

// Checks everything that the user typed before any worker starts.
static int train_prepare(void *context, uint32_t world)
{
    job *const j = context;
    j->run.world = world;
    j->run.process = train_random_number();
    j->run.processor_set = cli_processor_set();
    j->run.processors = (uint64_t)cli_processor_count();
    if (j->run.processor_set == 0) {
        j->run.processor_set = j->run.process; // threads are known to share
    }
    j->s.launch.workers = world;
    const int code = cli_network_open(
        "train", j->s.topology, world, j->s.seed, &j->topology);
    if (code != CLI_GOOD) {
        return code;
    }
    lac_status status = open_data(j);
    if (status != LAC_OK) {
        return status == LAC_ERR_NOTFOUND
                   ? cli_bad_spec("train", "datasets", j->s.data)
                   : cli_failed();
    }
    status = open_plan(j);
    if (status == LAC_ERR_NOTFOUND) {
        cli_suggest("train", "models", j->s.model);
    }
    if (status != LAC_OK) {
        return cli_bad_algorithm(
            "train", status, j->s.algorithm, j->s.compressor);
    }
    if (prepare_folder(j) != LAC_OK) {
        return cli_failed();
    }
    j->run.workers = calloc(world, sizeof(*j->run.workers));
    if (j->run.workers == NULL) {
        (void)!lac_fail(LAC_ERR_NOMEM, "no memory for %u workers", world);
        return cli_failed();
    }
    catch_stop_signals();
    return CLI_GOOD;
}

static lac_status train_job_work(void *context, lac_transport *transport)
{
    job *const j = context;
    return train_work(&j->run, transport);
}

static void train_job_release(void *context, uint32_t rank)
{
    job *const j = context;
    train_release(&j->run, rank);
}

static void train_joined(void *context, uint32_t world, const char *name)
{
    job *const j = context;
    j->listed = true;
    if (!j->s.quiet) {
        (void)fprintf(
            stderr, "laconic: joined %u worker%s as %s\n", world,
            world == 1 ? "" : "s", name);
    }
}

// The owner of each folder names the command that continues the run. It takes
// the transport from the manifest; without a checkpoint it begins anew.
static void train_lost(void *context)
{
    const job *const j = context;
    char manifest[DATA_PATH_SIZE];
    if (j->run.result.owner &&
        data_path_join(manifest, j->s.out, "manifest.json") == LAC_OK &&
        data_is_file(manifest)) {
        (void)fprintf(
            stderr,
            "laconic: continue with `laconic train --resume --out %s`%s\n",
            j->named, j->listed ? " on all machines" : ", started as before");
    }
}

static const cli_workers workers = {
    .prepare = train_prepare,
    .work = train_job_work,
    .release = train_job_release,
    .stack_size = STACK_SIZE,
    .joined = train_joined,
    .lost = train_lost,
};

static lac_status take_folder(void *context)
{
    job *const j = context;
    return cli_train_folder_lock(
        j->s.out, j->settings, j->s.resume, &j->folder_lock,
        &j->run.plan.run_id);
}

static const char trials_fact[] = "lr_trials";

static lac_status record_run(void *context, const train_facts *facts)
{
    job *const j = context;
    cli_train_warn_onednn(j->s.out, facts, stderr);
    cJSON *const object = cli_train_facts(facts);
    if (facts->search.count == 0) { // the rate was found before the resume
        cJSON *const trials = cli_manifest_fact_copy(j->s.out, trials_fact);
        if (trials != NULL) {
            cJSON_AddItemToObject(object, trials_fact, trials);
        }
    }
    const lac_status status = cli_manifest_write(
        j->s.out, facts->run_id, cli_train_options, j->settings, object);
    cJSON_Delete(object);
    return status;
}

static lac_status begin_run(void *context, const train_facts *facts)
{
    job *const j = context;
    cli_progress_end(&j->searching);
    cli_train_warn(&j->s, &j->run.plan, facts->family, stderr);
    if (facts->warning != NULL) {
        (void)fprintf(stderr, "laconic: %s\n", facts->warning);
    }
    if (facts->lacking != UINT32_MAX) {
        (void)fprintf(
            stderr, "laconic: worker %u has no checkpoint of step %llu\n",
            facts->lacking, (unsigned long long)facts->newest_step);
    }
    if (facts->first_step > 0 && !j->s.quiet) {
        (void)fprintf(
            stderr, "laconic: resuming after step %llu\n",
            (unsigned long long)facts->first_step);
    } else if (j->s.resume && !j->s.quiet) {
        (void)fprintf(
            stderr,
            "laconic: nothing to resume in %s, starting from the beginning\n",
            j->s.out);
    }
    if (facts->search.count > 0 && !j->s.quiet) {
        cli_train_print_search(facts, stderr);
    }
    j->progress =
        cli_progress_begin((size_t)(j->s.epochs * facts->epoch_steps));
    return LAC_OK;
}

// Shows a bar of its own for a test on a terminal, and one line elsewhere.
static void show_test(job *j, const train_progress *p)
{
    if (!j->progress.terminal) {
        cli_progress_step(&j->progress, (size_t)p->step - 1, "testing");
        return;
    }
    if (p->tests_done == 0) {
        j->testing = cli_progress_begin((size_t)p->tests);
    }
    cli_progress_step(&j->testing, (size_t)p->tests_done, "testing");
}

static void show_search(job *j, const train_progress *p)
{
    char what[WHAT_SIZE];
    if (p->trials_done == 0) {
        j->searching = cli_progress_begin((size_t)p->trials);
    }
    (void)snprintf(what, sizeof(what), "trying rate %g", p->trial_rate);
    cli_progress_step(&j->searching, (size_t)p->trials_done, what);
}

// What a step has a number of.
static const char *labels_name(data_kind kind)
{
    switch (kind) {
    case DATA_IMAGES:
        return "images";
    case DATA_TEXT:
        return "tokens";
    case DATA_TABLE:
        break;
    }
    return "rows";
}

static void show_progress(void *context, const train_progress *p)
{
    job *const j = context;
    char what[WHAT_SIZE], bytes[CLI_BYTES_SIZE];
    if (p->tests > 0) {
        show_test(j, p);
        return;
    }
    if (p->trials > 0) {
        show_search(j, p);
        return;
    }
    (void)snprintf(
        what, sizeof(what), "epoch %llu/%llu  loss %.3f  %.0f %s/s  %s",
        (unsigned long long)p->epoch + 1, (unsigned long long)p->epochs,
        p->loss, p->labels_per_second,
        labels_name(data_set_info(j->run.plan.set)->kind),
        cli_bytes((double)p->payload_bytes, bytes));
    cli_progress_done(&j->progress, (size_t)p->step, what);
}

static void print_test(void *context, const train_metrics *m)
{
    job *const j = context;
    char quality[WHAT_SIZE], bytes[CLI_BYTES_SIZE];
    if (isnan(m->test.accuracy)) {
        (void)snprintf(quality, sizeof(quality), "no test set");
    } else if (m->text) {
        (void)snprintf(
            quality, sizeof(quality), "perplexity %.2f", exp(m->test.loss));
    } else {
        (void)snprintf(
            quality, sizeof(quality), "accuracy %.2f %%",
            100 * m->test.accuracy);
    }
    cli_progress_end(&j->testing);
    cli_progress_end(&j->progress);
    (void)fprintf(
        stderr, "epoch %.4g/%llu  loss %.4f  %s  %s sent\n", m->epoch,
        (unsigned long long)j->s.epochs, m->train_loss, quality,
        cli_bytes((double)m->usage.traffic.payload_bytes, bytes));
}

// A worker whose output nobody sees beside that of worker 0 prints nothing.
static void print_passed(void *context, double epoch, double loss)
{
    const job *const j = context;
    if (!j->listed) {
        return;
    }
    (void)fprintf(
        stderr, "epoch %.4g/%llu", epoch, (unsigned long long)j->s.epochs);
    if (!isnan(loss)) {
        (void)fprintf(stderr, "  loss %.4f of this worker", loss);
    }
    (void)fputc('\n', stderr);
}

// The owner of each folder names it.
static int report_stop(const job *j)
{
    if (j->run.result.owner && j->run.result.searching) {
        (void)fprintf(
            stderr,
            "laconic: stopped in the search for a rate; begin it again with "
            "`laconic train --resume --out %s`\n",
            j->named);
    } else if (j->run.result.owner) {
        (void)fprintf(
            stderr,
            "laconic: stopped after a checkpoint; continue with `laconic train "
            "--resume --out %s`\n",
            j->named);
    }
    return CLI_SIGNAL + (int)j->run.result.stop;
}

static int train_report(const job *j)
{
    const train_result *const r = &j->run.result;
    if (r->interrupted) {
        return report_stop(j);
    }
    if (!r->here) {
        if (j->listed && !j->s.quiet) {
            (void)fprintf(
                stderr,
                "laconic: the run is complete; worker 0 has its results\n");
        }
        return CLI_GOOD;
    }
    cli_train_judge(&j->run, stderr);
    if (j->results != NULL) {
        cJSON_AddItemToArray(j->results, cli_train_json(&j->run));
        return CLI_GOOD;
    }
    if (j->s.json) {
        return cli_json_print(cli_train_json(&j->run), stdout);
    }
    if (strcmp(j->named, j->s.out) != 0) {
        (void)printf("seed %llu\n", (unsigned long long)j->s.seed);
    }
    cli_train_table(&j->run, j->s.topology, stdout);
    return CLI_GOOD;
}

static void train_clear(job *j)
{
    cli_train_folder_unlock(j->folder_lock);
    free(j->shared);
    free(j->run.workers);
    cJSON_Delete(j->settings);
    cJSON_Delete(j->config);
    cJSON_Delete(j->manifest);
    lac_topology_close(j->topology);
    lac_layout_close(j->layout);
    data_set_close(j->set);
}

// Settings that were not given are those of --config, then those of the run to
// resume.
static lac_status complete_settings(job *j)
{
    cli_config c = {cli_train_options, &j->s, j->s.given};
    if (*j->s.config != '\0') {
        LAC_TRY(cli_config_read(&c, j->s.config, &j->config));
    }
    return j->s.resume ? cli_config_resume(&c, j->s.out, &j->manifest) : LAC_OK;
}

// Whether the workers are threads of this process.
static bool are_threads(const cli_launch_options *options)
{
    cli_place place = {0};
    const bool threads =
        cli_place_choose("train", options, &place) == LAC_OK && place.threads;
    cli_place_clear(&place);
    return threads;
}

// Prints what the run would take. Except for the time, threads and processes
// take the same.
static int print_dry_run(job *j)
{
    const bool threads = are_threads(&j->s.launch);
    const uint64_t world = j->s.launch.workers;
    const int code =
        train_prepare(j, world == 0 ? CLI_WORKERS_DEFAULT : (uint32_t)world);
    if (code != CLI_GOOD) {
        return code;
    }
    return cli_dry_run(&j->run, j->settings, threads, j->s.json) == LAC_OK
               ? CLI_GOOD
               : cli_failed();
}

// Makes one run. The user named its folder, or the one above. With `results`,
// its result is added there instead of printed. The bytes that it would have
// sent without compression are added to `*uncompressed`, unless that is NULL.
static int run_once(
    const cli_train_settings *given, const char *named, cJSON *results,
    double *uncompressed)
{
    job j = {
        .s = *given,
        .folder_lock = CLI_NO_LOCK,
        .named = named,
        .results = results,
    };
    j.run.hooks = (train_hooks){
        .context = &j,
        .lock = take_folder,
        .record = record_run,
        .ready = begin_run,
        .progress = j.s.quiet ? NULL : show_progress,
        .tested = j.s.quiet ? NULL : print_test,
        .passed = j.s.quiet ? NULL : print_passed,
        .stop = &stop_requested,
    };
    int code = complete_settings(&j) == LAC_OK ? CLI_GOOD : cli_failed();
    if (code == CLI_GOOD && j.s.dry_run) {
        code = print_dry_run(&j);
    } else if (code == CLI_GOOD) {
        code = cli_launch("train", &j.s.launch, &workers, &j);
        cli_progress_end(&j.searching);
        cli_progress_end(&j.progress);
        code = code == CLI_GOOD ? train_report(&j) : code;
    }
    if (uncompressed != NULL) {
        *uncompressed += j.run.result.uncompressed_bytes;
    }
    train_clear(&j);
    return code;
}

// Processes of a job can join it only once.
static lac_status check_seeds(const cli_train_settings *s)
{
    cli_place place = {0};
    LAC_TRY(cli_place_choose("train", &s->launch, &place));
    const bool threads = place.threads;
    cli_place_clear(&place);
    if (threads) {
        return LAC_OK;
    }
    return *s->seeds == '\0'
               ? lac_fail(
                     LAC_ERR_INVALID,
                     "%s: has a run for each of several seeds, but this "
                     "process is one worker of a job, expected --out of one "
                     "of them, such as %s/seed-1",
                     s->out, s->out)
               : lac_fail(
                     LAC_ERR_INVALID,
                     "--seeds is \"%.100s\", but this process is one worker "
                     "of a job, expected --seed and a job for each",
                     s->seeds);
}

static uint64_t seed_bit(void)
{
    size_t i = 0;
    while (strcmp(cli_train_options[i].name, "seed") != 0) {
        i++;
    }
    return (uint64_t)1 << i;
}

// Makes the run of one seed. One that did not begin before a stop has the
// settings of the others.
static int run_seed(
    const cli_train_settings *given, uint64_t seed, cJSON *results,
    double *uncompressed)
{
    char out[DATA_PATH_SIZE], own[DATA_PATH_SIZE], other[DATA_PATH_SIZE];
    cli_train_settings s = *given;
    if (cli_seeds_folder(given->out, seed, out) != LAC_OK ||
        data_path_join(own, out, "manifest.json") != LAC_OK) {
        return cli_failed();
    }
    if (s.resume && *s.config == '\0' && !data_is_file(own) &&
        cli_seeds_manifest(given->out, other)) {
        s.config = other;
    }
    s.out = out;
    s.seed = seed;
    s.given |= seed_bit();
    if (!s.quiet) {
        (void)fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    }
    return run_once(&s, given->out, results, uncompressed);
}

// One run after the other; the first that does not end well is the last. The
// seeds are those of --seeds, or those that the folder has runs of.
static int run_seeds(const cli_train_settings *given)
{
    uint64_t seeds[CLI_SEEDS_MAX];
    char text[CLI_SEEDS_SIZE];
    size_t count = 0;
    cli_train_settings s = *given;
    lac_status status = check_seeds(given);
    if (status == LAC_OK) {
        status = *given->seeds != '\0'
                     ? cli_seeds_parse(given->seeds, seeds, &count)
                     : cli_seeds_find(given->out, seeds, &count);
    }
    if (status != LAC_OK) {
        return cli_rejected("train", status);
    }
    if ((given->given & seed_bit()) != 0) {
        (void)fprintf(
            stderr, "laconic: --seed has no effect: there is a run for each of "
                    "several seeds\n");
    }
    cli_seeds_text(seeds, count, text);
    s.seeds = text;
    int code = CLI_GOOD;
    double uncompressed = 0;
    cJSON *const results = given->json ? cJSON_CreateArray() : NULL;
    for (size_t i = 0; code == CLI_GOOD && i < count; i++) {
        code = run_seed(&s, seeds[i], results, &uncompressed);
    }
    if (results != NULL && code == CLI_GOOD) {
        cJSON *const object = cJSON_CreateObject();
        cJSON_AddItemToObject(object, "runs", results);
        return cli_json_print(object, stdout);
    }
    cJSON_Delete(results);
    if (code == CLI_GOOD && !s.dry_run && count > 1) {
        (void)putchar('\n');
        code = compare_report_folder(
                   s.out, uncompressed / (double)count, stdout) == LAC_OK
                   ? CLI_GOOD
                   : cli_failed();
    }
    return code;
}

static int train_run_command(
    const void *given, size_t count, char *const *arguments)
{
    const cli_train_settings *const s = given;
    (void)count;
    (void)arguments;
    nn_headroom_prepare();
    if (*s->out == '\0' && !s->dry_run) {
        return cli_rejected(
            "train", lac_fail(LAC_ERR_INVALID, "train: --out DIR is missing"));
    }
    if (s->resume && cli_train_folder_resumable(s->out, s->given) != LAC_OK) {
        return cli_failed();
    }
    const bool held = s->resume && cli_train_folder_has_seeds(s->out);
    return held || *s->seeds != '\0' ? run_seeds(s)
                                     : run_once(s, s->out, NULL, NULL);
}

const cli_command cmd_train = {
    .name = "train",
    .summary = "train a network with compressed communication",
    .arguments = "",
    .details =
        "Workers train one model, each on its share of the data. They are\n"
        "threads of this process or, under mpirun, its processes. After every\n"
        "test of the models, loss, accuracy and bytes go to stderr and\n"
        "DIR/metrics.jsonl. At the end a table is printed, and\n"
        "DIR/model.safetensors holds the averaged model.\n"
        "Ctrl-C ends the run after a checkpoint, with exit code 130 (SIGTERM:\n"
        "143; SIGUSR1, to mpirun: 138). `laconic train --resume --out DIR`\n"
        "continues it, with the same bits as without the stop. All settings\n"
        "are in DIR/manifest.json. --epochs may be larger; others that are\n"
        "given must be the same. Runs of --seeds are continued together.\n"
        "--local-steps 16: the workers mix their models after every 16 steps,\n"
        "and once more at the end; 1:16@150: after every step, from epoch 150\n"
        "on after every 16. It needs a model algorithm, such as outer. With\n"
        "outer:fragments=4 a fourth of the tensors is mixed every 4 of 16\n"
        "steps, with delay=3 each result is used 3 steps later; --overlap\n"
        "makes these steps beside the exchange.\n"
        "--hostile 3: worker 3 does not train and sends huge finite values,\n"
        "a test of what an algorithm tolerates; metrics and averaged model\n"
        "are those of the other workers.\n" CLI_THREADS_HELP CLI_MPIRUN_HELP
        "A test evaluates the workers' own models and the averaged one on a\n"
        "sample of the test set, the test after the last step also on all of\n"
        "it. --test-limit auto: a sample of 1,000 examples (of a text, times\n"
        "--bptt words); with --limit N no test has more than N.\n"
        "Processes may share DIR or have a folder each, on different disks.",
    .example = "Train LeNet with eight workers on a ring, compressed, and "
               "continue the run\n"
               "after a stop:\n"
               "\n"
               "    laconic train --algorithm choco --compressor sign --out "
               "runs/choco\n"
               "    laconic train --resume --out runs/choco",
    .notes = cli_train_print_defaults,
    .options = cli_train_options,
    .settings_size = sizeof(cli_train_settings),
    .given_offset = offsetof(cli_train_settings, given),
    .run = train_run_command,
};
