// SPDX-License-Identifier: MIT
// The algorithms that `laconic plan` compares, each with usual compressors.
#ifndef LACONIC_CLI_PLAN_CANDIDATES_H
#define LACONIC_CLI_PLAN_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One choice of a user. The texts are constants, or must outlive it.
typedef struct plan_choice {
    const char *algorithm;  // a spec
    const char *compressor; // a spec, or NULL
    bool unknown; // an algorithm without an entry in the table: if it needs a
                  // compressor, `compressor` is added
} plan_choice;

enum { PLAN_CHOICES_MAX = 64, PLAN_STREAMING_SIZE = 96 };

// plan_choices writes the choices in the order of the registry of algorithms,
// allreduce first, and returns their number. An algorithm that is not known
// here is one choice, with its defaults.
size_t plan_choices(plan_choice out[PLAN_CHOICES_MAX]);

// plan_streaming writes the spec of outer with `settings`, which are empty or
// end with a comma, and with the most fragments, up to four, and a delay, up to
// five steps, that fit a round every `local_steps` steps: fragments divide it,
// and the delay is less than the steps from one fragment to the next. Returns
// whether there is one: a round in every step leaves none to hide it behind.
bool plan_streaming(
    uint64_t local_steps, const char *settings, char out[PLAN_STREAMING_SIZE]);

#endif
