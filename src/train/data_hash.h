// SPDX-License-Identifier: MIT
// A hash of a data set, by which workers on different machines find out whether
// they have the same one.
#ifndef LACONIC_TRAIN_DATA_HASH_H
#define LACONIC_TRAIN_DATA_HASH_H

#include <stdint.h>

#include "data/dataset.h"

// train_data_hash writes the XXH3 of everything that a run reads from a set:
// its shape, examples, labels, words and the order of its documents. Files that
// contain the same data in another form have the same hash.
// Fails with LAC_ERR_NOMEM.
lac_status train_data_hash(const data_set *set, uint64_t *hash_out);

#endif
