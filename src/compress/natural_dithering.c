// SPDX-License-Identifier: MIT
// Natural dithering: each value is rounded at random to one of the levels
// 0, 2^(1-s), 2^(2-s), ..., 1/2, 1 times the norm of the tensor, with its sign
// (Horváth et al., arXiv:1905.10988). Unbiased, up to rounding in floats and
// to 2^-24 of the lowest level. Its error is about that of dithering with
// 2^(s-1) levels, in log2(s) bits instead of s. kernels/dither.h defines the
// rounding, compress/dither.h the payload: one norm, then the codes.
#include <math.h>

#include "compress/dither.h"

// Theorem 7, with r = 2 for both norms. A value above the lowest level l =
// 2^(1-s) has the error of natural compression, at most 1/8 of its square. A
// value of y times the norm below it has the variance (l - y) y <= l min(l, y).
static double natural_dithering_omega(const laci_dither_state *s, size_t d)
{
    const double spread = ldexp(sqrt((double)d), 1 - (int)s->levels);
    return 0.125 + spread * fmin(1, spread);
}

static const laci_dither_codes *natural_dithering_codes(
    const laci_kernels *kernels)
{
    return &kernels->dither->natural;
}

static lac_status natural_dithering_configure(void *state)
{
    laci_dither_state *const s = state;
    s->name = "natural-dithering";
    s->bits = laci_dither_bits(s->levels);
    s->lowest = ldexp(1, 1 - (int)s->levels);
    s->codes = natural_dithering_codes;
    s->omega = natural_dithering_omega;
    return LAC_OK;
}

static const lac_param natural_dithering_params[] = {
    {.name = "levels",
     .type = LAC_PARAM_U32,
     .offset = offsetof(laci_dither_state, levels),
     .default_value = "8",
     .min = 1,
     .max = LACI_DITHER_NATURAL_LEVELS,
     .help = "levels above 0, each half of the next"},
    {.name = "norm",
     .type = LAC_PARAM_CHOICE,
     .offset = offsetof(laci_dither_state, norm),
     .default_value = "2",
     .choices = "2|inf",
     .help = "what the highest level is"},
    {0},
};

const lac_compressor_ops laci_natural_dithering_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "natural-dithering",
    .plugin.summary = "random rounding to norm times a power of two",
    .plugin.params = natural_dithering_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(laci_dither_state),
    .max_values = UINT32_MAX,
    .traits = LAC_TRAIT_FIXED_SIZE,
    .configure = natural_dithering_configure,
    .guarantee = laci_dither_guarantee,
    .bound = laci_dither_bound,
    .group = laci_dither_group,
    .scratch = laci_dither_scratch,
    .encode = laci_dither_encode,
    .check = laci_dither_check,
    .decode = laci_dither_decode,
    .decode_add_part = laci_dither_decode_add_part,
    .finite = laci_dither_finite,
    .growth = laci_dither_growth,
};
