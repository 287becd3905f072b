// SPDX-License-Identifier: MIT
#include "kernels/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

// AMD's family 19h, of which Zen 4 was measured, and the later ones are slower
// with prefetching: docs/performance.md. A family above 15 is the sum of two
// fields.
bool laci_processor_prefetch(bool amd, unsigned signature)
{
    const unsigned base = signature >> 8 & 0xf;
    const unsigned family = base + (base == 0xf ? signature >> 20 & 0xff : 0);
    return !amd || family < 0x19;
}

#if defined(__x86_64__)
laci_processor laci_processor_this(void)
{
    laci_processor p = {.has[LACI_PORTABLE] = true, .prefetch = true};
    unsigned a = 0, b, c = 0, d;
    __builtin_cpu_init();
    if (__get_cpuid(1, &a, &b, &c, &d) == 0) {
        return p;
    }
    // Some compilers do not accept f16c in __builtin_cpu_supports.
    p.has[LACI_AVX2] = __builtin_cpu_supports("avx2") &&
                       __builtin_cpu_supports("bmi") &&
                       __builtin_cpu_supports("bmi2") &&
                       __builtin_cpu_supports("popcnt") && (c & bit_F16C) != 0;
    // Processors without VBMI2 lower their clock for wide registers.
    p.has[LACI_AVX512] = p.has[LACI_AVX2] && __builtin_cpu_supports("fma") &&
                         __builtin_cpu_supports("avx512f") &&
                         __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512dq") &&
                         __builtin_cpu_supports("avx512vl") &&
                         __builtin_cpu_supports("avx512vbmi2");
    p.prefetch = laci_processor_prefetch(__builtin_cpu_is("amd") != 0, a);
    return p;
}
#else
laci_processor laci_processor_this(void)
{
    laci_processor p = {.has[LACI_PORTABLE] = true};
#if defined(__aarch64__)
    p.has[LACI_NEON] = true; // of every such processor
#endif
    return p;
}
#endif
