// SPDX-License-Identifier: MIT
// What compared runs share, and where they are hard to compare, in words.
#ifndef LACONIC_CLI_COMPARE_NOTES_H
#define LACONIC_CLI_COMPARE_NOTES_H

#include "cli/compare/runs.h"

// compare_is_text returns whether the runs of a group have the perplexity of a
// text, instead of an accuracy.
bool compare_is_text(const compare_runs *c);

// compare_epochs and compare_steps return the least and the most that a run has
// done.
typedef struct compare_range {
    double least, most;
} compare_range;
compare_range compare_epochs(const compare_runs *c);
compare_range compare_steps(const compare_runs *c);

// compare_title writes what the runs share: "lenet on mnist, 4 workers, ring".
// Control characters become ?.
enum { COMPARE_TITLE_SIZE = 512 };
const char *compare_title(const compare_runs *c, char text[COMPARE_TITLE_SIZE]);

// compare_notes calls `put` for every note about the table.
typedef void compare_put(void *context, const char *note);
void compare_notes(const compare_runs *c, compare_put *put, void *context);

#endif
