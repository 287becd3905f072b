// SPDX-License-Identifier: MIT
// LAPACK is loaded where it is used and never linked. OpenBLAS, where it is the
// LAPACK, reserves memory and starts threads as soon as it is loaded, and
// without the memory it never returns. Programs that compress and communicate
// only must not pay for that.
#ifndef LACONIC_TOPOLOGY_LAPACK_H
#define LACONIC_TOPOLOGY_LAPACK_H

#include <laconic/status.h>

#define LACI_LAPACK "liblapack.so.3"

typedef void laci_lapack_function(void);

// laci_lapack_load loads the shared library `file`, for good, and writes to
// `*out` its function of a Fortran name, such as "dsyev_". Messages begin with
// `subject`. Call it before every use: it also checks that there is the memory
// that a use may take. Fails with LAC_ERR_NOMEM or LAC_ERR_UNSUPPORTED.
lac_status laci_lapack_load(
    const char *subject, const char *file, const char *name,
    laci_lapack_function **out);

#endif
