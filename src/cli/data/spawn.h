// SPDX-License-Identifier: MIT
// Runs other programs without a shell.
#ifndef LACONIC_CLI_DATA_SPAWN_H
#define LACONIC_CLI_DATA_SPAWN_H

#include <laconic/laconic.h>

// cli_spawn runs words[0], found on the PATH, with the arguments words[1..]
// (NULL after the last), waits for it, and writes its output to the file `log`.
// A signal that ends this program ends the other one too. Fails with
// LAC_ERR_UNSUPPORTED if the program cannot be started and with LAC_ERR_INVALID
// if it fails; the message then has the last line of its output.
lac_status cli_spawn(const char *const *words, const char *log);

// cli_spawn_guard keeps SIGINT, SIGTERM and SIGHUP from ending this program, so
// that it can clean up: after such a signal, cli_spawn fails.
// cli_spawn_unguard restores the old handlers and raises the signal again.
void cli_spawn_guard(void);
void cli_spawn_unguard(void);

#endif
