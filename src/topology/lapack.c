// SPDX-License-Identifier: MIT
// Loads LAPACK. dlopen is safe in threads and finds a library that is loaded
// already, so that nothing needs to be kept between calls.
//
// OpenBLAS needs addresses, most of which it never touches: 50 MB for its code,
// 128 MB for a call and, for each of its threads, 128 MB and a stack. Its
// threads are as many as processors, unless OPENBLAS_NUM_THREADS is smaller;
// where it uses OpenMP, that has no effect. We measured, with 1, 2 and 16
// threads of versions 0.3.21, 0.3.29 and 0.3.34, at most 180 MB and 138 MB for
// each thread.
#define _GNU_SOURCE // RTLD_NODELETE, dl_iterate_phdr
#include "topology/lapack.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"

enum { ROOM_MB = 256, ROOM_MB_PER_PROCESSOR = 144 };

// Looks for the loader of shared libraries in the first object, the program.
static int find_loader(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_INTERP) {
            *(bool *)out = true;
        }
    }
    return 1;
}

static lac_status lapack_check_room(const char *subject)
{
    const long processors = sysconf(_SC_NPROCESSORS_CONF);
    const size_t count = processors > 0 ? (size_t)processors : 1;
    const size_t megabytes = ROOM_MB + count * ROOM_MB_PER_PROCESSOR;
    if (!laci_has_room(megabytes << 20)) {
        return lac_fail(
            LAC_ERR_NOMEM,
            "%s: less than %zu MB of memory are left, which LAPACK may need "
            "for the spectrum; raise the memory limit",
            subject, megabytes);
    }
    return LAC_OK;
}

lac_status laci_lapack_load(
    const char *subject, const char *file, const char *name,
    laci_lapack_function **out)
{
    bool dynamic = false;
    (void)dl_iterate_phdr(find_loader, &dynamic);
    if (!dynamic) { // OpenBLAS crashes there
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "%s: no LAPACK for the spectrum: a program linked with -static "
            "cannot load %s",
            subject, file);
    }
    LAC_TRY(lapack_check_room(subject));
    // OpenBLAS cannot be unloaded while its threads run.
    void *const handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "%s: no LAPACK for the spectrum: %s; on Debian, install liblapack3 "
            "or libopenblas0",
            subject, dlerror());
    }
    void *const symbol = dlsym(handle, name);
    if (symbol == NULL) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED, "%s: no LAPACK for the spectrum: %s has no %s",
            subject, file, name);
    }
    // The conversion from dlsym's pointer to a function that POSIX suggests.
    memcpy(out, &symbol, sizeof(*out));
    return LAC_OK;
}
