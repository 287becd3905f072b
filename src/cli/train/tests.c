// SPDX-License-Identifier: MIT
// --test-every and --test-limit.
#include "cli/train/tests.h"

#include <inttypes.h>
#include <string.h>

#include "train/safetensors_file.h"

enum { SAMPLE = 1000 };

static lac_status parse_every(const char *text, train_tests *out)
{
    const char *end = text;
    uint64_t every = 0;
    const bool number = train_take_number(&end, &every);
    const bool epochs = number && *end == 'e';
    if (!number || end[epochs] != '\0' || every > UINT32_MAX) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--test-every is \"%.100s\", expected steps, such as 100, or "
            "epochs, such as 2e, up to %" PRIu32,
            text, UINT32_MAX);
    }
    out->every = every;
    out->epochs = epochs;
    return LAC_OK;
}

lac_status cli_train_tests(
    const char *every, const char *limit, const data_info *info, uint64_t bptt,
    uint64_t trained, train_tests *out)
{
    const char *end = limit;
    uint64_t examples = 0;
    train_tests tests = {0};
    LAC_TRY(parse_every(every, &tests));
    if (strcmp(limit, "auto") == 0) {
        const size_t sample = SAMPLE * (info->kind == DATA_TEXT ? bptt : 1);
        tests.sample = trained != 0 && trained < sample ? trained : sample;
        tests.final = trained;
    } else if (
        train_take_number(&end, &examples) && *end == '\0' &&
        examples <= UINT32_MAX) {
        tests.sample = examples;
    } else {
        return lac_fail(
            LAC_ERR_INVALID,
            "--test-limit is \"%.100s\", expected auto or a whole number up to "
            "%" PRIu32,
            limit, UINT32_MAX);
    }
    *out = tests;
    return LAC_OK;
}
