// SPDX-License-Identifier: MIT
// Arbitrary text as a spec. What opens must also answer questions.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void query(lac_compressor *c)
{
    const lac_shape shape = {3, 5};
    (void)lac_compressor_wire_id(c);
    (void)lac_compressor_traits(c, LAC_SCOPE_SHARED);
    const lac_guarantee law = lac_compressor_guarantee(c, shape);
    fuzz_require(law.error >= 0 && !isnan(law.error), "a law makes no sense");
    fuzz_require(
        lac_compressor_reserve(c, shape) == LAC_OK &&
            lac_compressor_bound(c, shape, LAC_SCOPE_WORKER) > 0,
        "fifteen values are refused");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const spec = fuzz_alloc(size + 1);
    if (size > 0) {
        memcpy(spec, data, size);
    }
    spec[size] = '\0';
    for (int form = 0; form < 3; form++) {
        lac_compressor *c = NULL;
        const lac_status status = lac_compressor_open(&c, spec, (lac_form)form);
        if (status == LAC_OK) {
            query(c);
        } else {
            fuzz_require(c == NULL, "a failed open leaves a handle");
            fuzz_require(
                status == LAC_ERR_INVALID || status == LAC_ERR_NOTFOUND,
                "a spec fails in another way");
            fuzz_require(lac_error_message()[0] != '\0', "no message");
        }
        lac_compressor_close(c);
    }
    free(spec);
    return 0;
}
