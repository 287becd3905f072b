// SPDX-License-Identifier: MIT
// What the processor of this machine can do, and how it uses memory best.
#ifndef LACONIC_KERNELS_PROCESSOR_H
#define LACONIC_KERNELS_PROCESSOR_H

#include <stdbool.h>

// The instructions that a set of kernels may need, the fastest last.
typedef enum laci_instructions {
    LACI_PORTABLE,
    LACI_NEON,
    LACI_AVX2,   // with BMI, BMI2, POPCNT and F16C
    LACI_AVX512, // F, BW, DQ, VL and VBMI2, and all of LACI_AVX2
    LACI_INSTRUCTIONS_COUNT,
} laci_instructions;

typedef struct laci_processor {
    bool has[LACI_INSTRUCTIONS_COUNT];
    bool prefetch; // whether instructions that prefetch make it faster
} laci_processor;

// laci_processor_this describes the processor that runs it. A hypervisor
// intercepts one of its instructions: call it when a handle is opened, not for
// every message.
laci_processor laci_processor_this(void);

// laci_processor_prefetch returns whether instructions that prefetch make an
// x86 processor faster. `signature` is EAX of CPUID leaf 1.
bool laci_processor_prefetch(bool amd, unsigned signature);

#endif
