// SPDX-License-Identifier: MIT
// The token of a job: made once, and written to a private folder beside every
// worker.
#ifndef LACONIC_CLI_PROCESS_TOKEN_H
#define LACONIC_CLI_PROCESS_TOKEN_H

#include <stdint.h>

#include <laconic/laconic.h>

enum { CLI_TOKEN_SIZE = 32, CLI_TOKEN_PATH_SIZE = 1024 };

// cli_token_make makes a new token. Nothing of it stays on the disk.
lac_status cli_token_make(uint8_t token_out[CLI_TOKEN_SIZE]);

// cli_token_write makes a folder that only this user can enter, and in it a
// file with the token, whose path it writes.
lac_status cli_token_write(
    const uint8_t token[CLI_TOKEN_SIZE], char path_out[CLI_TOKEN_PATH_SIZE]);

// cli_token_remove removes the file and its folder.
void cli_token_remove(const char *path);

#endif
