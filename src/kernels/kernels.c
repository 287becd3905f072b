// SPDX-License-Identifier: MIT
// The sets of kernels, and which of them this machine can run.
#include "kernels/kernels.h"

#ifdef LACI_HAVE_AVX2
#include <cpuid.h>
#endif
#include <string.h>

#include "base/fail.h"
#include "kernels/convert.h"
#include "kernels/dither.h"
#include "kernels/gossip.h"
#include "kernels/integer.h"
#include "kernels/matrix.h"
#include "kernels/natural.h"
#include "kernels/pack.h"
#include "kernels/powersgd.h"
#include "kernels/rotate.h"
#include "kernels/select.h"
#include "kernels/sign.h"
#include "kernels/vector.h"

static const laci_kernels portable = {
    .name = "portable",
    .vector = &laci_vector_portable,
    .gossip = &laci_gossip_portable,
    .natural = &laci_natural_portable,
    .convert = &laci_convert_portable,
    .sign = &laci_sign_portable,
    .select = &laci_select_portable,
    .dither = &laci_dither_portable,
    .pack = &laci_pack_portable,
    .matrix = &laci_matrix_portable,
    .powersgd = &laci_powersgd_portable,
    .rotate = &laci_rotate_portable,
    .integer = &laci_integer_portable,
};

#ifdef LACI_HAVE_AVX2
static const laci_kernels avx2 = {
    .name = "avx2",
    .vector = &laci_vector_avx2,
    .gossip = &laci_gossip_avx2,
    .natural = &laci_natural_avx2,
    .convert = &laci_convert_avx2,
    .sign = &laci_sign_avx2,
    .select = &laci_select_avx2,
    .dither = &laci_dither_avx2,
    .pack = &laci_pack_avx2,
    .matrix = &laci_matrix_avx2,
    .powersgd = &laci_powersgd_avx2,
    .rotate = &laci_rotate_avx2,
    .integer = &laci_integer_avx2,
};

// Some compilers do not accept f16c in __builtin_cpu_supports.
static int has_f16c(void)
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

static const laci_kernels *usable_avx2(void)
{
    __builtin_cpu_init();
    const int usable = __builtin_cpu_supports("avx2") &&
                       __builtin_cpu_supports("bmi") &&
                       __builtin_cpu_supports("bmi2") &&
                       __builtin_cpu_supports("popcnt") && has_f16c();
    return usable ? &avx2 : NULL;
}
#else
static const laci_kernels *usable_avx2(void)
{
    return NULL;
}
#endif

const laci_kernels *laci_kernels_best(void)
{
    const laci_kernels *const fast = usable_avx2();
    return fast == NULL ? &portable : fast;
}

lac_status laci_kernels_find(const char *name, const laci_kernels **out)
{
    if (strcmp(name, "best") == 0) {
        *out = laci_kernels_best();
        return LAC_OK;
    }
    if (strcmp(name, "portable") == 0) {
        *out = &portable;
        return LAC_OK;
    }
    if (strcmp(name, "avx2") != 0) {
        return lac_fail(
            LAC_ERR_NOTFOUND,
            "no kernels are named \"%.40s\", expected portable, avx2 or best",
            name);
    }
    const laci_kernels *const fast = usable_avx2();
    if (fast == NULL) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "kernels avx2 need a processor with AVX2, BMI2 and F16C");
    }
    *out = fast;
    return LAC_OK;
}
