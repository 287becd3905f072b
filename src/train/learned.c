// SPDX-License-Identifier: MIT
// Comparison with guessing.
#include "train/learned.h"

#include <math.h>
#include <stdlib.h>

// The share of the most frequent class in the test set. NaN if there is none,
// or no memory to count.
static double largest_share(const data_set *set)
{
    const data_info *const info = data_set_info(set);
    const uint32_t *const labels = data_set_labels(set, DATA_TEST);
    const size_t count = info->count[DATA_TEST];
    size_t *const counts = calloc((size_t)info->classes + 1, sizeof(*counts));
    size_t most = 0;
    for (size_t i = 0; labels != NULL && counts != NULL && i < count; i++) {
        const size_t seen = ++counts[labels[i]];
        most = seen > most ? seen : most;
    }
    free(counts);
    return most == 0 ? (double)NAN : (double)most / (double)count;
}

train_chance train_chance_of(const data_set *set)
{
    const data_info *const info = data_set_info(set);
    const double share =
        info->kind == DATA_TEXT ? (double)NAN : largest_share(set);
    const double luck =
        3 * sqrt(share * (1 - share) / (double)info->count[DATA_TEST]);
    return (train_chance){
        .loss = log(info->classes),
        .accuracy = share + luck < 1 ? share + luck : (double)NAN,
    };
}

bool train_has_learned(const train_metrics *m, const train_chance *chance)
{
    const bool guesses = m->test_accuracy <= chance->accuracy; // not with NaN
    return m->train_loss < chance->loss && !guesses;
}
