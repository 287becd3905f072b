// SPDX-License-Identifier: MIT
// Asks oneDNN. All of these functions are the same in versions 2 and 3.
#include "cli/version/onednn.h"

#include <stdio.h>
#include <string.h>

#include <dnnl.h>
#include <dnnl_debug.h>

static void write_version(
    char text[CLI_ONEDNN_SIZE], int major, int minor, int patch)
{
    (void)snprintf(text, CLI_ONEDNN_SIZE, "%d.%d.%d", major, minor, patch);
}

void cli_onednn_version(char text[CLI_ONEDNN_SIZE])
{
    const dnnl_version_t *const v = dnnl_version();
    write_version(text, v->major, v->minor, v->patch);
}

void cli_onednn_headers(char text[CLI_ONEDNN_SIZE])
{
    write_version(
        text, DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH);
}

void cli_onednn_instructions(char text[CLI_ONEDNN_SIZE])
{
    static const char prefix[] = "cpu_isa_";
    const char *const name = dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa());
    const size_t len = strlen(prefix);
    (void)snprintf(
        text, CLI_ONEDNN_SIZE, "%s",
        strncmp(name, prefix, len) == 0 ? name + len : name);
}
