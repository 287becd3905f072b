// SPDX-License-Identifier: MIT
// The hot loops. Every loop exists in portable C, which is the reference, and
// may exist for other instructions too; a test compares them bit for bit. A set
// of kernels is a constant table of tables, one for each subject. Sets of one
// name differ in how they use memory, never in their results.
#ifndef LACONIC_KERNELS_KERNELS_H
#define LACONIC_KERNELS_KERNELS_H

#include <stdbool.h>

#include <laconic/status.h>

typedef struct laci_kernels {
    const char *name; // "portable", "avx2"
    bool prefetch;    // whether they have instructions that prefetch
    const struct laci_vector_kernels *vector;
    const struct laci_gossip_kernels *gossip;
    const struct laci_natural_kernels *natural;
    const struct laci_convert_kernels *convert;
    const struct laci_sign_kernels *sign;
    const struct laci_select_kernels *select;
    const struct laci_dither_kernels *dither;
    const struct laci_pack_kernels *pack;
    const struct laci_matrix_kernels *matrix;
    const struct laci_powersgd_kernels *powersgd;
    const struct laci_rotate_kernels *rotate;
    const struct laci_integer_kernels *integer;
} laci_kernels;

// laci_kernels_best returns the fastest set this machine can run.
const laci_kernels *laci_kernels_best(void);

// laci_kernels_find returns the set of that name, "best" included. The name may
// be followed by ":prefetch=on" or ":prefetch=off"; otherwise the processor
// decides.
// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID (what follows the name), or
// LAC_ERR_UNSUPPORTED when this machine or build does not have it.
lac_status laci_kernels_find(const char *name, const laci_kernels **out);

#endif
