// SPDX-License-Identifier: MIT
// The spectrum of the mixing matrix by LAPACK's dsyev. W is symmetric, so its
// eigenvalues are real, and the smallest gives the norm of I - W. For a graph
// that varies, W is the product over a period, the first round applied first.
// The product may be asymmetric; it is then refused, because its eigenvalues
// would not describe the mixing.
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "topology/lapack.h"
#include "topology/topology.h"

enum { SPECTRUM_WORKERS_MAX = 16384 }; // a matrix of 2 GiB

// Products of rounds are symmetric only up to rounding: each of at most 20
// rounds adds a few times 2^-53.
static const double ASYMMETRY_MAX = 1e-13;

// Fortran passes all arguments by reference, followed by the lengths of those
// that are strings.
typedef void dsyev_function(
    const char *jobz, const char *uplo, const int *n, double *a, const int *lda,
    double *w, double *work, const int *lwork, int *info, size_t jobz_len,
    size_t uplo_len);

// One thread at a time uses LAPACK, so that the memory that one found is not
// used by another.
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static lac_status spectrum_no_memory(const lac_topology *t)
{
    return lac_fail(
        LAC_ERR_NOMEM, "%s: no memory for a matrix of %u x %u",
        t->ops->plugin.name, t->workers, t->workers);
}

// out = W of `round` * in
static void spectrum_mix(
    const lac_topology *t, uint64_t round, const double *in, double *out)
{
    const size_t n = t->workers;
    for (uint32_t a = 0; a < n; a++) {
        const lac_edge *edges;
        const uint32_t count = lac_topology_edges(t, a, round, &edges);
        const double self = lac_topology_self_weight(t, a, round);
        for (size_t j = 0; j < n; j++) {
            out[a * n + j] = self * in[a * n + j];
        }
        for (uint32_t k = 0; k < count; k++) {
            const double *const row = in + edges[k].peer * n;
            for (size_t j = 0; j < n; j++) {
                out[a * n + j] += edges[k].weight * row[j];
            }
        }
    }
}

static lac_status multiply_rounds(const lac_topology *t, double *w)
{
    const size_t n = t->workers;
    lac_topology_matrix(t, 0, w);
    if (t->period == 1) {
        return LAC_OK;
    }
    double *const before = laci_zalloc(n * n * sizeof(*before));
    if (before == NULL) {
        return spectrum_no_memory(t);
    }
    for (uint32_t r = 1; r < t->period; r++) {
        memcpy(before, w, n * n * sizeof(*w));
        spectrum_mix(t, r, before, w);
    }
    laci_free(before);
    double asymmetry = 0;
    for (size_t i = 0; i < n * n; i++) {
        asymmetry = fmax(asymmetry, fabs(w[i] - w[i % n * n + i / n]));
    }
    if (asymmetry > ASYMMETRY_MAX) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "%s: the product of its %u rounds is not symmetric, expected a "
            "symmetric one for a spectrum",
            t->ops->plugin.name, t->period);
    }
    return LAC_OK;
}

// Overwrites the symmetric matrix `a` and writes its eigenvalues in ascending
// order.
static lac_status find_eigenvalues(
    const lac_topology *t, double *a, double *eigenvalues)
{
    laci_lapack_function *function = NULL;
    LAC_TRY(laci_lapack_load(
        t->ops->plugin.name, LACI_LAPACK, "dsyev_", &function));
    dsyev_function *const dsyev = (dsyev_function *)function;
    const int n = (int)t->workers;
    const int query = -1;
    int info = 0;
    double best = 0;
    dsyev(
        "N", "U", &n, a, &n, eigenvalues, &best, &query, &info, (size_t)1,
        (size_t)1);
    const int room = (int)best;
    double *const work = laci_zalloc((size_t)room * sizeof(*work));
    if (work == NULL) {
        return spectrum_no_memory(t);
    }
    dsyev(
        "N", "U", &n, a, &n, eigenvalues, work, &room, &info, (size_t)1,
        (size_t)1);
    laci_free(work);
    if (info != 0) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "%s: LAPACK finds no spectrum, dsyev returns %d",
            t->ops->plugin.name, info);
    }
    return LAC_OK;
}

lac_status laci_spectrum(const lac_topology *t, lac_spectrum *out)
{
    const size_t n = t->workers;
    if (n == 1) {
        *out = (lac_spectrum){.gap = 1};
        return LAC_OK;
    }
    if (n > SPECTRUM_WORKERS_MAX) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "%s: no spectrum for %u workers, expected at most %d",
            t->ops->plugin.name, t->workers, SPECTRUM_WORKERS_MAX);
    }
    double *const w = laci_zalloc((n * n + n) * sizeof(*w));
    if (w == NULL) {
        return spectrum_no_memory(t);
    }
    double *const eigenvalues = w + n * n;
    lac_status status = multiply_rounds(t, w);
    if (status == LAC_OK) {
        (void)pthread_mutex_lock(&one_at_a_time);
        status = find_eigenvalues(t, w, eigenvalues);
        (void)pthread_mutex_unlock(&one_at_a_time);
    }
    if (status == LAC_OK) {
        const double lambda2 = eigenvalues[n - 2], lambdan = eigenvalues[0];
        *out = (lac_spectrum){
            .lambda2 = lambda2,
            .lambdan = lambdan,
            .gap = 1 - fmax(fabs(lambda2), fabs(lambdan)),
            .beta = 1 - lambdan,
        };
    }
    laci_free(w);
    return status;
}
