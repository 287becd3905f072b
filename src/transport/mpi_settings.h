// SPDX-License-Identifier: MIT
// What the loader of "mpi" and its modules agree on.
#ifndef LACONIC_TRANSPORT_MPI_SETTINGS_H
#define LACONIC_TRANSPORT_MPI_SETTINGS_H

#include <stdint.h>

#include <laconic/plugin.h>

#include "transport/transport.h"

// The settings of "mpi:...": the head of the loader's state and of a module's.
typedef struct laci_mpi_settings {
    uint32_t library;
    lac_number_or_word comm; // the word: MPI_COMM_WORLD
    double timeout;
} laci_mpi_settings;

// The one symbol of a module: its table.
#define LACI_MPI_ENTRY "laci_mpi_module"
typedef const laci_transport_ops *laci_mpi_entry(void);

#endif
