// SPDX-License-Identifier: MIT
// Checkpoints: a set of files, one a worker, all of the same step.
//
//     DIR/step-1200/worker-0.safetensors, worker-1.safetensors, ...
//     DIR/latest                          the text "step-1200"
//
// Every worker writes and flushes its file; when all have, one of them makes
// the set the latest by one rename. So a set is complete or is not there,
// whatever ends the run, and a set that was begun is written over or removed.
#ifndef LACONIC_TRAIN_CHECKPOINT_H
#define LACONIC_TRAIN_CHECKPOINT_H

#include <stdint.h>

#include <laconic/laconic.h>

#include "train/safetensors.h"

// Which file of which set.
typedef struct train_place {
    const char *folder; // DIR
    uint64_t step;
    uint32_t rank, world;
} train_place;

// train_checkpoint_write writes and flushes the file of one worker, making the
// folder of its set if it is not there.
// Fails with LAC_ERR_INVALID, leaving the latest set as it was.
lac_status train_checkpoint_write(
    const train_place *place, const train_record *record);

// train_checkpoint_look tells whether the files of all workers of a set can be
// seen from here. Fails with LAC_ERR_INVALID, naming the first that cannot.
lac_status train_checkpoint_look(
    const char *folder, uint64_t step, uint32_t world);

// train_checkpoint_commit makes the set of this step the latest, after all
// workers have written; sets older than the one before it are removed. One
// worker calls it. Fails with LAC_ERR_INVALID, leaving the latest as it was.
lac_status train_checkpoint_commit(const char *folder, uint64_t step);

// train_checkpoint_discard removes a set that was not completed.
void train_checkpoint_discard(const char *folder, uint64_t step);

// train_checkpoint_latest tells the step of the latest set.
// Fails with LAC_ERR_NOTFOUND if there is none, LAC_ERR_CORRUPT or
// LAC_ERR_INVALID.
lac_status train_checkpoint_latest(const char *folder, uint64_t *step_out);

// train_checkpoint_read fills the tensors and numbers of `record` from the file
// of one worker. The file must have the same number of workers, and exactly
// these tensors with these shapes.
// Fails with LAC_ERR_INVALID (the sentence says what differs) or
// LAC_ERR_CORRUPT, having written nothing.
lac_status train_checkpoint_read(
    const train_place *place, const train_record *record);

#endif
