// SPDX-License-Identifier: MIT
// Files of a run that have one JSON object per line, each with a `step`, in
// ascending order of their steps.
#ifndef LACONIC_TRAIN_LINES_H
#define LACONIC_TRAIN_LINES_H

#include <stdint.h>

#include <cjson/cJSON.h>

#include <laconic/laconic.h>

// train_lines_append adds the object as a line to folder/name, flushes the file
// and deletes the object, also after a failure.
// Fails with LAC_ERR_INVALID, or LAC_ERR_NOMEM, also if `object` is NULL.
lac_status train_lines_append(
    const char *folder, const char *name, cJSON *object);

// train_lines_cut removes every line after `step`, and a last line that was not
// written to its end. A missing file is not an error.
// Fails with LAC_ERR_CORRUPT if any other line is damaged (the message has its
// number), LAC_ERR_INVALID or LAC_ERR_NOMEM, leaving the file as it was.
lac_status train_lines_cut(const char *folder, const char *name, uint64_t step);

#endif
