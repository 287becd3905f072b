// SPDX-License-Identifier: MIT
// Chooses between threads, an MPI job, a group over tcp and a simulated
// cluster.
#include "cli/launch/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/command.h"
#include "cli/options/spec.h"
#include "cli/report/processor.h"

// The environment variables that an MPI launcher sets. Those of a batch system
// do not count: it starts programs without MPI too.
typedef struct launcher {
    const char *variable;
    const char *size; // the variable with the number of processes, or NULL
    const char *rank;
    const char *library;
} launcher;

static const launcher launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
     "openmpi"},
    {"PMI_SIZE", "PMI_SIZE", "PMI_RANK", "mpich"},
    {"PMIX_RANK", NULL, "PMIX_RANK", "openmpi"},
};

// smpirun sets it to the number of simulated ranks.
#define SIMULATED_SIZE "SMPI_GLOBAL_SIZE"

static const launcher *find_launcher(void)
{
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        if (getenv(launchers[i].variable) != NULL) {
            return &launchers[i];
        }
    }
    return NULL;
}

// Whether this process was started as torchrun starts processes.
static bool has_master(void)
{
    return getenv("MASTER_ADDR") != NULL && getenv("RANK") != NULL &&
           getenv("WORLD_SIZE") != NULL;
}

bool cli_place_is_first(void)
{
    const launcher *const l = find_launcher();
    const char *const variable = l != NULL      ? l->rank
                                 : has_master() ? "RANK"
                                                : NULL;
    const char *const rank = variable == NULL ? NULL : getenv(variable);
    return rank == NULL || strtoul(rank, NULL, 10) == 0;
}

// Returns the spec that the user named, or "auto".
static const char *named_transport(const cli_launch_options *options)
{
    const char *const variable = getenv(CLI_TRANSPORT_VARIABLE);
    return strcmp(options->transport, "auto") == 0 && variable != NULL &&
                   *variable != '\0'
               ? variable
               : options->transport;
}

// The environment variable with the number of processes of the job, or NULL.
static const char *size_variable(const char *spec)
{
    cli_spec_item token;
    if (cli_spec_names(spec, "tcp")) {
        return cli_spec_find(spec, "token", &token) ? "WORLD_SIZE" : NULL;
    }
    if (cli_spec_names(spec, "smpi")) {
        return SIMULATED_SIZE;
    }
    const launcher *const l = find_launcher();
    return cli_spec_names(spec, "mpi") && l != NULL ? l->size : NULL;
}

static lac_status choose_world(
    const char *command, const cli_launch_options *options, cli_place *out)
{
    const char *const variable = size_variable(out->spec);
    const char *const text = variable == NULL ? NULL : getenv(variable);
    const unsigned long number = text == NULL ? 0 : strtoul(text, NULL, 10);
    const uint32_t size = number <= CLI_WORKERS_MAX ? (uint32_t)number : 0;
    const uint32_t given = (uint32_t)options->workers;
    if (given != 0 && size != 0 && given != size) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: --workers is %u, but the job has %u", command,
            given, size);
    }
    out->world = given == 0 ? size : given;
    return LAC_OK;
}

// Returns whether a spec of mpi has a library, its first setting, whose name
// may be left out.
static bool has_library(const char *spec)
{
    cli_spec_item item;
    return cli_spec_find(spec, "library", &item) ||
           cli_spec_find(spec, "", &item);
}

// Makes the spec `base` with the timeout, and with the library of mpi that the
// launcher belongs to, unless `base` has them. With the library of another
// launcher every process would be alone in its job.
static lac_status complete_spec(
    const char *base, double timeout, cli_place *out)
{
    const size_t size = strlen(base) + 96;
    const char *separator = strchr(base, ':') == NULL ? ":" : ",";
    const launcher *const l = find_launcher();
    cli_spec_item item;
    out->text = malloc(size);
    if (out->text == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for the transport");
    }
    // Two settings with these names and numbers need fewer than 96 characters.
    int used = snprintf(out->text, size, "%s", base);
    if (l != NULL && cli_spec_names(base, "mpi") && !has_library(base)) {
        used += snprintf(
            out->text + used, size - (size_t)used, "%slibrary=%s", separator,
            l->library);
        separator = ",";
    }
    if (!cli_spec_find(base, "timeout", &item)) {
        (void)snprintf(
            out->text + used, size - (size_t)used, "%stimeout=%.17g", separator,
            timeout);
    }
    out->spec = out->text;
    return LAC_OK;
}

static lac_status choose_unnamed(
    const char *command, const cli_launch_options *options, cli_place *out)
{
    if (getenv(SIMULATED_SIZE) != NULL) {
        out->spec = "smpi";
        return LAC_OK;
    }
    if (find_launcher() != NULL) {
        return complete_spec("mpi", options->timeout, out);
    }
    if (has_master()) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: MASTER_ADDR, RANK and WORLD_SIZE are set, but there is no "
            "token: expected --transport tcp:token=FILE, or --transport local "
            "for threads",
            command);
    }
    out->spec = "local";
    return LAC_OK;
}

lac_status cli_place_choose(
    const char *command, const cli_launch_options *options, cli_place *out)
{
    const char *const spec = named_transport(options);
    *out = (cli_place){.spec = spec, .timeout = options->timeout};
    if (strcmp(spec, "auto") == 0) {
        LAC_TRY(choose_unnamed(command, options, out));
    } else if (
        !cli_spec_names(spec, "local") && !cli_spec_names(spec, "smpi")) {
        LAC_TRY(complete_spec(spec, options->timeout, out));
    }
    out->threads = cli_spec_names(out->spec, "local");
    if (out->threads) {
        out->world = options->workers == 0 ? CLI_WORKERS_DEFAULT
                                           : (uint32_t)options->workers;
        return LAC_OK;
    }
    const lac_status status = choose_world(command, options, out);
    if (status != LAC_OK) {
        cli_place_clear(out);
    }
    return status;
}

uint32_t cli_place_threads(const cli_launch_options *options, uint32_t world)
{
    const long processors = cli_processor_count();
    cli_place place = {0};
    if (options->threads > 0) {
        return (uint32_t)options->threads;
    }
    if (cli_place_choose("", options, &place) != LAC_OK || !place.threads) {
        cli_place_clear(&place);
        return 1;
    }
    cli_place_clear(&place);
    const long share = processors / (long)world;
    return share < 1                 ? 1
           : share > CLI_THREADS_MAX ? CLI_THREADS_MAX
                                     : (uint32_t)share;
}

void cli_place_clear(cli_place *place)
{
    free(place->text);
    *place = (cli_place){0};
}
