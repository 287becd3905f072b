// SPDX-License-Identifier: MIT
// Manual pages, in mdoc, from the tables that --help prints.
#ifndef LACONIC_CLI_MANUAL_PAGE_H
#define LACONIC_CLI_MANUAL_PAGE_H

#include <stdio.h>
#include <time.h>

#include "cli/options/command.h"

// manual_command writes laconic-NAME(1), the page of a command.
// Fails with LAC_ERR_NOMEM.
lac_status manual_command(FILE *f, const cli_command *command, time_t date);

// manual_program writes laconic(1).
void manual_program(FILE *f, time_t date);

#endif
