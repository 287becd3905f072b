// SPDX-License-Identifier: MIT
// The sets of kernels, and which of them suits this machine.
#include "kernels/kernels.h"

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
#include "kernels/processor.h"
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

// The tables that both sets of x86-64 have; those without prefetching end in
// _plain.
#define X86_TABLES(plain)                                                      \
    .vector = &laci_vector_avx2##plain, .gossip = &laci_gossip_avx2,           \
    .natural = &laci_natural_avx2##plain,                                      \
    .convert = &laci_convert_avx2##plain, .sign = &laci_sign_avx2##plain,      \
    .select = &laci_select_avx2##plain, .dither = &laci_dither_avx2##plain,    \
    .pack = &laci_pack_avx2, .integer = &laci_integer_avx2

#ifdef LACI_HAVE_AVX2
static const laci_kernels avx2 = {
    .name = "avx2",
    .prefetch = true,
    .matrix = &laci_matrix_avx2,
    .powersgd = &laci_powersgd_avx2,
    .rotate = &laci_rotate_avx2,
    X86_TABLES(),
};

static const laci_kernels avx2_plain = {
    .name = "avx2",
    .matrix = &laci_matrix_avx2_plain,
    .powersgd = &laci_powersgd_avx2_plain,
    .rotate = &laci_rotate_avx2_plain,
    X86_TABLES(_plain),
};
#endif

// AVX-512 where it is faster.
#ifdef LACI_HAVE_AVX512
static const laci_kernels avx512 = {
    .name = "avx512",
    .prefetch = true,
    .matrix = &laci_matrix_avx512,
    .powersgd = &laci_powersgd_avx512,
    .rotate = &laci_rotate_avx512,
    X86_TABLES(),
};

static const laci_kernels avx512_plain = {
    .name = "avx512",
    .matrix = &laci_matrix_avx512_plain,
    .powersgd = &laci_powersgd_avx512_plain,
    .rotate = &laci_rotate_avx512_plain,
    X86_TABLES(_plain),
};
#endif

// NEON where the compiler does not vectorise portable C.
#ifdef LACI_HAVE_NEON
static const laci_kernels neon = {
    .name = "neon",
    .vector = &laci_vector_neon,
    .gossip = &laci_gossip_portable,
    .natural = &laci_natural_neon,
    .convert = &laci_convert_portable,
    .sign = &laci_sign_neon,
    .select = &laci_select_portable,
    .dither = &laci_dither_portable,
    .pack = &laci_pack_portable,
    .matrix = &laci_matrix_portable,
    .powersgd = &laci_powersgd_neon,
    .rotate = &laci_rotate_portable,
    .integer = &laci_integer_portable,
};
#endif

// The sets of one name, without and with prefetching, and what they need. A
// build for other processors has NULL.
typedef struct family {
    const char *name;
    const char *needs;
    const laci_kernels *sets[2];
} family;

static const family families[LACI_INSTRUCTIONS_COUNT] = {
    [LACI_PORTABLE] = {.name = "portable", .sets = {&portable}},
    [LACI_NEON] =
        {
            .name = "neon",
            .needs = "an arm64 processor",
#ifdef LACI_HAVE_NEON
            .sets = {&neon},
#endif
        },
    [LACI_AVX2] =
        {
            .name = "avx2",
            .needs = "an x86-64 processor with AVX2, BMI2 and F16C",
#ifdef LACI_HAVE_AVX2
            .sets = {&avx2_plain, &avx2},
#endif
        },
    [LACI_AVX512] =
        {
            .name = "avx512",
            .needs = "an x86-64 processor with AVX-512 (BW, DQ, VL, VBMI2)",
#ifdef LACI_HAVE_AVX512
            .sets = {&avx512_plain, &avx512},
#endif
        },
};

static bool in_build(const family *f)
{
    return f->sets[false] != NULL || f->sets[true] != NULL;
}

// The best family comes last.
static laci_instructions best_of(const laci_processor *p)
{
    laci_instructions best = LACI_INSTRUCTIONS_COUNT - 1;
    while (!p->has[best] || !in_build(&families[best])) {
        best--;
    }
    return best;
}

// The set that suits the processor; some families have only one.
static const laci_kernels *choose(const family *f, const laci_processor *p)
{
    const laci_kernels *const set = f->sets[p->prefetch];
    return set != NULL ? set : f->sets[!p->prefetch];
}

const laci_kernels *laci_kernels_best(void)
{
    const laci_processor p = laci_processor_this();
    return choose(&families[best_of(&p)], &p);
}

static lac_status find_family(
    const char *name, size_t len, const laci_processor *p,
    laci_instructions *out)
{
    if (len == strlen("best") && memcmp(name, "best", len) == 0) {
        *out = best_of(p);
        return LAC_OK;
    }
    for (laci_instructions i = 0; i < LACI_INSTRUCTIONS_COUNT; i++) {
        const family *const f = &families[i];
        if (strlen(f->name) != len || memcmp(name, f->name, len) != 0) {
            continue;
        }
        if (!p->has[i]) {
            return lac_fail(
                LAC_ERR_UNSUPPORTED, "kernels %s need %s", f->name, f->needs);
        }
        if (!in_build(f)) {
            return lac_fail(
                LAC_ERR_UNSUPPORTED, "this build has no kernels %s", f->name);
        }
        *out = i;
        return LAC_OK;
    }
    return lac_fail(
        LAC_ERR_NOTFOUND,
        "no kernels are named \"%.*s\", expected portable, avx2, avx512, neon "
        "or best",
        (int)(len < 40 ? len : 40), name);
}

lac_status laci_kernels_find(const char *name, const laci_kernels **out)
{
    const laci_processor p = laci_processor_this();
    const size_t len = strcspn(name, ":");
    const char *const setting = name + len;
    laci_instructions found = LACI_PORTABLE;
    LAC_TRY(find_family(name, len, &p, &found));
    const family *const f = &families[found];
    const bool on = strcmp(setting, ":prefetch=on") == 0;
    if (*setting == '\0') {
        *out = choose(f, &p);
        return LAC_OK;
    }
    if (!on && strcmp(setting, ":prefetch=off") != 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "kernels: \"%.40s\" follows the name, expected \":prefetch=on\" or "
            "\":prefetch=off\"",
            setting);
    }
    if (f->sets[on] == NULL) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED, "kernels %s do not prefetch", f->name);
    }
    *out = f->sets[on];
    return LAC_OK;
}
