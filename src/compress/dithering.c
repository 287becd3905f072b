// SPDX-License-Identifier: MIT
// Dithering (QSGD): each value is rounded at random to one of the levels
// 0, 1/s, 2/s, ..., 1 times the norm of its bucket, with its sign (Alistarh et
// al., arXiv:1610.02132). Unbiased, up to rounding in floats and to 2^-17 of a
// step. With the norm inf and one level it is TernGrad (Wen et al.,
// arXiv:1705.07878). kernels/dither.h defines the rounding, compress/dither.h
// the payload.
//
// For s = 127 a code is a byte.
#include <math.h>

#include "compress/dither.h"

// The law of d values x with norm N and levels N/s apart. A value of
// v = |x| s / N steps, f of them above a level, has the variance f (1 - f)
// steps^2.
//
// Norm 2: min(d / s^2, sqrt(d) / s), Lemma 3.1 of QSGD.
//
// Norm inf: the largest value is a level, with no variance. For the others and
// any omega > 0, f (1 - f) <= omega v^2 + f - (1 + omega) f^2
// <= omega v^2 + 1 / (4 (1 + omega)). The sum of all is at most
// omega (|x|^2 / step^2) if (d - 1) / (4 (1 + omega)) <= omega s^2, the share
// of the largest value, which has v = s. The smallest such omega is
// (sqrt(1 + (d - 1) / s^2) - 1) / 2. It is attained, and it is below both
// (d - 1) / (4 s^2) and sqrt(d - 1) / (2 s).
//
// 2^-30 covers the rounding of floats: of v, which can shift a level by 2^-23 s
// steps where that is more than half of 2^-16, and of the decoder's product.
static double dithering_omega(const laci_dither_state *s, size_t d)
{
    const double rounding = 0x1p-30;
    const double levels = s->levels;
    const double values = (double)d;
    if (s->norm == LACI_NORM_INF) {
        const double ratio = (values - 1) / (levels * levels);
        return ratio / (sqrt(1 + ratio) + 1) / 2 + rounding;
    }
    return fmin(values / (levels * levels), sqrt(values) / levels) + rounding;
}

static const laci_dither_codes *dithering_bytes(const laci_kernels *kernels)
{
    return &kernels->dither->bytes;
}

static const laci_dither_codes *dithering_words(const laci_kernels *kernels)
{
    return &kernels->dither->words;
}

static lac_status dithering_configure(void *state)
{
    laci_dither_state *const s = state;
    s->name = "dithering";
    s->bits = laci_dither_bits(s->levels);
    s->lowest = 1.0 / s->levels;
    s->uniform = true;
    s->words = s->levels > LACI_DITHER_BYTE_LEVELS;
    s->codes = s->words ? dithering_words : dithering_bytes;
    s->omega = dithering_omega;
    return LAC_OK;
}

static const lac_param dithering_params[] = {
    {.name = "levels",
     .type = LAC_PARAM_U32,
     .offset = offsetof(laci_dither_state, levels),
     .default_value = "127",
     .min = 1,
     .max = LACI_DITHER_WORD_LEVELS,
     .help = "levels above 0"},
    {.name = "norm",
     .type = LAC_PARAM_CHOICE,
     .offset = offsetof(laci_dither_state, norm),
     .default_value = "2",
     .choices = "2|inf",
     .help = "what the highest level is"},
    {.name = "bucket",
     .type = LAC_PARAM_U32,
     .offset = offsetof(laci_dither_state, bucket),
     .default_value = "0",
     .max = UINT32_MAX,
     .help = "values that share a norm, 0 for all of a tensor"},
    {0},
};

const lac_compressor_ops laci_dithering_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "dithering",
    .plugin.summary = "random rounding to multiples of norm/levels (QSGD)",
    .plugin.params = dithering_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(laci_dither_state),
    .max_values = UINT32_MAX,
    .traits = LAC_TRAIT_FIXED_SIZE,
    .configure = dithering_configure,
    .guarantee = laci_dither_guarantee,
    .bound = laci_dither_bound,
    .group = laci_dither_group,
    .scratch = laci_dither_scratch,
    .encode = laci_dither_encode,
    .check = laci_dither_check,
    .decode = laci_dither_decode,
    .decode_add_part = laci_dither_decode_add_part,
    .encode_part = laci_dither_encode_part,
    .encodes_parts = laci_dither_encodes_parts,
    .finite = laci_dither_finite,
    .growth = laci_dither_growth,
};
