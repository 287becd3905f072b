// SPDX-License-Identifier: MIT
// XXH3 with the best instructions of this processor.
#include "kernels/hash.h"

#include <xxhash.h>

// This is not in the tables of kernels: to choose one executes an instruction
// that a hypervisor intercepts, which is slow for every message.
uint64_t laci_hash(const void *bytes, size_t len)
{
#ifdef LACI_HAVE_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2")) {
        return laci_hash_avx2(bytes, len);
    }
#endif
    return XXH3_64bits(bytes, len);
}
