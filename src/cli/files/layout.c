// SPDX-License-Identifier: MIT
// Layouts of models and of files.
#include "cli/files/layout.h"

#include <stdio.h>
#include <string.h>

#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "data/file.h"
#include "nn/layouts.h"

// Replaces the prefix of a message about a layout by the name of the file.
static lac_status name_file(lac_status status, const char *path)
{
    static const char prefix[] = "layout: ";
    char message[256];
    (void)snprintf(message, sizeof(message), "%s", lac_error_message());
    const size_t skip = strncmp(message, prefix, sizeof(prefix) - 1) == 0
                            ? sizeof(prefix) - 1
                            : 0;
    return lac_fail(status, "%s: %s", path, message + skip);
}

lac_status cli_layout_read(const char *path, lac_layout **out)
{
    data_bytes file;
    lac_layout *layout = NULL;
    LAC_TRY(data_file_read(path, &file));
    const lac_status status =
        lac_layout_parse(&layout, (const char *)file.data, file.len);
    data_bytes_free(&file);
    if (status != LAC_OK) {
        return name_file(status, path);
    }
    if (lac_layout_count(layout) == 0) {
        lac_layout_close(layout);
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: has no tensor, expected lines of name, rows and columns",
            path);
    }
    *out = layout;
    return LAC_OK;
}

int cli_layout_open(
    const char *command, const char *model, const char *file, lac_layout **out)
{
    *out = NULL;
    if ((*model == '\0') == (*file == '\0')) {
        (void)!lac_fail(
            LAC_ERR_INVALID,
            "%s: %s of --model and --layout given, expected one", command,
            *model == '\0' ? "neither" : "both");
        return cli_misused(command);
    }
    if (*file != '\0') {
        return cli_layout_read(file, out) == LAC_OK ? CLI_GOOD : cli_failed();
    }
    const lac_status status = nn_layout_open(out, model);
    if (status == LAC_OK) {
        return CLI_GOOD;
    }
    return status == LAC_ERR_NOMEM ? cli_failed()
                                   : cli_bad_spec(command, "models", model);
}
