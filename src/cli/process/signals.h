// SPDX-License-Identifier: MIT
// Signals as bytes of a pipe, so that one poll waits for them and for
// everything else.
#ifndef LACONIC_CLI_PROCESS_SIGNALS_H
#define LACONIC_CLI_PROCESS_SIGNALS_H

// cli_signals_open catches SIGCHLD, SIGINT, SIGTERM and SIGHUP (unless they are
// ignored), and ignores SIGPIPE. Returns the end of the pipe to poll, or -1. A
// process opens it once; a forked one may open its own.
int cli_signals_open(void);

// cli_signals_next returns the next signal that came, or 0 if none is left.
int cli_signals_next(void);

// cli_signals_restore restores the handlers of before, for a program that is
// about to start.
void cli_signals_restore(void);

#endif
