// SPDX-License-Identifier: MIT
// Folded tensors: algorithms that compress matrices may view a vector as one.
// The framework gives such an algorithm a layout in which the vector is a
// matrix, and copies of its values with zeros after the last one, so that the
// algorithm itself only sees matrices.
#ifndef LACONIC_ALGORITHM_FRAMEWORK_FOLD_H
#define LACONIC_ALGORITHM_FRAMEWORK_FOLD_H

#include "algorithm/framework/handle.h"

// laci_fold_open gives the worker a layout with the vectors that the algorithm
// folds as matrices. Fails with LAC_ERR_INVALID (too many values) or
// LAC_ERR_NOMEM.
LACI_CHECKED lac_status laci_fold_open(lac_algorithm *a);

// laci_fold_room returns the bytes of the copies of a call with all tensors.
size_t laci_fold_room(const lac_algorithm *a);

#endif
