// SPDX-License-Identifier: MIT
// Gives all workers the same number of examples, and each of them its own
// proportions of the labels as far as the examples last.
#ifndef LACONIC_DATA_BALANCE_H
#define LACONIC_DATA_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

typedef struct data_balance {
    uint32_t workers, classes;
    const uint32_t *index; // the examples, sorted by label
    const size_t *bounds;  // classes + 1: where each label begins in `index`
    const double *logs;    // classes x workers: the logarithm of how much of
                           // the label a worker prefers
    lac_key key;           // of the draws
} data_balance;

// data_balance_assign writes the worker of every example to owner_out. The
// sizes of the workers differ by one at most; the first ones are larger.
// Fails with LAC_ERR_NOMEM.
lac_status data_balance_assign(const data_balance *b, uint32_t *owner_out);

#endif
