// SPDX-License-Identifier: MIT
#define _DEFAULT_SOURCE // madvise, MAP_ANONYMOUS
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE_PAGE = 1 << 21 };

void *laci_zalloc(size_t size)
{
    return calloc(1, size);
}

void laci_free(void *block)
{
    free(block);
}

// Pages of 2 MB save some percent of the time of a pass over an array, because
// fewer addresses are translated. Nothing depends on getting them.
static void alloc_request_large_pages(unsigned char *block, size_t size)
{
#ifdef MADV_HUGEPAGE
    const size_t skip =
        (LARGE_PAGE - (uintptr_t)block % LARGE_PAGE) % LARGE_PAGE;
    if (size >= skip + LARGE_PAGE) {
        const size_t len = (size - skip) / LARGE_PAGE * LARGE_PAGE;
        (void)madvise(block + skip, len, MADV_HUGEPAGE);
    }
#else
    (void)block;
    (void)size;
#endif
}

// The address of the block is stored just below the aligned address.
void *laci_zalloc_aligned(size_t size)
{
    size_t padded;
    if (!laci_add(size, LACI_ALIGNMENT + sizeof(void *), &padded)) {
        return NULL;
    }
    unsigned char *const block = laci_zalloc(padded);
    if (block == NULL) {
        return NULL;
    }
    const size_t past = ((uintptr_t)block + sizeof(void *)) % LACI_ALIGNMENT;
    unsigned char *const aligned =
        block + sizeof(void *) + (LACI_ALIGNMENT - past) % LACI_ALIGNMENT;
    memcpy(aligned - sizeof(void *), &block, sizeof(block));
    alloc_request_large_pages(aligned, size);
    return aligned;
}

void laci_free_aligned(void *aligned)
{
    if (aligned == NULL) {
        return;
    }
    void *block;
    memcpy(&block, (unsigned char *)aligned - sizeof(void *), sizeof(block));
    laci_free(block);
}

// A mapping that is made and removed at once, without touching its pages. It is
// not counted as memory that will be used, because most of it will not be.
bool laci_has_room(size_t size)
{
    void *const block = mmap(
        NULL, size, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return block != MAP_FAILED && munmap(block, size) == 0;
}
