// SPDX-License-Identifier: MIT
// The workers take turns, one example each, until none is left. In its turn a
// worker draws a label with probabilities in proportion to its preferences
// among the labels that still have examples, and takes the next example of that
// label. So a label that several workers prefer is shared in turns, and who
// comes too late goes on with its next preference.
//
// Probabilities are computed from differences of logarithms: with a small alpha
// all preferences that a worker has left may be below the smallest double.
#include "data/balance.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/dirichlet.h"
#include "data/file.h"

// Computes the weights of a worker among the labels that have examples left;
// the largest is 1.
static void set_weights(
    const data_balance *b, const size_t *next, uint32_t w, double *weights)
{
    double max = -HUGE_VAL;
    for (size_t c = 0; c < b->classes; c++) {
        const double value = b->logs[c * b->workers + w];
        max = next[c] < b->bounds[c + 1] && value > max ? value : max;
    }
    for (size_t c = 0; c < b->classes; c++) {
        const double value = b->logs[c * b->workers + w];
        weights[c] = next[c] < b->bounds[c + 1] ? data_exp(value - max) : 0;
    }
}

static size_t draw_label(const double *weights, size_t classes, uint32_t draw)
{
    double sum = 0;
    for (size_t c = 0; c < classes; c++) {
        sum += weights[c];
    }
    const double point = ((double)draw + 0.5) * 0x1p-32 * sum;
    size_t chosen = 0;
    sum = 0;
    // The last label with a weight is chosen if rounding leaves none.
    for (size_t c = 0; c < classes && sum <= point; c++) {
        sum += weights[c];
        chosen = weights[c] > 0 ? c : chosen;
    }
    return chosen;
}

// `next` has the first example of each label that is not assigned yet.
static void take_turns(
    const data_balance *b, size_t *next, double *weights, uint32_t *owner)
{
    const size_t count = b->bounds[b->classes];
    assert(b->workers > 0);
    bool changed = true; // a label has no examples any more
    for (size_t turn = 0; turn < count; turn++) {
        for (uint32_t w = 0; changed && w < b->workers; w++) {
            set_weights(b, next, w, weights + (size_t)w * b->classes);
        }
        const uint32_t w = (uint32_t)(turn % b->workers);
        const size_t c = draw_label(
            weights + (size_t)w * b->classes, b->classes,
            lac_key_draw(&b->key, (uint32_t)turn));
        owner[b->index[next[c]++]] = w;
        changed = next[c] == b->bounds[c + 1];
    }
}

lac_status data_balance_assign(const data_balance *b, uint32_t *owner_out)
{
    const size_t cells = (size_t)b->workers * b->classes;
    size_t *const next = malloc((b->classes + (size_t)1) * sizeof(*next));
    double *const weights = malloc((cells + 1) * sizeof(*weights));
    lac_status status = LAC_OK;
    if (next == NULL || weights == NULL) {
        status = data_no_memory("split", cells * sizeof(*weights));
    } else {
        memcpy(next, b->bounds, b->classes * sizeof(*next));
        take_turns(b, next, weights, owner_out);
    }
    free(next);
    free(weights);
    return status;
}
