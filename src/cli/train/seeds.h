// SPDX-License-Identifier: MIT
// The list of --seeds, and the runs of seeds in a folder.
#ifndef LACONIC_CLI_TRAIN_SEEDS_H
#define LACONIC_CLI_TRAIN_SEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

#include "data/dataset.h"

enum {
    CLI_SEEDS_MAX = 1000,
    CLI_SEEDS_SIZE = CLI_SEEDS_MAX * 21 + 1, // of their text
};

// cli_seeds_parse reads numbers separated by commas, each at most once.
// Fails with LAC_ERR_INVALID.
lac_status cli_seeds_parse(
    const char *text, uint64_t out[CLI_SEEDS_MAX], size_t *count_out);

// cli_seeds_text writes such a list.
void cli_seeds_text(
    const uint64_t *seeds, size_t count, char text[CLI_SEEDS_SIZE]);

// cli_seeds_folder writes the path of the run of a seed, DIR/seed-N.
// Fails with LAC_ERR_INVALID if it is too long.
lac_status cli_seeds_folder(
    const char *folder, uint64_t seed, char path[DATA_PATH_SIZE]);

// cli_seeds_is_name returns whether a folder has the name of a seed: seed-N.
bool cli_seeds_is_name(const char *name);

// cli_seeds_next finds the least seed from `least` on that a folder has a run
// of, and returns whether there is one.
bool cli_seeds_next(const char *folder, uint64_t least, uint64_t *out);

// cli_seeds_manifest writes the path of the first manifest of a run of a seed,
// and returns whether there is one.
bool cli_seeds_manifest(const char *folder, char path[DATA_PATH_SIZE]);

// cli_seeds_find lists the seeds that a folder has runs of, and before them
// those that its first manifest names: the last of these may not have begun.
// Fails like cli_seeds_parse.
lac_status cli_seeds_find(
    const char *folder, uint64_t out[CLI_SEEDS_MAX], size_t *count_out);

#endif
