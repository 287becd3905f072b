// SPDX-License-Identifier: MIT
// After which steps of the optimiser the workers mix their models.
//
//     16          after every 16 steps
//     1:16@150    after every step, and from epoch 150 on after every 16:
//                 post-local SGD (Lin et al., arXiv:1808.07217)
//
// Steps are counted over the whole run, not within an epoch.
//
// An algorithm may divide the tensors into fragments, which have their rounds
// in turn, each in every 16th step here, and may end a round some steps after
// it began.
#ifndef LACONIC_TRAIN_LOCAL_STEPS_H
#define LACONIC_TRAIN_LOCAL_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include <laconic/laconic.h>

typedef struct train_local_steps {
    uint64_t first; // steps from one round to the next; 0 is 1
    uint64_t later; // from the epoch `from` on; as `first` if it is 0
    uint64_t from;
    uint32_t fragments; // of the tensors; 0 is 1
    uint32_t delay;     // steps from the exchange of a round to its end
} train_local_steps;

// train_local_steps_parse reads them as the user writes them.
// Fails with LAC_ERR_INVALID.
lac_status train_local_steps_parse(const char *text, train_local_steps *out);

// train_local_steps_stream sets the fragments and the delay of an algorithm.
// Fails with LAC_ERR_INVALID where rounds would not be whole steps apart, or
// would not end before the next begins.
lac_status train_local_steps_stream(
    train_local_steps *l, uint32_t fragments, uint32_t delay);

// train_local_steps_streams returns whether there are fragments or a delay.
bool train_local_steps_streams(const train_local_steps *l);

// train_local_steps_at returns the number of steps from one round of a tensor
// to the next at step `step`, counted from 0.
uint64_t train_local_steps_at(
    const train_local_steps *l, uint64_t step, uint64_t epoch_steps);

// train_local_steps_mix returns whether the workers mix in this step, and
// train_local_steps_fragment which fragment then.
bool train_local_steps_mix(
    const train_local_steps *l, uint64_t step, uint64_t epoch_steps);

uint32_t train_local_steps_fragment(
    const train_local_steps *l, uint64_t step, uint64_t epoch_steps);

// train_local_steps_rounds returns the rounds of a fragment in a run of `steps`
// steps, with the one that ends a run in whose last step it has none.
uint64_t train_local_steps_rounds(
    const train_local_steps *l, uint32_t fragment, uint64_t steps,
    uint64_t epoch_steps);

// train_local_steps_any returns whether some step has no round.
bool train_local_steps_any(const train_local_steps *l);

#endif
