// SPDX-License-Identifier: MIT
// The interface between the loader of "mpi" and its modules.
#ifndef LACONIC_TRANSPORT_MPI_SETTINGS_H
#define LACONIC_TRANSPORT_MPI_SETTINGS_H

#include <stdint.h>

#include <laconic/plugin.h>

#include "transport/transport.h"

// The settings of "mpi:...", the first member of the state of a module.
typedef struct laci_mpi_settings {
    uint32_t library;
    lac_number_or_word comm; // the word: MPI_COMM_WORLD
    double timeout;
    lac_number_or_word eager; // the word: LACI_MPI_EAGER between machines
} laci_mpi_settings;

// The only symbol of a module, a laci_module_entry.
#define LACI_MPI_ENTRY "laci_mpi_module"

#endif
