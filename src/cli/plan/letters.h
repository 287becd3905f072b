// SPDX-License-Identifier: MIT
// Letters in the regions of a map, for a picture. A region is a set of cells
// side by side with the same mark.
#ifndef LACONIC_CLI_PLAN_LETTERS_H
#define LACONIC_CLI_PLAN_LETTERS_H

#include "cli/plan/map.h"

typedef struct plan_letter {
    char mark;
    size_t row, column;
} plan_letter;

// plan_map_letters writes a letter for each region with room for one: three
// cells side by side, not beside the mark of the user's network. It is as far
// from other regions as possible. The baseline has none. Returns how many there
// are.
enum { PLAN_LETTERS_MAX = PLAN_MAP_ROWS * PLAN_MAP_COLUMNS / 3 };
size_t plan_map_letters(
    const plan_map *m, plan_letter letters_out[PLAN_LETTERS_MAX]);

#endif
