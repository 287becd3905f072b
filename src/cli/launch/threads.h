// SPDX-License-Identifier: MIT
// A crew as threads of this process.
#ifndef LACONIC_CLI_LAUNCH_THREADS_H
#define LACONIC_CLI_LAUNCH_THREADS_H

#include "cli/launch/launch.h"

// cli_crew_threads runs `world` workers over the local transport `spec` and
// waits for all of them. It fails with the status and the sentence of the
// worker that failed first, or with LAC_ERR_NOMEM when there is no room for so
// many threads; no worker has then begun.
lac_status cli_crew_threads(
    const cli_crew *crew, void *context, const char *spec, uint32_t world);

#endif
