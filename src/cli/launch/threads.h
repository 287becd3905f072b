// SPDX-License-Identifier: MIT
// Workers as threads of this process.
#ifndef LACONIC_CLI_LAUNCH_THREADS_H
#define LACONIC_CLI_LAUNCH_THREADS_H

#include "cli/launch/launch.h"

// cli_run_threads runs `world` workers over the local transport `spec` and
// waits for all of them; it does not call `prepare`.
// Fails with the status and message of the worker that failed first, or with
// LAC_ERR_NOMEM if a thread cannot be created; no worker has then started.
lac_status cli_run_threads(
    const cli_workers *workers, void *context, const char *spec,
    uint32_t world);

#endif
