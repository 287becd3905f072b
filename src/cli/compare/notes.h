// SPDX-License-Identifier: MIT
// What compared runs share, and where they are hard to compare, in words.
#ifndef LACONIC_CLI_COMPARE_NOTES_H
#define LACONIC_CLI_COMPARE_NOTES_H

#include "cli/compare/runs.h"

// compare_has_quality returns whether a run has the accuracy of images or, with
// `text`, the perplexity of a text.
bool compare_has_quality(const compare_runs *c, bool text);

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
