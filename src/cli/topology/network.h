// SPDX-License-Identifier: MIT
// Networks of workers, drawn and written.
#ifndef LACONIC_CLI_TOPOLOGY_NETWORK_H
#define LACONIC_CLI_TOPOLOGY_NETWORK_H

#include <stdio.h>

#include <laconic/laconic.h>

#include "data/output.h"

// cli_network_print draws a network after a blank line: a row of the matrix a
// worker, with the neighbours beside it if there is room. One that is too
// large to look at is left out.
void cli_network_print(const lac_topology *t, FILE *stream);

// cli_network_write writes the mixing matrix, the product over a period, as a
// .npy file of float64.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM, leaving nothing behind.
lac_status cli_network_write(const lac_topology *t, const char *path);

#endif
