// SPDX-License-Identifier: MIT
// A mapping that is made and removed at once, without touching its pages, shows
// that the memory could be allocated. The largest need between two checks that
// we measured over the models that train is 7.4 MB with oneDNN 2.6 and 10.6 MB
// with 3.7 and 3.12, start of the program included.
#define _DEFAULT_SOURCE // MAP_ANONYMOUS
#include "nn/headroom.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

enum { HEADROOM_MB = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// One test at a time: several would need several times the memory.
static pthread_mutex_t mapping = PTHREAD_MUTEX_INITIALIZER;

void nn_headroom_prepare(void)
{
#ifdef M_ARENA_MAX
    (void)mallopt(M_ARENA_MAX, 1);
#endif
}

lac_status nn_headroom_check(void)
{
    const size_t len = (size_t)HEADROOM_MB << 20;
    (void)pthread_mutex_lock(&mapping);
    void *const block = mmap(
        NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block != MAP_FAILED) {
        (void)munmap(block, len);
    }
    (void)pthread_mutex_unlock(&mapping);
    if (block == MAP_FAILED) {
        return lac_fail(
            LAC_ERR_NOMEM,
            "less than %d MB of memory are left, which a network needs for the "
            "code that oneDNN generates; raise the memory limit, or use fewer "
            "workers or a smaller batch",
            HEADROOM_MB);
    }
    return LAC_OK;
}

void nn_headroom_lock(void)
{
    (void)pthread_mutex_lock(&lock);
}

void nn_headroom_unlock(void)
{
    (void)pthread_mutex_unlock(&lock);
}
