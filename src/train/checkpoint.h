// SPDX-License-Identifier: MIT
// Checkpoints: a set of files, one per worker, all of the same step.
//
//     DIR/step-1200/worker-0.safetensors, worker-1.safetensors, ...
//     DIR/latest                          the text "step-1200"
//
// Every worker writes and flushes its file. When all have, one of them makes
// the set the latest by one rename. So the latest set is always complete,
// however the run ends; an incomplete set is overwritten or removed.
#ifndef LACONIC_TRAIN_CHECKPOINT_H
#define LACONIC_TRAIN_CHECKPOINT_H

#include <stdint.h>

#include <laconic/laconic.h>

#include "train/safetensors.h"

// The file of one worker in one set.
typedef struct train_place {
    const char *folder; // DIR
    uint64_t step;
    uint32_t rank, world;
} train_place;

// train_checkpoint_explain returns `status`, that of an attempt to write to the
// folder of the run. If it is a failure and the folder does not exist, it fails
// with LAC_ERR_INVALID and a message that names the folder instead. A run never
// makes its folder again: without its manifest it could not be resumed.
lac_status train_checkpoint_explain(const char *folder, lac_status status);

// train_checkpoint_write writes and flushes the file of one worker. It makes
// the folder of the set, but not DIR.
// Fails with LAC_ERR_INVALID, leaving the latest set as it was.
lac_status train_checkpoint_write(
    const train_place *place, const train_record *record);

// train_checkpoint_check_files checks that this machine can see the files of
// all workers. Fails with LAC_ERR_INVALID, naming the first that is missing.
lac_status train_checkpoint_check_files(
    const char *folder, uint64_t step, uint32_t world);

// train_checkpoint_commit makes the set of this step the latest, after all
// workers have written their files, and removes all sets except this one and
// the previous one. One worker calls it.
// Fails with LAC_ERR_INVALID, leaving the latest set as it was.
lac_status train_checkpoint_commit(const char *folder, uint64_t step);

// train_checkpoint_discard removes an incomplete set.
void train_checkpoint_discard(const char *folder, uint64_t step);

// train_checkpoint_latest writes the step of the latest set to `*step_out`.
// Fails with LAC_ERR_NOTFOUND if there is none, LAC_ERR_CORRUPT or
// LAC_ERR_INVALID.
lac_status train_checkpoint_latest(const char *folder, uint64_t *step_out);

// train_checkpoint_read fills the tensors and numbers of `record` from the file
// of one worker. The file must be from a run with the same number of workers
// and contain exactly these tensors with these shapes.
// Fails with LAC_ERR_INVALID (the message names the difference) or
// LAC_ERR_CORRUPT, having written nothing.
lac_status train_checkpoint_read(
    const train_place *place, const train_record *record);

#endif
