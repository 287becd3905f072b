// SPDX-License-Identifier: MIT
#include "compress/choice.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "compress/compressor.h"

const lac_param laci_choice_params[] = {
    {
        .name = "ratio",
        .type = LAC_PARAM_F64,
        .offset = offsetof(laci_choice, ratio),
        .default_value = "0.01",
        .min = 0,
        .max = 1,
        .above_min = true,
        .help = "fraction of the values that is kept",
    },
    {
        .name = "rank",
        .type = LAC_PARAM_U32,
        .offset = offsetof(laci_choice, rank),
        .default_value = "0",
        .min = 0,
        .max = UINT32_MAX,
        .help = "if above 0, keep rank * (rows + columns) values instead",
    },
    {.name = NULL},
};

size_t laci_keep_ratio(double ratio, size_t n)
{
    const size_t kept = (size_t)(ratio * (double)n);
    if (kept < 1) {
        return 1;
    }
    return kept < n ? kept : n;
}

size_t laci_choice_keep(const void *state, lac_shape shape)
{
    const laci_choice *const choice = state;
    const size_t n = lac_shape_values(shape);
    if (choice->rank == 0) {
        return laci_keep_ratio(choice->ratio, n);
    }
    size_t kept;
    if (!laci_mul(choice->rank, shape.rows + shape.cols, &kept)) {
        return n;
    }
    return kept < n ? kept : n;
}

// Each value is kept with probability k/n. The relative error of a value that
// is kept and scaled by n/k is (n/k - 1)^2, that of a dropped one is 1: n/k - 1
// in the mean.
lac_guarantee laci_choice_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    const double n = (double)lac_shape_values(shape);
    const double kept = (double)laci_choice_keep(state, shape);
    const bool unbiased = form == LAC_FORM_UNBIASED || kept == n;
    return (lac_guarantee){
        .unbiased = unbiased,
        .error = unbiased ? n / kept - 1 : 1 - kept / n,
    };
}

laci_stream laci_choice_stream(uint64_t nonce)
{
    const lac_key key =
        lac_key_make(nonce, LAC_PURPOSE_CHOICE, 0, lac_scope_shared(), 0);
    return laci_stream_of(&key);
}

bool laci_choice_is_sent(
    const void *state, lac_shape shape, lac_scope_kind scope)
{
    return scope == LAC_SCOPE_WORKER &&
           laci_choice_keep(state, shape) < lac_shape_values(shape);
}
