// SPDX-License-Identifier: MIT
// The algorithms that `laconic plan` compares, each with usual compressors.
#ifndef LACONIC_CLI_PLAN_CANDIDATES_H
#define LACONIC_CLI_PLAN_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>

// One choice of a user. The texts are constants.
typedef struct plan_choice {
    const char *algorithm;  // a spec
    const char *compressor; // a spec, or NULL
    bool unknown; // an algorithm without an entry in the table: if it needs a
                  // compressor, `compressor` is added
} plan_choice;

enum { PLAN_CHOICES_MAX = 64 };

// plan_choices writes the choices in the order of the registry of algorithms,
// allreduce first, and returns their number. An algorithm that is not known
// here is one choice, with its defaults.
size_t plan_choices(plan_choice out[PLAN_CHOICES_MAX]);

#endif
