// SPDX-License-Identifier: MIT
// Long texts on a terminal, in a pager.
#ifndef LACONIC_CLI_REPORT_PAGER_H
#define LACONIC_CLI_REPORT_PAGER_H

// The environment variables that name the pager, the first one first. An empty
// text and "cat" are no pager.
#define CLI_PAGER_VARIABLE  "LACONIC_PAGER"
#define CLI_PAGERS_VARIABLE "PAGER"

// The word of a command line that turns the pager off.
#define CLI_NO_PAGER "--no-pager"

// cli_pager_disable makes cli_paged print as if stdout were a file.
void cli_pager_disable(void);

// cli_paged calls print(context), which prints on stdout. If that is a terminal
// the text is shown by the pager: that of the environment, else less, which
// ends at once if the text fits. Without a pager that can be started the text
// is printed. It returns when the pager has ended, however it ends.
void cli_paged(void (*print)(const void *context), const void *context);

#endif
