// SPDX-License-Identifier: MIT
// The list of --seeds.
#ifndef LACONIC_CLI_TRAIN_SEEDS_H
#define LACONIC_CLI_TRAIN_SEEDS_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

enum { CLI_SEEDS_MAX = 1000 };

// cli_seeds_parse reads numbers separated by commas, each at most once.
// Fails with LAC_ERR_INVALID.
lac_status cli_seeds_parse(
    const char *text, uint64_t out[CLI_SEEDS_MAX], size_t *count_out);

#endif
