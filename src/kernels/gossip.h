// SPDX-License-Identifier: MIT
// The arithmetic of gossip rounds besides compression. Each kernel reads and
// writes every array once.
#ifndef LACONIC_KERNELS_GOSSIP_H
#define LACONIC_KERNELS_GOSSIP_H

#include <stddef.h>

typedef struct laci_gossip_kernels {
    // y = a x
    void (*scale)(float a, const float *x, float *y, size_t n);

    // z = x - y
    void (*subtract)(const float *x, const float *y, float *z, size_t n);

    // out = x, or x + update where there is one
    void (*apply)(const float *x, const float *update, float *out, size_t n);

    // out = x + a d, plus update where there is one
    void (*pull)(
        float a, const float *d, const float *x, const float *update,
        float *out, size_t n);

    // z = a x + b y, plus update where there is one
    void (*combine)(
        float a, const float *x, float b, const float *y, const float *update,
        float *z, size_t n);
} laci_gossip_kernels;

extern const laci_gossip_kernels laci_gossip_portable;
extern const laci_gossip_kernels laci_gossip_avx2;

#endif
