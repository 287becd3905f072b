// SPDX-License-Identifier: MIT
// The argument DIR|FILE of commands that use a trained model.
#ifndef LACONIC_CLI_FILES_MODEL_H
#define LACONIC_CLI_FILES_MODEL_H

#include "train/model.h"

// cli_model_open is train_model_open with a message for files of other kinds,
// which names the folder of a run if the file is in one, as its manifest is.
lac_status cli_model_open(
    train_model *m, const char *path, uint32_t batch, uint32_t steps);

#endif
