// SPDX-License-Identifier: MIT
// The port where the workers of a job find each other.
#ifndef LACONIC_CLI_PROCESS_PORT_H
#define LACONIC_CLI_PROCESS_PORT_H

#include <stdint.h>

#include <laconic/laconic.h>

// cli_port_reserve chooses MASTER_PORT for a job on this machine. Worker 0
// listens on the port after it, which stays reserved for it as long as the file
// descriptor `*reservation_out` is open. `*port_inout` is 0 for any port that
// is free. Fails with LAC_ERR_INVALID.
lac_status cli_port_reserve(uint16_t *port_inout, int *reservation_out);

// cli_port_guess returns a MASTER_PORT for another machine: below the ports
// that systems give to outgoing connections, and another one every time.
uint16_t cli_port_guess(void);

#endif
