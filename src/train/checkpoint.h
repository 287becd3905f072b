// SPDX-License-Identifier: MIT
// Checkpoints: a set of files, one per worker, all of the same step.
//
//     DIR/step-1200/worker-0.safetensors, worker-1.safetensors, ...
//     DIR/latest                          the text "step-1200"
//
// Every worker writes and flushes its file, in its own DIR, which it may share
// with others. When all workers of the run have, one worker of each folder
// makes the set the latest there, by one rename. So whatever is the latest set
// of any folder is complete in all of them, however the run ends. An incomplete
// set is overwritten or removed.
#ifndef LACONIC_TRAIN_CHECKPOINT_H
#define LACONIC_TRAIN_CHECKPOINT_H

#include <stdint.h>

#include <laconic/laconic.h>

#include "train/safetensors.h"

// Sets that a list can have. A run keeps two; a third may be begun.
enum { TRAIN_SETS_MAX = 16 };

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

// train_checkpoint_commit makes the set of this step the latest, after all
// workers have written their files. It writes the step of the set to keep
// besides it to `*previous_out`; `step` if there is none. One worker of a
// folder calls it.
// Fails with LAC_ERR_INVALID, leaving the latest set as it was.
lac_status train_checkpoint_commit(
    const char *folder, uint64_t step, uint64_t *previous_out);

// train_checkpoint_prune removes all sets before `step` except `previous`. One
// worker of a folder calls it, after the sets were committed in all folders.
// Later sets stay: in gossip, workers may be some steps ahead of this one.
void train_checkpoint_prune(
    const char *folder, uint64_t step, uint64_t previous);

// train_checkpoint_rewind makes the set of this step the latest, if it is not,
// and then removes all except this one and the one before. So every later set
// will be of the run that continues from here. train_checkpoint_clear removes
// all sets of a folder if it has no latest: then none was committed. Fails with
// LAC_ERR_INVALID, having removed nothing.
lac_status train_checkpoint_rewind(const char *folder, uint64_t step);
void train_checkpoint_clear(const char *folder);

// train_checkpoint_discard removes an incomplete set.
void train_checkpoint_discard(const char *folder, uint64_t step);

// train_checkpoint_latest writes the step of the latest set to `*step_out`.
// Fails with LAC_ERR_NOTFOUND if there is none, LAC_ERR_CORRUPT or
// LAC_ERR_INVALID.
lac_status train_checkpoint_latest(const char *folder, uint64_t *step_out);

// train_checkpoint_list writes the steps of the sets in which the worker of
// `place` has a file to steps_out[0..TRAIN_SETS_MAX), the newest first, and
// returns their number. It omits the oldest if there are more.
uint32_t train_checkpoint_list(const train_place *place, uint64_t *steps_out);

// train_checkpoint_read fills the tensors and numbers of `record` from the file
// of one worker. The file must be from a run with the same number of workers
// and contain exactly these tensors with these shapes.
// Fails with LAC_ERR_INVALID (the message names the difference) or
// LAC_ERR_CORRUPT, having written nothing.
lac_status train_checkpoint_read(
    const train_place *place, const train_record *record);

#endif
