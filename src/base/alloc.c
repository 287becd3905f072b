// SPDX-License-Identifier: MIT
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *laci_zalloc(size_t size)
{
    return calloc(1, size);
}

void laci_free(void *block)
{
    free(block);
}

// The block that calloc gave is remembered just below the aligned address.
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
