// SPDX-License-Identifier: MIT
#ifndef LACONIC_TOPOLOGY_H
#define LACONIC_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/plugin.h>
#include <laconic/status.h>

#ifdef __cplusplus
extern "C" {
#endif

// A topology defines which workers exchange messages, and with which weights:
// a symmetric matrix W whose rows sum to 1. It is the same in every round, or
// one of a few in turn.
//
//     lac_topology_open(&t, "torus:rows=4", 16, seed);
//     count = lac_topology_edges(t, rank, round, &edges);
//     for (i = 0; i < count; i++) { edges[i].peer, edges[i].weight ... }
//     lac_topology_close(t);
//
// Memory: open computes everything; arrays that functions return live until
// close. Threads: a topology never changes after open, so any number of threads
// may read it.

typedef struct lac_topology lac_topology;

/// A neighbour and the weight of its value.
typedef struct lac_edge {
    uint32_t peer;
    double weight;
} lac_edge;

/// The spectrum of the mixing matrix. For a graph that varies, W is the product
/// over one period; for one whose rounds are drawn at random, the mean over all
/// draws, whose gap is the part of the mean squared distance that a round
/// removes. A single worker has the gap 1, and all else is 0.
typedef struct lac_spectrum {
    double lambda2;     ///< The second largest eigenvalue of W.
    double lambdan;     ///< The smallest eigenvalue of W.
    double gap;         ///< 1 - max(|lambda2|, |lambdan|)
    double beta;        ///< The 2-norm of I - W.
    double reserved[4]; ///< 0. Room to grow.
} lac_spectrum;

/// lac_topology_open builds the network that `spec` names for `workers`
/// workers. A random network depends on `seed` only, so all workers build the
/// same. Every network is connected and has a spectral gap above 0. On failure
/// `*out` is NULL.
/// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID (the message describes what
/// does not fit, such as a hypercube of 6 workers) or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status lac_topology_open(
    lac_topology **out, const char *spec, uint32_t workers, uint64_t seed);

/// lac_topology_close releases `t`. NULL is allowed.
LAC_API void lac_topology_close(lac_topology *t);

/// lac_topology_workers returns the number of workers.
LAC_API uint32_t lac_topology_workers(const lac_topology *t);

/// lac_topology_period returns after how many rounds the network repeats, 1 if
/// it is the same in every round.
LAC_API uint32_t lac_topology_period(const lac_topology *t);

/// lac_topology_is_drawn returns whether every round is drawn at random, as in
/// random-matching. The spectrum is then that of the mean of W.
LAC_API bool lac_topology_is_drawn(const lac_topology *t);

/// lac_topology_edges points `*edges_out` at the neighbours of `rank` in
/// `round`, in the order of their ranks and without `rank` itself, and returns
/// their number.
LAC_API uint32_t lac_topology_edges(
    const lac_topology *t, uint32_t rank, uint64_t round,
    const lac_edge **edges_out);

/// lac_topology_self_weight returns the weight that `rank` gives to its own
/// value in `round`: 1 minus the weights of its edges.
LAC_API double lac_topology_self_weight(
    const lac_topology *t, uint32_t rank, uint64_t round);

/// lac_topology_peers points `*peers_out` at the neighbours of `rank` in any
/// round, in order, and returns their number.
LAC_API uint32_t lac_topology_peers(
    const lac_topology *t, uint32_t rank, const uint32_t **peers_out);

/// lac_topology_edge_count returns the number of pairs that are neighbours in
/// any round.
LAC_API size_t lac_topology_edge_count(const lac_topology *t);

/// lac_topology_max_degree returns the maximum number of neighbours of a worker
/// in a round.
LAC_API uint32_t lac_topology_max_degree(const lac_topology *t);

/// lac_topology_hash returns a hash of the edges and weights of all rounds.
LAC_API uint64_t lac_topology_hash(const lac_topology *t);

/// lac_topology_matrix writes W of `round` to w[0..workers * workers), row by
/// row.
LAC_API void lac_topology_matrix(
    const lac_topology *t, uint64_t round, double *w);

/// lac_topology_spectrum computes the spectrum, in time workers^3. The first
/// call loads LAPACK (liblapack.so.3), which stays loaded.
/// Fails with LAC_ERR_UNSUPPORTED without LAPACK, for more than 16,384 workers,
/// or for a product that is not symmetric; or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status
lac_topology_spectrum(const lac_topology *t, lac_spectrum *out);

/// lac_topologies returns the built-in topologies, `*count_out` of them.
LAC_API const lac_plugin *const *lac_topologies(size_t *count_out);

#ifdef __cplusplus
}
#endif

#endif
