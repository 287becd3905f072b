// SPDX-License-Identifier: MIT
// Rounds of fragments between local steps: the tensors of one fragment at a
// time, in turn. Without a delay a fragment is mixed after its step. With one,
// its round begins after that step and ends some steps later.
#ifndef LACONIC_TRAIN_STREAM_H
#define LACONIC_TRAIN_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

typedef struct train_stream {
    lac_algorithm *algorithm;
    uint32_t fragments;
    size_t *first;     // slice of each fragment, and the number of slices
    lac_slice *slices; // of all tensors, in the order of their fragments
    const lac_layout *layout;
    float *copies;     // of the values of all tensors, if there is room
    lac_slice *copied; // of the copies of a fragment
} train_stream;

// train_stream_open divides the tensors of the slices, those of the layout, as
// the algorithm of the options suggests. The algorithm is open with these
// options; it and the layout must outlive the stream. With `copies` it has room
// for train_stream_copy. Fails with LAC_ERR_NOMEM; `*out` is then NULL. NULL
// may be closed.
lac_status train_stream_open(
    train_stream **out, const lac_algorithm_options *options,
    lac_algorithm *algorithm, const lac_slice *slices, bool copies);
void train_stream_close(train_stream *s);

// train_stream_begun returns whether the round of a fragment was begun.
bool train_stream_begun(const train_stream *s, uint32_t fragment);

// train_stream_copy copies the values of a fragment, so that begin reads the
// copies and the values may change meanwhile.
void train_stream_copy(train_stream *s, uint32_t fragment);

// The parts of a round of a fragment. They fail like those of the algorithm.
// train_stream_begin_copied begins with the copies.
lac_status train_stream_begin(train_stream *s, uint32_t fragment);
lac_status train_stream_begin_copied(train_stream *s, uint32_t fragment);
lac_status train_stream_end(train_stream *s, uint32_t fragment);
lac_status train_stream_mix(train_stream *s, uint32_t fragment);

#endif
