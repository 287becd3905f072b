// SPDX-License-Identifier: MIT
// The transport "mpi": finds the module for the requested MPI, loads it and
// forwards every call to it. The library itself links no MPI, so one build
// serves every MPI and programs without one.
//
// Modules are in the folder of the library or in laconic/ below it. They are
// loaded privately (RTLD_LOCAL), because the symbols of two MPIs have the same
// names. They are never unloaded, because no MPI survives that.
#define _GNU_SOURCE // dladdr
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "transport/mpi_settings.h"

extern const laci_transport_ops laci_mpi_transport;

enum { AUTO, OPENMPI, MPICH, LIBRARY_COUNT, PATH_SIZE = 4096 };

typedef struct library {
    const char *name;       // in specs and in the module's file name
    const char *sonames[2]; // of the MPI that a host program may have loaded
} library;

static const library libraries[LIBRARY_COUNT] = {
    [OPENMPI] = {"openmpi", {"libmpi.so.40", NULL}},
    [MPICH] = {"mpich", {"libmpich.so.12", "libmpi.so.12"}},
};

typedef struct mpi_state {
    laci_mpi_settings settings;
    const laci_services *services;
    const laci_transport_ops *ops;
    void *state; // of the module
} mpi_state;

// Returns whether the host program has loaded this MPI.
static bool is_loaded(const library *mpi)
{
    for (size_t i = 0; i < 2 && mpi->sonames[i] != NULL; i++) {
        void *const handle = dlopen(mpi->sonames[i], RTLD_LAZY | RTLD_NOLOAD);
        if (handle != NULL) {
            (void)dlclose(handle);
            return true;
        }
    }
    return false;
}

// Writes the folder that this code was loaded from, with a slash at the end.
static bool find_folder(char *out, size_t cap)
{
    Dl_info info;
    if (dladdr(&laci_mpi_transport, &info) == 0 || info.dli_fname == NULL) {
        return false;
    }
    const char *const slash = strrchr(info.dli_fname, '/');
    const int length = slash == NULL ? 0 : (int)(slash + 1 - info.dli_fname);
    const int written = snprintf(out, cap, "%.*s", length, info.dli_fname);
    return written >= 0 && (size_t)written < cap;
}

// Writes the path of the module of `mpi` and returns whether it exists.
static bool find_module(
    const char *folder, const library *mpi, char *out, size_t cap)
{
    static const char *const places[] = {"", "laconic/"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const int written = snprintf(
            out, cap, "%s%slaconic_mpi_%s.so", folder, places[i], mpi->name);
        if (written >= 0 && (size_t)written < cap && access(out, R_OK) == 0) {
            return true;
        }
    }
    return false;
}

static lac_status open_module(
    const char *folder, const library *mpi, const laci_transport_ops **out)
{
    char path[PATH_SIZE + 64];
    if (!find_module(folder, mpi, path, sizeof(path))) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED, "mpi: there is no laconic_mpi_%s.so in %s",
            mpi->name, folder[0] == '\0' ? "." : folder);
    }
    void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL) {
        return lac_fail(LAC_ERR_UNSUPPORTED, "mpi: %s", dlerror());
    }
    // The conversion from dlsym's pointer to a function that POSIX suggests.
    laci_mpi_entry *entry = NULL;
    void *const symbol = dlsym(handle, LACI_MPI_ENTRY);
    memcpy(&entry, &symbol, sizeof(entry));
    const laci_transport_ops *const ops = entry == NULL ? NULL : entry();
    if (ops == NULL || ops->abi != LACI_TRANSPORT_ABI) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "mpi: the module for %s in %s belongs to another build of laconic",
            mpi->name, folder);
    }
    *out = ops;
    return LAC_OK;
}

// "auto" takes the MPI that the host program has loaded, or else the only one
// that has a module. It does not guess between two: under the launcher of the
// other one, every process would be alone in its job.
static lac_status choose_library(const char *folder, uint32_t *library_out)
{
    bool exists[LIBRARY_COUNT] = {false};
    for (uint32_t i = OPENMPI; i < LIBRARY_COUNT; i++) {
        if (is_loaded(&libraries[i])) {
            *library_out = i;
            return LAC_OK;
        }
        char path[PATH_SIZE + 64];
        exists[i] = find_module(folder, &libraries[i], path, sizeof(path));
    }
    if (exists[OPENMPI] && exists[MPICH]) {
        return lac_fail(
            LAC_ERR_INVALID,
            "mpi: there are modules for Open MPI and for MPICH, expected "
            "library=openmpi or library=mpich");
    }
    *library_out = exists[MPICH] ? MPICH : OPENMPI;
    return LAC_OK;
}

static lac_status mpi_join(void *raw, laci_membership *membership)
{
    mpi_state *const state = raw;
    char folder[PATH_SIZE];
    if (!find_folder(folder, sizeof(folder))) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED, "mpi: the folder of the library, where its "
                                 "modules are, is unknown");
    }
    uint32_t which = state->settings.library;
    if (which == AUTO) {
        LAC_TRY(choose_library(folder, &which));
    }
    LAC_TRY(open_module(folder, &libraries[which], &state->ops));
    state->services = membership->services;
    state->state = state->services->zalloc(state->ops->plugin.state_size);
    if (state->state == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "mpi: no memory for a session");
    }
    memcpy(state->state, &state->settings, sizeof(state->settings));
    const lac_status status = state->ops->join(state->state, membership);
    if (status != LAC_OK) {
        state->services->free(state->state);
    }
    return status;
}

static bool mpi_leave(void *raw)
{
    const mpi_state *const state = raw;
    const bool idle = state->ops->leave(state->state);
    state->services->free(state->state);
    return idle;
}

static lac_status mpi_exchange(
    void *raw, const lac_send *sends, size_t send_count, lac_receive *receives,
    size_t receive_count, double deadline)
{
    const mpi_state *const state = raw;
    return state->ops->exchange(
        state->state, sends, send_count, receives, receive_count, deadline);
}

static void mpi_abort(void *raw, const char *why)
{
    const mpi_state *const state = raw;
    state->ops->abort(state->state, why);
}

static void mpi_kill_job(void *raw, int code)
{
    const mpi_state *const state = raw;
    state->ops->kill_job(state->state, code);
}

static lac_status mpi_allreduce(void *raw, float *x, size_t n, double deadline)
{
    const mpi_state *const state = raw;
    return state->ops->allreduce_sum(state->state, x, n, deadline);
}

static const lac_param params[] = {
    {
        .name = "library",
        .type = LAC_PARAM_CHOICE,
        .offset = offsetof(mpi_state, settings.library),
        .default_value = "auto",
        .choices = "auto|openmpi|mpich",
        .help = "the MPI library; auto: the loaded one, or the only one",
    },
    {
        .name = "comm",
        .type = LAC_PARAM_F64_OR_WORD,
        .offset = offsetof(mpi_state, settings.comm),
        .default_value = "world",
        .min = -2147483648.0,
        .max = 2147483647.0,
        .choices = "world",
        .help = "communicator, as a Fortran handle (MPI_Comm_c2f)",
    },
    {
        .name = "timeout",
        .type = LAC_PARAM_F64,
        .offset = offsetof(mpi_state, settings.timeout),
        .default_value = "60",
        .min = 0,
        .max = 1e8,
        .above_min = true,
        .help = "seconds that joining and leaving wait for the others",
    },
    {0},
};

const laci_transport_ops laci_mpi_transport = {
    .plugin =
        {
            .size = sizeof(laci_transport_ops),
            .name = "mpi",
            .summary = "processes of an MPI job, Open MPI or MPICH",
            .params = params,
            .param_size = sizeof(lac_param),
            .state_size = sizeof(mpi_state),
        },
    .abi = LACI_TRANSPORT_ABI,
    .join = mpi_join,
    .leave = mpi_leave,
    .exchange = mpi_exchange,
    .abort = mpi_abort,
    .kill_job = mpi_kill_job,
    .allreduce_sum = mpi_allreduce,
};
