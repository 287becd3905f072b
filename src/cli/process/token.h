// SPDX-License-Identifier: MIT
// The token of a job: made once, and kept in memory beside every worker.
#ifndef LACONIC_CLI_PROCESS_TOKEN_H
#define LACONIC_CLI_PROCESS_TOKEN_H

#include <stdint.h>

#include <laconic/laconic.h>

enum { CLI_TOKEN_SIZE = 32, CLI_TOKEN_PATH_SIZE = 64 };

// cli_token_make makes a new token. Fails with LAC_ERR_UNSUPPORTED.
lac_status cli_token_make(uint8_t token_out[CLI_TOKEN_SIZE]);

// cli_token_open makes a file with the token that has no name, and writes a
// path under which the processes of this user can open it as long as this
// process lives and has the file open. Fails with LAC_ERR_INVALID.
lac_status cli_token_open(
    const uint8_t token[CLI_TOKEN_SIZE], char path_out[CLI_TOKEN_PATH_SIZE],
    int *file_out);

#endif
