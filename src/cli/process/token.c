// SPDX-License-Identifier: MIT
// The token of a job, in a file that is only in memory and has no name: it goes
// with its process, whatever ends that. Its path is the descriptor in /proc, so
// that programs can open it too that were started without it.
#define _GNU_SOURCE // getentropy, memfd_create
#include "cli/process/token.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOKEN_MODE = 0600 };

lac_status cli_token_make(uint8_t token_out[CLI_TOKEN_SIZE])
{
    if (getentropy(token_out, CLI_TOKEN_SIZE) != 0) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED, "launch: no random bytes for a token: %s",
            strerror(errno));
    }
    return LAC_OK;
}

static bool token_write(int file, const uint8_t token[CLI_TOKEN_SIZE])
{
    return file >= 0 && fchmod(file, TOKEN_MODE) == 0 &&
           write(file, token, CLI_TOKEN_SIZE) == CLI_TOKEN_SIZE;
}

static bool is_same(int file, const char *path)
{
    struct stat own, named;
    return fstat(file, &own) == 0 && stat(path, &named) == 0 &&
           own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

lac_status cli_token_open(
    const uint8_t token[CLI_TOKEN_SIZE], char path_out[CLI_TOKEN_PATH_SIZE],
    int *file_out)
{
    lac_status status = LAC_OK;
    const int file = memfd_create("laconic-token", MFD_CLOEXEC);
    (void)snprintf(
        path_out, CLI_TOKEN_PATH_SIZE, "/proc/%ld/fd/%d", (long)getpid(), file);
    if (!token_write(file, token)) {
        status = lac_fail(
            LAC_ERR_INVALID, "launch: no memory file for the token: %s",
            strerror(errno));
    } else if (!is_same(file, path_out)) {
        status = lac_fail(
            LAC_ERR_INVALID,
            "launch: the token cannot be opened as %s, expected /proc to show "
            "this process",
            path_out);
    }
    if (status != LAC_OK && file >= 0) {
        (void)close(file);
    }
    *file_out = status == LAC_OK ? file : -1;
    return status;
}
