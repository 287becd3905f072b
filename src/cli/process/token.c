// SPDX-License-Identifier: MIT
// The token of a job, in a private folder of TMPDIR or /tmp.
#include "cli/process/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOKEN_MODE = 0600 };

// A path in a spec must not have commas or parentheses.
static const char *temporary_folder(void)
{
    const char *const named = getenv("TMPDIR");
    const bool usable = named != NULL && named[0] == '/' &&
                        strpbrk(named, ",()") == NULL &&
                        strlen(named) < CLI_TOKEN_PATH_SIZE - 64;
    return usable ? named : "/tmp";
}

static lac_status token_failed(const char *path)
{
    return lac_fail(LAC_ERR_INVALID, "token %s: %s", path, strerror(errno));
}

static lac_status token_folder(char path_out[CLI_TOKEN_PATH_SIZE])
{
    char folder[CLI_TOKEN_PATH_SIZE];
    (void)snprintf(
        folder, sizeof(folder), "%s/laconic-XXXXXX", temporary_folder());
    if (mkdtemp(folder) == NULL) {
        return token_failed(folder);
    }
    (void)snprintf(
        path_out, CLI_TOKEN_PATH_SIZE, "%.*s/token", CLI_TOKEN_PATH_SIZE - 8,
        folder);
    return LAC_OK;
}

static lac_status token_read(const char *path, uint8_t out[CLI_TOKEN_SIZE])
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t len = file < 0 ? -1 : read(file, out, CLI_TOKEN_SIZE);
    const lac_status status =
        len == CLI_TOKEN_SIZE ? LAC_OK : token_failed(path);
    if (file >= 0) {
        (void)close(file);
    }
    return status;
}

lac_status cli_token_make(uint8_t token_out[CLI_TOKEN_SIZE])
{
    char path[CLI_TOKEN_PATH_SIZE];
    LAC_TRY(token_folder(path));
    lac_status status = lac_token_create(path);
    if (status == LAC_OK) {
        status = token_read(path, token_out);
    }
    cli_token_remove(path);
    return status;
}

lac_status cli_token_write(
    const uint8_t token[CLI_TOKEN_SIZE], char path_out[CLI_TOKEN_PATH_SIZE])
{
    LAC_TRY(token_folder(path_out));
    const int file =
        open(path_out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, TOKEN_MODE);
    const bool written =
        file >= 0 && write(file, token, CLI_TOKEN_SIZE) == CLI_TOKEN_SIZE;
    const lac_status status = written ? LAC_OK : token_failed(path_out);
    if (file >= 0) {
        (void)close(file);
    }
    if (!written) {
        cli_token_remove(path_out);
    }
    return status;
}

void cli_token_remove(const char *path)
{
    char folder[CLI_TOKEN_PATH_SIZE];
    const char *const slash = strrchr(path, '/');
    (void)unlink(path);
    (void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    (void)rmdir(folder);
}
