// SPDX-License-Identifier: MIT
// Lists of seeds. Each names a folder, so none may come twice.
#include "cli/train/seeds.h"

#include <stdbool.h>

#include "train/safetensors_file.h"

lac_status cli_seeds_parse(
    const char *text, uint64_t out[CLI_SEEDS_MAX], size_t *count_out)
{
    const char *at = text;
    size_t count = 0;
    bool good = true, more = true;
    while (good && more) {
        good = count < CLI_SEEDS_MAX && train_take_number(&at, &out[count]);
        for (size_t i = 0; good && i < count; i++) {
            good = out[i] != out[count];
        }
        count++;
        more = *at == ',';
        at += more;
    }
    if (!good || *at != '\0') {
        return lac_fail(
            LAC_ERR_INVALID,
            "--seeds is \"%.100s\", expected up to %d different whole numbers "
            "such as 1,2,3",
            text, CLI_SEEDS_MAX);
    }
    *count_out = count;
    return LAC_OK;
}
