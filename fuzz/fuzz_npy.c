// SPDX-License-Identifier: MIT
// Arbitrary bytes as a .npy file. What parses must fit into the file, and its
// own header, written again, must parse to the same dimensions.
#include <stdlib.h>
#include <string.h>

#include "cli/files/npy.h"
#include "fuzz.h"

static void write_again(const cli_npy *npy)
{
    uint8_t header[CLI_NPY_HEADER_MAX];
    const size_t len = cli_npy_header(CLI_NPY_F32, &npy->dimensions, header);
    const size_t values = lac_shape_values(npy->shape);
    fuzz_require(len <= sizeof(header), "a header is too long");
    uint8_t *const file = fuzz_alloc(len + values * sizeof(float));
    memcpy(file, header, len);
    memset(file + len, 0, values * sizeof(float));
    cli_npy again;
    fuzz_require(
        cli_npy_parse(
            "again", CLI_NPY_F32, file, len + values * sizeof(float), &again) ==
            LAC_OK,
        "what was written does not parse");
    fuzz_require(
        again.offset == len && again.shape.rows == npy->shape.rows &&
            again.shape.cols == npy->shape.cols &&
            again.dimensions.count == npy->dimensions.count,
        "what was written reads differently");
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *const file = fuzz_copy(data, size);
    cli_npy npy;
    if (cli_npy_parse("input", CLI_NPY_F32 + CLI_NPY_U8, file, size, &npy) ==
        LAC_OK) {
        const size_t width = npy.type == CLI_NPY_U8 ? 1 : sizeof(float);
        fuzz_require(
            npy.offset <= size &&
                lac_shape_values(npy.shape) == (size - npy.offset) / width,
            "the values do not fill the file");
        write_again(&npy);
    } else {
        fuzz_require(lac_error_message()[0] != '\0', "no message");
    }
    free(file);
    return 0;
}
