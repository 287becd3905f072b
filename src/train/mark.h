// SPDX-License-Identifier: MIT
// Which workers share a folder.
//
// Every worker creates a file in its folder, its mark. When all have, the marks
// that a worker sees in its folder are those of the workers it shares it with:
//
//     train_mark_create(&mark, folder, start, rank);
//     ... wait for all workers ...
//     train_mark_first(&mark, &first);   // the lowest rank in this folder
//     ... wait for all workers ...
//     train_mark_remove(&mark);
//
// Paths do not show that: on two machines a path may lead to different disks,
// and one disk may have two paths. Device and inode do not either: different
// disks can have the same numbers, and a network disk has different ones.
#ifndef LACONIC_TRAIN_MARK_H
#define LACONIC_TRAIN_MARK_H

#include <stdint.h>

#include <laconic/laconic.h>

#include "data/dataset.h"

// The members are private; all zero: no mark.
typedef struct train_mark {
    const char *folder; // borrowed
    uint32_t start, rank;
    int lock; // the open file
    char path[DATA_PATH_SIZE];
} train_mark;

// train_mark_create makes the folder if needed and creates the mark of a worker
// in it. `start` is a random number that all workers of a run have in common,
// so that marks of other runs do not count. The name of a mark is that of a
// temporary file (data/output.h): what a killed process leaves is removed.
// Fails with LAC_ERR_INVALID.
lac_status train_mark_create(
    train_mark *m, const char *folder, uint32_t start, uint32_t rank);

// train_mark_first writes the lowest rank that has a mark in the folder.
// Fails with LAC_ERR_INVALID, also if the own mark is not there.
lac_status train_mark_first(const train_mark *m, uint32_t *rank_out);

// train_mark_remove removes the mark, if there is one.
void train_mark_remove(train_mark *m);

// train_random_number returns a number that no other process has.
uint64_t train_random_number(void);

#endif
