// SPDX-License-Identifier: MIT
// The places of workers minimise the stress, the sum over pairs of
//
//     (distance / hops - 1)^2,
//
// by majorisation (Gansner, Koren and North, Graph Drawing 2004). All places
// move at once and begin on a circle, so that a symmetric network has a
// symmetric picture. The eigenvalues are found by Jacobi's rotations.
#include "cli/page/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOVES = 400, SWEEPS = 40 };

static const double TURN = 6.283185307179586;

// Writes the number of hops from a worker to all others; n if there is no way.
static void count_hops(
    const lac_topology *t, uint32_t from, uint32_t *queue, double *hops)
{
    const uint32_t n = lac_topology_workers(t);
    size_t first = 0, last = 0;
    for (uint32_t i = 0; i < n; i++) {
        hops[i] = n;
    }
    hops[from] = 0;
    queue[last++] = from;
    while (first < last) {
        const uint32_t at = queue[first++];
        const uint32_t *peers;
        const uint32_t count = lac_topology_peers(t, at, &peers);
        for (uint32_t k = 0; k < count; k++) {
            if (hops[peers[k]] == n) {
                hops[peers[k]] = hops[at] + 1;
                queue[last++] = peers[k];
            }
        }
    }
}

// Half the way to the place of worker i that is best for the others; all the
// way at once, workers could change places for ever.
static page_place moved(
    const double *hops, const page_place *places, size_t n, size_t i)
{
    page_place sum = {0};
    double weights = 0;
    for (size_t j = 0; j < n; j++) {
        const double d = hops[i * n + j];
        const double x = places[i].x - places[j].x;
        const double y = places[i].y - places[j].y;
        const double distance = fmax(hypot(x, y), 1e-9);
        if (j != i) {
            const double weight = 1 / (d * d);
            sum.x += weight * (places[j].x + d * x / distance);
            sum.y += weight * (places[j].y + d * y / distance);
            weights += weight;
        }
    }
    return (page_place){
        (places[i].x + sum.x / weights) / 2,
        (places[i].y + sum.y / weights) / 2};
}

// Scales the places to the square, with their mean in its centre.
static void fit_square(page_place *places, size_t n)
{
    page_place low = places[0], high = places[0];
    for (size_t i = 1; i < n; i++) {
        low.x = fmin(low.x, places[i].x);
        low.y = fmin(low.y, places[i].y);
        high.x = fmax(high.x, places[i].x);
        high.y = fmax(high.y, places[i].y);
    }
    const double half = fmax(high.x - low.x, high.y - low.y) / 2;
    for (size_t i = 0; i < n; i++) {
        places[i].x =
            half > 0 ? (places[i].x - (low.x + high.x) / 2) / half : 0;
        places[i].y =
            half > 0 ? (places[i].y - (low.y + high.y) / 2) / half : 0;
    }
}

lac_status page_graph_layout(const lac_topology *t, page_place *out)
{
    const size_t n = lac_topology_workers(t);
    double *const hops = calloc(n * n, sizeof(*hops));
    uint32_t *const queue = calloc(n, sizeof(*queue));
    page_place *const next = calloc(n, sizeof(*next));
    const bool good = hops != NULL && queue != NULL && next != NULL;
    for (size_t i = 0; good && i < n; i++) {
        const double angle = TURN * (double)i / (double)n;
        count_hops(t, (uint32_t)i, queue, hops + i * n);
        out[i] = (page_place){sin(angle), -cos(angle)};
    }
    for (size_t move = 0; good && n > 1 && move < MOVES; move++) {
        for (size_t i = 0; i < n; i++) {
            next[i] = moved(hops, out, n, i);
        }
        memcpy(out, next, n * sizeof(*next));
    }
    if (good) {
        fit_square(out, n);
    }
    free(hops);
    free(queue);
    free(next);
    return good ? LAC_OK
                : lac_fail(LAC_ERR_NOMEM, "no memory for a graph of %zu", n);
}

// Rotates rows and columns p and q such that a[p][q] becomes 0.
static void graph_rotate(double *a, size_t n, size_t p, size_t q)
{
    const double apq = a[p * n + q];
    if (apq == 0) {
        return;
    }
    const double theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
    const double t =
        (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
    const double c = 1 / sqrt(t * t + 1), s = t * c;
    for (size_t k = 0; k < n; k++) {
        const double akp = a[k * n + p], akq = a[k * n + q];
        a[k * n + p] = c * akp - s * akq;
        a[k * n + q] = s * akp + c * akq;
    }
    for (size_t k = 0; k < n; k++) {
        const double apk = a[p * n + k], aqk = a[q * n + k];
        a[p * n + k] = c * apk - s * aqk;
        a[q * n + k] = s * apk + c * aqk;
    }
}

static double off_diagonal(const double *a, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n * n; i++) {
        sum += i / n == i % n ? 0 : a[i] * a[i];
    }
    return sum;
}

static int graph_order(const void *a, const void *b)
{
    const double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

void page_eigenvalues(double *matrix, size_t n, double *out)
{
    for (size_t sweep = 0; sweep < SWEEPS; sweep++) {
        if (off_diagonal(matrix, n) < 1e-24) {
            break;
        }
        for (size_t p = 0; p < n; p++) {
            for (size_t q = p + 1; q < n; q++) {
                graph_rotate(matrix, n, p, q);
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = matrix[i * n + i];
    }
    qsort(out, n, sizeof(*out), graph_order);
}
