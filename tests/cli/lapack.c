// SPDX-License-Identifier: MIT
// Stands in for LAPACK and does as OpenBLAS does: it reserves memory when it is
// loaded and when it is called, and without that memory it tries for ever. It
// prints that it was loaded. All eigenvalues but the largest are 1/2.
#define _DEFAULT_SOURCE // MAP_ANONYMOUS
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LOADED_MB = 300, CALLED_MB = 130 };

// NOLINTNEXTLINE(readability-function-size): LAPACK chose the parameters
void dsyev_(
    const char *jobz, const char *uplo, const int *n, double *a, const int *lda,
    double *w, double *work, const int *lwork, int *info, size_t jobz_len,
    size_t uplo_len);

static void reserve(size_t megabytes)
{
    while (mmap(
               NULL, megabytes << 20, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
        (void)sched_yield();
    }
}

__attribute__((constructor)) static void load(void)
{
    const char *const threads = getenv("OPENBLAS_NUM_THREADS");
    (void)fprintf(
        stderr, "LAPACK: %s threads\n", threads == NULL ? "all" : threads);
    reserve(LOADED_MB);
}

// NOLINTNEXTLINE(readability-function-size): LAPACK chose the parameters
void dsyev_(
    const char *jobz, const char *uplo, const int *n, double *a, const int *lda,
    double *w, double *work, const int *lwork, int *info, size_t jobz_len,
    size_t uplo_len)
{
    (void)jobz;
    (void)uplo;
    (void)a;
    (void)lda;
    (void)jobz_len;
    (void)uplo_len;
    *info = 0;
    if (*lwork == -1) {
        *work = 1;
        return;
    }
    reserve(CALLED_MB);
    for (int i = 0; i < *n; i++) {
        w[i] = i + 1 == *n ? 1 : 0.5;
    }
}
