// SPDX-License-Identifier: MIT
// Runs the workers: as threads, or this process as one worker of a job.
#include "cli/launch/launch.h"

#include <stdio.h>
#include <string.h>

#include "cli/launch/names.h"
#include "cli/launch/place.h"
#ifdef LACI_SMPI
#include "cli/launch/simulated.h"
#endif
#include "cli/launch/threads.h"
#include "cli/launch/watchdog.h"
#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "cli/options/spec.h"

enum { NAME_SIZE = 64 };

// Seconds beyond the timeout that joining may take: the transport applies the
// timeout itself to everything after MPI_Init.
#define JOIN_GRACE 2.0

// Ends this worker of a job, and with it the job.
static int abort_job(lac_transport *t, const char *message, int code)
{
    (void)fflush(NULL);
    lac_transport_abort(t, message);
    lac_transport_kill_job(t, code);
    lac_transport_leave(t);
    return code;
}

// Only MPI_Init can hang; tcp has deadlines everywhere.
static lac_status join_job(const cli_place *p, lac_transport **out)
{
    const bool mpi = cli_spec_names(p->spec, "mpi");
    cli_watchdog watchdog;
    if (mpi) {
        cli_watchdog_start(
            &watchdog, p->timeout + JOIN_GRACE,
            "MPI_Init timed out: a process of the MPI job did not start");
    }
    const lac_status status = lac_transport_join(
        out, p->spec, NULL, LAC_RANK_ANY,
        p->world == 0 ? LAC_RANK_ANY : p->world);
    if (mpi) {
        cli_watchdog_stop(&watchdog);
    }
    return status;
}

static bool tcp_has_setting(const cli_spec_item *item)
{
    size_t count;
    const lac_plugin *const *const transports = lac_transports(&count);
    for (size_t i = 0; i < count; i++) {
        const lac_param *p = transports[i]->params;
        const bool tcp = strcmp(transports[i]->name, "tcp") == 0;
        for (; tcp && p != NULL && p->name != NULL; p++) {
            if (strlen(p->name) == item->key_len &&
                memcmp(p->name, item->key, item->key_len) == 0) {
                return true;
            }
        }
    }
    return false;
}

// Whether a spec of tcp names the files it needs and only settings there are. A
// join that fails then does so because of a file, this machine or a peer.
static bool is_sound(const char *spec)
{
    size_t at = 0;
    bool complete = false;
    cli_spec_item item;
    while (cli_spec_next(spec, &at, &item)) {
        if (item.key_len > 0 && !tcp_has_setting(&item)) {
            return false;
        }
        complete = complete || item.key_len == 0 ||
                   strncmp(item.key, "peers=", 6) == 0 ||
                   strncmp(item.key, "token=", 6) == 0;
    }
    return complete;
}

static int report_join(const char *command, const cli_place *p, lac_status why)
{
    const bool word = why == LAC_ERR_NOTFOUND || why == LAC_ERR_INVALID;
    // Only some builds have smpi, which is no misspelt mpi.
    if (why == LAC_ERR_NOTFOUND && !cli_spec_names(p->spec, "smpi")) {
        char name[NAME_SIZE]; // without the settings that were added
        (void)snprintf(
            name, sizeof(name), "%.*s", (int)strcspn(p->spec, ":"), p->spec);
        cli_suggest(command, "transports", name);
    }
    return word && !(cli_spec_names(p->spec, "tcp") && is_sound(p->spec))
               ? cli_misused(command)
               : cli_failed();
}

static void warn_of_plain_text(const char *spec)
{
    cli_spec_item item;
    if (cli_spec_names(spec, "tcp") &&
        cli_spec_find(spec, "encryption", &item) && item.value_len == 2 &&
        memcmp(item.value, "no", 2) == 0) {
        (void)fprintf(
            stderr, "laconic: encryption=no: whoever is on the network can "
                    "read and change what the workers send\n");
    }
}

// Reports the failure of this worker, with the names of workers that have some.
static void report_work(const cli_names *names, uint32_t rank)
{
    char message[CLI_MESSAGE_SIZE], text[CLI_MESSAGE_SIZE];
    (void)snprintf(
        message, sizeof(message), "worker %u: %s", rank, lac_error_message());
    cli_names_insert(names, message, text, sizeof(text));
    cli_print_text("", text);
}

// Runs the worker that has joined as `t`, and leaves.
static int run_member(
    const cli_workers *workers, void *context, lac_transport *t,
    const cli_names *names)
{
    const uint32_t rank = lac_transport_rank(t);
    const char *const name = cli_names_of(names, rank);
    if (name != NULL && workers->joined != NULL) {
        workers->joined(context, lac_transport_world(t), name);
    }
    const lac_status status = workers->work(context, t);
    int code = CLI_GOOD;
    if (status == LAC_OK) {
        lac_transport_leave(t);
    } else {
        report_work(names, rank);
        if (status == LAC_ERR_PEER && workers->lost != NULL) {
            workers->lost(context);
        }
        code = abort_job(t, lac_error_message(), CLI_FAILED);
    }
    workers->release(context, rank);
    return code;
}

static int run_process(
    const char *command, const cli_place *p, const cli_workers *workers,
    void *context)
{
    lac_transport *t = NULL;
    cli_names names;
    cli_names_read(&names, p->spec);
    const lac_status joined = join_job(p, &t);
    int code = CLI_GOOD;
    if (joined != LAC_OK) {
        cli_names_clear(&names);
        return report_join(command, p, joined);
    }
    if (lac_transport_rank(t) == 0) {
        warn_of_plain_text(p->spec);
    }
    if (p->world == 0) {
        code = workers->prepare(context, lac_transport_world(t));
    }
    code = code == CLI_GOOD ? run_member(workers, context, t, &names)
                            : abort_job(t, lac_error_message(), code);
    cli_names_clear(&names);
    return code;
}

#ifdef LACI_SMPI
// The first rank that fails ends all of them, see main.
static int run_at(
    const char *command, const cli_place *p, const cli_workers *workers,
    void *context)
{
    if (!cli_spec_names(p->spec, "smpi") || p->world == 0) {
        (void)!lac_fail(
            LAC_ERR_INVALID,
            "%s: the transport is %s, expected smpi, and smpirun", command,
            p->spec);
        return cli_misused(command);
    }
    int code = cli_simulated_enter(workers, &context, p->world);
    if (code == CLI_GOOD) {
        code = run_process(command, p, workers, context);
    }
    if (code == CLI_GOOD) {
        cli_simulated_leave();
    }
    return code;
}
#else
static int run_at(
    const char *command, const cli_place *p, const cli_workers *workers,
    void *context)
{
    // As early as possible: no other worker waits for this one yet.
    const int code =
        p->world == 0 ? CLI_GOOD : workers->prepare(context, p->world);
    if (code != CLI_GOOD) {
        return code;
    }
    if (!p->threads) {
        return run_process(command, p, workers, context);
    }
    return cli_run_threads(workers, context, p->spec, p->world) == LAC_OK
               ? CLI_GOOD
               : cli_failed();
}
#endif

int cli_launch(
    const char *command, const cli_launch_options *options,
    const cli_workers *workers, void *context)
{
    cli_place p = {0};
    const lac_status status = cli_place_choose(command, options, &p);
    if (status != LAC_OK) {
        return cli_rejected(command, status);
    }
    const int code = run_at(command, &p, workers, context);
    cli_place_clear(&p);
    return code;
}
