// SPDX-License-Identifier: MIT
// How many values sparsifiers keep, and the parts that random-k and
// random-block share.
//
// A random choice is a function of a nonce of 64 bits, the low half of the key.
// A receiver that can derive the key derives the choice; otherwise the choice
// is sent.
#ifndef LACONIC_COMPRESS_CHOICE_H
#define LACONIC_COMPRESS_CHOICE_H

#include <laconic/compress.h>

#include "base/draw.h"

typedef struct laci_choice {
    double ratio;
    uint32_t rank;
} laci_choice;

// The settings of a random choice, and its ops keep and guarantee.
extern const lac_param laci_choice_params[];
size_t laci_choice_keep(const void *state, lac_shape shape);
lac_guarantee laci_choice_guarantee(
    const void *state, lac_shape shape, lac_form form);

// laci_choice_stream returns the draws of a choice.
laci_stream laci_choice_stream(uint64_t nonce);

// laci_choice_is_sent returns whether the payload holds the choice: not if the
// receiver can derive the key, nor if all values are kept.
bool laci_choice_is_sent(
    const void *state, lac_shape shape, lac_scope_kind scope);

// laci_keep_ratio returns how many of n values a ratio in (0, 1] keeps: at
// least one, and all only for the ratio 1.
size_t laci_keep_ratio(double ratio, size_t n);

#endif
