// SPDX-License-Identifier: MIT
#include "algorithm/shared/clip.h"

#include <math.h>

#include "base/bytes.h"

// Sums have lanes, which a compiler turns into vectors, in a fixed order.
enum { LANES = 8, BLOCK = 256 };

double laci_clip_distance(const uint8_t *y, const float *x, size_t n)
{
    double lanes[LANES] = {0}, sum = 0;
    for (size_t start = 0; start < n; start += LANES) {
        const size_t count = n - start < LANES ? n - start : LANES;
        for (size_t j = 0; j < count; j++) {
            const size_t at = start + j;
            const double d =
                (double)laci_get_f32(y + at * sizeof(float)) - (double)x[at];
            lanes[j] += d * d;
        }
    }
    for (size_t j = 0; j < LANES; j++) {
        sum += lanes[j];
    }
    return isfinite(sum) ? sqrt(sum) : 0;
}

// Whether neighbour k comes after neighbour i when they are sorted.
static bool is_beyond(const double *distances, uint32_t k, uint32_t i)
{
    return distances[k] > distances[i] ||
           (distances[k] == distances[i] && k > i);
}

double laci_clip_threshold(
    const lac_edge *edges, uint32_t count, const double *distances,
    double tolerated)
{
    const double rounding = 1e-9;
    double most = 0, tau = 0;
    for (uint32_t k = 0; k < count; k++) {
        most = fmax(most, edges[k].weight);
    }
    for (uint32_t i = 0; i < count; i++) {
        double beyond = 0;
        for (uint32_t k = 0; k < count; k++) {
            beyond += is_beyond(distances, k, i) ? edges[k].weight : 0;
        }
        if (beyond >= 2 * tolerated * most - rounding) {
            tau = fmax(tau, distances[i]);
        }
    }
    return tau;
}

// y += a (payload - x)
static void clip_add(
    double a, const uint8_t *payload, const float *x, double *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double value = (double)laci_get_f32(payload + i * sizeof(float));
        y[i] += a * (value - (double)x[i]);
    }
}

void laci_clip_mix(
    const laci_round *round, size_t i, double rate, const double *distances,
    double tau, float *out)
{
    const laci_item *const item = &round->items[i];
    for (size_t start = 0; start < item->n; start += BLOCK) {
        const size_t left = item->n - start;
        const size_t n = left < BLOCK ? left : BLOCK;
        const float *const x = item->in + start;
        double y[BLOCK];
        for (size_t j = 0; j < n; j++) {
            y[j] = (double)x[j];
        }
        for (uint32_t k = 0; k < round->edge_count; k++) {
            const double limit = fmin(tau, distances[k]);
            if (limit > 0) { // otherwise values may not be finite
                clip_add(
                    rate * round->edges[k].weight * (limit / distances[k]),
                    laci_received(round, k, i)->bytes + start * sizeof(*x), x,
                    y, n);
            }
        }
        for (size_t j = 0; j < n; j++) {
            out[start + j] = (float)y[j];
        }
    }
}
