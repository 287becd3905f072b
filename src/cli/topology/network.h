// SPDX-License-Identifier: MIT
// Networks of workers, as text and as matrices.
#ifndef LACONIC_CLI_TOPOLOGY_NETWORK_H
#define LACONIC_CLI_TOPOLOGY_NETWORK_H

#include <stdio.h>

#include <laconic/laconic.h>

#include "data/output.h"

// cli_network_open opens the topology that a user named. `command` is the
// subcommand that messages name. Returns an exit code; a failure has been
// reported, and `*out` is NULL.
int cli_network_open(
    const char *command, const char *spec, uint32_t workers, uint64_t seed,
    lac_topology **out);

// cli_network_recorded opens the topology that a manifest names. A file of
// edges must be a regular one: to read another might wait for ever. Fails like
// lac_topology_open.
lac_status cli_network_recorded(
    const char *spec, uint32_t workers, uint64_t seed, lac_topology **out);

// cli_network_print prints a blank line and a network as text: a row of the
// matrix per worker, with the list of neighbours if there is room. It prints
// nothing if the network is too large for a screen.
void cli_network_print(const lac_topology *t, FILE *stream);

// cli_network_spectrum is lac_topology_spectrum without threads of OpenBLAS.
lac_status cli_network_spectrum(const lac_topology *t, lac_spectrum *out);

// cli_network_matrix writes the mixing matrix, or the product of those of a
// period, to w[0..workers^2).
// Fails with LAC_ERR_NOMEM.
lac_status cli_network_matrix(const lac_topology *t, double *w);

// cli_network_write writes that matrix as a .npy file of float64.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM, leaving nothing behind.
lac_status cli_network_write(const lac_topology *t, const char *path);

#endif
