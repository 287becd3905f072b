// SPDX-License-Identifier: MIT
// laconic train: workers train one model together and say little.
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/fetch.h"
#include "cli/launch.h"
#include "cli/manifest.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/train_folder.h"
#include "cli/train_report.h"
#include "cli/train_settings.h"
#include "nn/network.h"
#include "train/feed.h"
#include "train/run.h"

enum {
    STACK_SIZE = 8 << 20, // oneDNN needs more than our own code does
    WHAT_SIZE = 80,
};

// Set by a signal; the run then ends with a checkpoint. All workers look at it,
// so it is atomic, and without a lock, which a handler could not take.
static atomic_int asked_to_stop;

// One run of the command. Everything is NULL or owned by it.
typedef struct job {
    cli_train_settings s;
    train_run run;
    data_set *set;
    lac_layout *layout;
    lac_topology *topology;
    cJSON *settings;
    int folder_lock;
    cli_progress progress;
} job;

static void stop(int number)
{
    (void)number;
    asked_to_stop = 1;
}

// A second signal ends the program at once.
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = stop};
    action.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
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

// The layout of the model for these data, by way of the smallest network.
static lac_status open_layout(job *j)
{
    nn_network *net = NULL;
    const nn_options smallest = {
        .model = j->s.model,
        .sample = train_feed_sample(data_set_info(j->set)),
        .batch = 1,
        .steps = 1,
    };
    lac_status status = nn_network_open(&net, &smallest);
    if (status != LAC_OK) {
        return status;
    }
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

static bool is_usage(lac_status status)
{
    return status == LAC_ERR_INVALID || status == LAC_ERR_NOTFOUND;
}

// Whatever the user typed is looked at before any worker begins.
static int prepare(void *context, uint32_t world)
{
    job *const j = context;
    j->run.world = world;
    j->s.launch.workers = world;
    lac_status status =
        lac_topology_open(&j->topology, j->s.topology, world, j->s.seed);
    if (status != LAC_OK) {
        return is_usage(status) ? cli_misused("train") : cli_failed();
    }
    status = open_data(j);
    if (status != LAC_OK) {
        return status == LAC_ERR_NOTFOUND ? cli_misused("train") : cli_failed();
    }
    status = open_layout(j);
    if (status == LAC_OK) {
        status =
            cli_train_plan(&j->s, j->set, j->topology, j->layout, &j->run.plan);
    }
    if (status != LAC_OK) {
        return is_usage(status) ? cli_misused("train") : cli_failed();
    }
    j->settings = cli_manifest_settings(cli_train_options, &j->s);
    if (j->settings == NULL) {
        (void)!lac_fail(LAC_ERR_NOMEM, "no memory for the manifest");
        return cli_failed();
    }
    if (cli_train_folder_check(j->s.out, j->settings, j->s.resume) != LAC_OK) {
        return cli_failed();
    }
    j->run.workers = calloc(world, sizeof(*j->run.workers));
    if (j->run.workers == NULL) {
        (void)!lac_fail(LAC_ERR_NOMEM, "no memory for %u workers", world);
        return cli_failed();
    }
    catch_signals();
    return CLI_GOOD;
}

static lac_status work(void *context, lac_transport *transport)
{
    job *const j = context;
    return train_work(&j->run, transport);
}

static void release(void *context, uint32_t rank)
{
    job *const j = context;
    train_release(&j->run, rank);
}

static const cli_crew crew = {prepare, work, release, STACK_SIZE};

static lac_status hold(void *context)
{
    job *const j = context;
    return cli_train_folder_take(
        j->s.out, j->settings, j->s.resume, &j->folder_lock);
}

static lac_status ready(void *context, const train_facts *facts)
{
    job *const j = context;
    if (facts->warning != NULL) {
        (void)fprintf(stderr, "laconic: %s\n", facts->warning);
    }
    if (facts->first_step > 0) {
        (void)fprintf(
            stderr, "laconic: resuming after step %llu\n",
            (unsigned long long)facts->first_step);
    }
    cJSON *const object = cli_train_facts(facts);
    const lac_status status = cli_manifest_write(j->s.out, j->settings, object);
    cJSON_Delete(object);
    j->progress =
        cli_progress_begin((size_t)(j->s.epochs * facts->epoch_steps));
    return status;
}

static void tell(void *context, const train_progress *p)
{
    job *const j = context;
    char what[WHAT_SIZE], bytes[CLI_BYTES_SIZE];
    if (p->testing) {
        (void)snprintf(what, sizeof(what), "testing the models");
    } else {
        (void)snprintf(
            what, sizeof(what), "loss %.3f  %.0f %s/s  %s", p->loss,
            p->labels_per_second,
            data_set_info(j->set)->kind == DATA_TEXT ? "words" : "examples",
            cli_bytes((double)p->payload_bytes, bytes));
    }
    cli_progress_step(&j->progress, (size_t)p->step - (p->step > 0), what);
}

static void tell_epoch(void *context, const train_metrics *m)
{
    job *const j = context;
    char quality[WHAT_SIZE], bytes[CLI_BYTES_SIZE];
    if (isnan(m->test_accuracy)) {
        (void)snprintf(quality, sizeof(quality), "no test set");
    } else if (m->text) {
        (void)snprintf(
            quality, sizeof(quality), "perplexity %.2f", exp(m->test_loss));
    } else {
        (void)snprintf(
            quality, sizeof(quality), "accuracy %.2f %%",
            100 * m->test_accuracy);
    }
    cli_progress_end(&j->progress);
    (void)fprintf(
        stderr, "epoch %llu/%llu  loss %.4f  %s  %s sent\n",
        (unsigned long long)m->epoch, (unsigned long long)j->s.epochs,
        m->train_loss, quality,
        cli_bytes((double)m->usage.traffic.payload_bytes, bytes));
}

static int report(const job *j)
{
    const train_result *const r = &j->run.result;
    if (r->interrupted) {
        (void)fprintf(
            stderr,
            "laconic: stopped, with a checkpoint in %s; the same command with "
            "--resume goes on\n",
            j->s.out);
        return CLI_FAILED;
    }
    if (j->s.json) {
        return cli_json_print(cli_train_json(&j->run), stdout);
    }
    cli_train_table(&j->run, j->s.topology, stdout);
    return CLI_GOOD;
}

static void clear(job *j)
{
    cli_train_folder_leave(j->folder_lock);
    free(j->run.workers);
    cJSON_Delete(j->settings);
    lac_topology_close(j->topology);
    lac_layout_close(j->layout);
    data_set_close(j->set);
}

static int run(const void *given, size_t count, char *const *arguments)
{
    (void)count;
    (void)arguments;
    job j = {
        .s = *(const cli_train_settings *)given,
        .folder_lock = CLI_NO_LOCK,
    };
    j.run.hooks = (train_hooks){
        .context = &j,
        .lock = hold,
        .ready = ready,
        .progress = tell,
        .epoch = tell_epoch,
        .stop = &asked_to_stop,
    };
    int code = cli_launch("train", &j.s.launch, &crew, &j);
    cli_progress_end(&j.progress);
    if (code == CLI_GOOD && j.run.result.here) {
        code = report(&j);
    }
    clear(&j);
    return code;
}

const cli_command cmd_train = {
    .name = "train",
    .summary = "train a network with workers that say little",
    .arguments = "",
    .details =
        "Workers, threads of this process or under mpirun its processes, "
        "train\n"
        "one model on shares of the data. After every epoch a line with loss,\n"
        "accuracy and bytes goes to stderr and DIR/metrics.jsonl; at the end "
        "a\n"
        "table is printed, and the averaged model is in "
        "DIR/model.safetensors.\n"
        "Ctrl-C ends the run after a checkpoint; the same command with "
        "--resume\n"
        "goes on, with the same bits as if it had never stopped. --epochs may\n"
        "then be larger; other settings that change the result must be as "
        "they\n"
        "were.",
    .options = cli_train_options,
    .settings_size = sizeof(cli_train_settings),
    .run = run,
};
