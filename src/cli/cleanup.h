// SPDX-License-Identifier: MIT
// A file that is taken away if a signal ends the program.
#ifndef LACONIC_CLI_CLEANUP_H
#define LACONIC_CLI_CLEANUP_H

// cli_cleanup_begin has `path` removed when SIGINT, SIGTERM or SIGHUP ends the
// program, which it then does as if nothing had caught the signal. A signal
// that is ignored stays so. `path` must live until cli_cleanup_end. There is
// one such file at a time.
void cli_cleanup_begin(const char *path);

// cli_cleanup_end forgets the file and puts back what was done on a signal.
void cli_cleanup_end(void);

// cli_cleanup_hold keeps these signals back while a file is made that
// cli_cleanup_begin is to know of; cli_cleanup_release lets them come.
void cli_cleanup_hold(void);
void cli_cleanup_release(void);

#endif
