// SPDX-License-Identifier: MIT
// Where the workers of a command are, and running them there.
#include "cli/launch/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/launch/threads.h"
#include "cli/launch/watchdog.h"
#include "cli/options/command.h"

enum { SPEC_SIZE = 96 };

// Seconds beyond the timeout that joining may take: it has a timeout of its
// own for all that comes after MPI_Init.
#define JOIN_GRACE 2.0

// Where the workers are.
typedef struct place {
    bool threads;
    uint32_t world; // 0: the transport will know
    const char *spec;
    char text[SPEC_SIZE]; // what `spec` points to if we made it up
    double timeout;
} place;

// What a launcher of MPI leaves in the environment of its processes. A batch
// system alone says nothing about MPI, so its variables do not count.
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

// The number of processes that were launched, 0 if that is not told.
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
static int give_up(lac_transport *t, const char *sentence, int code)
{
    (void)fflush(NULL);
    lac_transport_abort(t, sentence);
    lac_transport_kill_job(t, code);
    lac_transport_leave(t);
    return code;
}

static int run_process(
    const char *command, const place *p, const cli_crew *crew, void *context)
{
    lac_transport *t = NULL;
    cli_watchdog watchdog;
    cli_watchdog_start(
        &watchdog, p->timeout + JOIN_GRACE,
        "a process of the MPI job has not come: MPI_Init waits for all");
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
        const int code = crew->prepare(context, lac_transport_world(t));
        if (code != CLI_GOOD) {
            return give_up(t, lac_error_message(), code);
        }
    }
    if (crew->work(context, t) != LAC_OK) {
        const char *const sentence = lac_error_message();
        (void)fprintf(stderr, "laconic: worker %u: %s\n", rank, sentence);
        const int code = give_up(t, sentence, CLI_FAILED);
        crew->release(context, rank);
        return code;
    }
    lac_transport_leave(t);
    crew->release(context, rank);
    return CLI_GOOD;
}

int cli_launch(
    const char *command, const cli_launch_options *options,
    const cli_crew *crew, void *context)
{
    place p = {0};
    if (choose_place(command, options, &p) != LAC_OK) {
        return cli_misused(command);
    }
    // As early as possible: here nobody waits for this worker yet.
    const int code = p.world == 0 ? CLI_GOOD : crew->prepare(context, p.world);
    if (code != CLI_GOOD) {
        return code;
    }
    if (!p.threads) {
        return run_process(command, &p, crew, context);
    }
    return cli_crew_threads(crew, context, p.spec, p.world) == LAC_OK
               ? CLI_GOOD
               : cli_failed();
}
