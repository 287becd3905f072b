// SPDX-License-Identifier: MIT
// Chooses between threads and an MPI job, and runs the workers.
#include "cli/launch/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/launch/threads.h"
#include "cli/launch/watchdog.h"
#include "cli/options/command.h"

enum { SPEC_SIZE = 96 };

// Seconds beyond the timeout that joining may take: the transport applies the
// timeout itself to everything after MPI_Init.
#define JOIN_GRACE 2.0

// Where the workers run.
typedef struct place {
    bool threads;
    uint32_t world; // 0: known only to the transport
    const char *spec;
    char text[SPEC_SIZE]; // the spec, if it is not the user's own
    double timeout;
} place;

// The environment variables that an MPI launcher sets. Those of a batch system
// do not count: it starts programs without MPI too.
typedef struct launcher {
    const char *variable;
    const char *size; // the variable with the number of processes, or NULL
    const char *library;
} launcher;

static const launcher launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "openmpi"},
    {"PMI_SIZE", "PMI_SIZE", "mpich"},
    {"PMIX_RANK", NULL, "openmpi"},
};

static const launcher *find_launcher(void)
{
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        if (getenv(launchers[i].variable) != NULL) {
            return &launchers[i];
        }
    }
    return NULL;
}

// Returns the number of launched processes, 0 if it is unknown.
static uint32_t launched_size(const launcher *l)
{
    const char *const text =
        l == NULL || l->size == NULL ? NULL : getenv(l->size);
    const unsigned long size = text == NULL ? 0 : strtoul(text, NULL, 10);
    return size <= CLI_WORKERS_MAX ? (uint32_t)size : 0;
}

static bool names_local(const char *spec)
{
    return strncmp(spec, "local", 5) == 0 &&
           (spec[5] == '\0' || spec[5] == ':');
}

static lac_status choose_place(
    const char *command, const cli_launch_options *options, place *out)
{
    const launcher *const l = find_launcher();
    const bool free_choice = strcmp(options->transport, "auto") == 0;
    const uint32_t given = (uint32_t)options->workers;
    out->spec = options->transport;
    out->timeout = options->timeout;
    out->threads = free_choice ? l == NULL : names_local(options->transport);
    if (out->threads) {
        out->spec = free_choice ? "local" : out->spec;
        out->world = given == 0 ? CLI_WORKERS_DEFAULT : given;
        return LAC_OK;
    }
    if (free_choice) {
        (void)snprintf(
            out->text, sizeof(out->text), "mpi:library=%s,timeout=%.17g",
            l->library, options->timeout);
        out->spec = out->text;
    } else if (strstr(out->spec, "timeout=") == NULL) {
        (void)snprintf(
            out->text, sizeof(out->text), "%.48s%ctimeout=%.17g", out->spec,
            strchr(out->spec, ':') == NULL ? ':' : ',', options->timeout);
        out->spec = strlen(out->spec) <= 48 ? out->text : out->spec;
    }
    const uint32_t size = launched_size(l);
    if (given != 0 && size != 0 && given != size) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: --workers is %u, but the job has %u", command,
            given, size);
    }
    out->world = given == 0 ? size : given;
    return LAC_OK;
}

// Ends this worker of an MPI job, and with it the job.
static int abort_job(lac_transport *t, const char *message, int code)
{
    (void)fflush(NULL);
    lac_transport_abort(t, message);
    lac_transport_kill_job(t, code);
    lac_transport_leave(t);
    return code;
}

static int run_process(
    const char *command, const place *p, const cli_workers *workers,
    void *context)
{
    lac_transport *t = NULL;
    cli_watchdog watchdog;
    cli_watchdog_start(
        &watchdog, p->timeout + JOIN_GRACE,
        "MPI_Init timed out: a process of the MPI job did not start");
    const lac_status joined = lac_transport_join(
        &t, p->spec, NULL, LAC_RANK_ANY,
        p->world == 0 ? LAC_RANK_ANY : p->world);
    cli_watchdog_stop(&watchdog);
    if (joined == LAC_ERR_NOTFOUND || joined == LAC_ERR_INVALID) {
        return cli_misused(command);
    }
    if (joined != LAC_OK) {
        return cli_failed();
    }
    const uint32_t rank = lac_transport_rank(t);
    if (p->world == 0) {
        const int code = workers->prepare(context, lac_transport_world(t));
        if (code != CLI_GOOD) {
            return abort_job(t, lac_error_message(), code);
        }
    }
    if (workers->work(context, t) != LAC_OK) {
        const char *const message = lac_error_message();
        (void)fprintf(stderr, "laconic: worker %u: %s\n", rank, message);
        const int code = abort_job(t, message, CLI_FAILED);
        workers->release(context, rank);
        return code;
    }
    lac_transport_leave(t);
    workers->release(context, rank);
    return CLI_GOOD;
}

int cli_launch(
    const char *command, const cli_launch_options *options,
    const cli_workers *workers, void *context)
{
    place p = {0};
    if (choose_place(command, options, &p) != LAC_OK) {
        return cli_misused(command);
    }
    // As early as possible: no other worker waits for this one yet.
    const int code =
        p.world == 0 ? CLI_GOOD : workers->prepare(context, p.world);
    if (code != CLI_GOOD) {
        return code;
    }
    if (!p.threads) {
        return run_process(command, &p, workers, context);
    }
    return cli_run_threads(workers, context, p.spec, p.world) == LAC_OK
               ? CLI_GOOD
               : cli_failed();
}
