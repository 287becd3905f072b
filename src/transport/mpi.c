// SPDX-License-Identifier: MIT
// The transport "mpi": chooses the module for the requested MPI and forwards
// every call to it. The library itself links no MPI, so one build serves every
// MPI and programs without one.
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#include "base/fail.h"
#include "transport/loader.h"
#include "transport/mpi_settings.h"

enum { AUTO, OPENMPI, MPICH, LIBRARY_COUNT };

typedef struct library {
    const char *name;       // in specs
    const char *module;     // laconic_MODULE.so
    const char *sonames[2]; // of the MPI that a host program may have loaded
} library;

static const library libraries[LIBRARY_COUNT] = {
    [OPENMPI] = {"openmpi", "mpi_openmpi", {"libmpi.so.40", NULL}},
    [MPICH] = {"mpich", "mpi_mpich", {"libmpich.so.12", "libmpi.so.12"}},
};

typedef struct mpi_state {
    laci_module_state module;
    laci_mpi_settings settings;
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

// "auto" takes the MPI that the host program has loaded, or else the only one
// that has a module. It does not guess between two: under the launcher of the
// other one, every process would be alone in its job.
static lac_status choose_library(uint32_t *library_out)
{
    bool exists[LIBRARY_COUNT] = {false};
    for (uint32_t i = OPENMPI; i < LIBRARY_COUNT; i++) {
        if (is_loaded(&libraries[i])) {
            *library_out = i;
            return LAC_OK;
        }
        exists[i] = laci_module_exists(libraries[i].module);
    }
    if (exists[OPENMPI] && exists[MPICH]) {
        return lac_fail(
            LAC_ERR_INVALID,
            "mpi: there are modules for Open MPI and for MPICH, and the "
            "program has loaded neither, expected mpi:library=openmpi or "
            "mpi:library=mpich, by the mpirun that started it");
    }
    *library_out = exists[MPICH] ? MPICH : OPENMPI;
    return LAC_OK;
}

// Writes the name of the module for the MPI of the settings.
static lac_status choose_module(const mpi_state *state, const char **module_out)
{
    uint32_t which = state->settings.library;
    if (which == AUTO) {
        LAC_TRY(choose_library(&which));
    }
    *module_out = libraries[which].module;
    return LAC_OK;
}

static lac_status mpi_library(const void *state, char out[LAC_LIBRARY_SIZE])
{
    const char *module = NULL;
    LAC_TRY(choose_module(state, &module));
    return laci_module_library("mpi", module, LACI_MPI_ENTRY, out);
}

static lac_status mpi_join(void *raw, laci_membership *membership)
{
    mpi_state *const state = raw;
    const laci_transport_ops *ops = NULL;
    const char *module = NULL;
    LAC_TRY(choose_module(state, &module));
    LAC_TRY(laci_module_load("mpi", module, LACI_MPI_ENTRY, &ops));
    return laci_module_join(
        &state->module, ops, &state->settings, sizeof(state->settings),
        membership);
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
    {
        .name = "eager",
        .type = LAC_PARAM_F64_OR_WORD,
        .offset = offsetof(mpi_state, settings.eager),
        .default_value = "auto",
        .min = 0,
        .max = 1 << 30,
        .choices = "auto",
        .help = "first pieces of a long message, in bytes; auto: 16000 "
                "between machines",
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
    .leave = laci_module_leave,
    .exchange = laci_module_exchange,
    .abort = laci_module_abort,
    .kill_job = laci_module_kill_job,
    .allreduce_sum = laci_module_allreduce,
    .library = mpi_library,
};
