// SPDX-License-Identifier: MIT
// The split of the training examples between the workers.
//
//     shuffle          all examples are shuffled and split anew every epoch
//     fixed            split once; a worker shuffles its own every epoch
//     sorted           as fixed, but split in the order of their labels
//     dirichlet:ALPHA  as fixed, but the workers' shares of each label are
//                      drawn from Dirichlet(ALPHA)
//     dirichlet:ALPHA,balanced
//                      the same shares are preferences: the workers take turns,
//                      one example each, of a label drawn in proportion to
//                      share times size of the label, among those that have
//                      examples left (data/balance.c)
//
// In every epoch each example belongs to exactly one worker. All rules give the
// workers the same number, to within one, except dirichlet:ALPHA, which gives
// each at least one. The split is a function of the seed, the epoch and the
// number of workers, so that each worker derives its list alone, also after a
// resume.
#ifndef LACONIC_DATA_SPLIT_H
#define LACONIC_DATA_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

typedef enum data_split_kind {
    DATA_SPLIT_SHUFFLE,
    DATA_SPLIT_FIXED,
    DATA_SPLIT_SORTED,
    DATA_SPLIT_DIRICHLET,
} data_split_kind;

typedef struct data_split_rule {
    data_split_kind kind;
    double alpha;  // of dirichlet
    bool balanced; // likewise
} data_split_rule;

// data_split_parse parses a rule as the user writes it.
// Fails with LAC_ERR_INVALID.
lac_status data_split_parse(const char *text, data_split_rule *out);

typedef struct data_split_options {
    data_split_rule rule;
    size_t count;           // examples, at least as many as workers
    const uint32_t *labels; // of the examples, borrowed for the call; may be
                            // NULL for shuffle and fixed
    uint32_t workers;
    uint64_t seed;
} data_split_options;

typedef struct data_split data_split;

// data_split_open splits the examples.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM; `*out` is then NULL.
lac_status data_split_open(data_split **out, const data_split_options *options);

void data_split_close(data_split *split);

// data_split_size returns the number of examples of a worker in an epoch.
size_t data_split_size(const data_split *split, uint32_t worker);

// data_split_epoch writes the examples of a worker in an epoch, in training
// order, to index_out. That has room for `count` numbers; the entries after the
// worker's own are scratch.
void data_split_epoch(
    const data_split *split, uint64_t epoch, uint32_t worker,
    uint32_t *index_out);

// data_shuffle_test writes the numbers below n in the order in which a test set
// of n examples is evaluated. It is the same in every run, so that the first
// examples are the same sample of the set.
void data_shuffle_test(uint32_t *index_out, size_t n);

#endif
