// SPDX-License-Identifier: MIT
// Other programs, started without a shell.
#ifndef LACONIC_CLI_DATA_SPAWN_H
#define LACONIC_CLI_DATA_SPAWN_H

#include <laconic/laconic.h>

// cli_spawn runs words[0], found on the PATH, with these words (NULL after the
// last), waits for it and has what it prints written to the file `log`. If a
// signal asks this program to end meanwhile, the other one gets it too.
// Fails with LAC_ERR_UNSUPPORTED if there is no such program and with
// LAC_ERR_INVALID if it does not succeed; the sentence then has the last line
// that it printed.
lac_status cli_spawn(const char *const *words, const char *log);

// cli_spawn_guard keeps SIGINT, SIGTERM and SIGHUP from ending this program, so
// that it can tidy up: cli_spawn fails instead, then and from then on.
// cli_spawn_unguard puts things back and lets a signal that came do its work.
void cli_spawn_guard(void);
void cli_spawn_unguard(void);

#endif
