// SPDX-License-Identifier: MIT
// NumPy's .npy files: float32 and uint8 in C order are read; float32 and
// float64 are written.
#ifndef LACONIC_CLI_FILES_NPY_H
#define LACONIC_CLI_FILES_NPY_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

enum { CLI_DIMENSIONS_MAX = 32 };

// The sizes of a tensor, the outermost first; count 0 is a single value.
typedef struct cli_dimensions {
    size_t count;
    uint64_t size[CLI_DIMENSIONS_MAX];
} cli_dimensions;

// cli_dimensions_shape writes the shape of a tensor as a matrix: the first
// dimension by the product of the others. `name` begins the error message.
// Fails with LAC_ERR_INVALID if there are more than LAC_VALUES_MAX values.
lac_status cli_dimensions_shape(
    const char *name, const cli_dimensions *dimensions, lac_shape *shape_out);

// cli_dimensions_text writes "2 x 3 x 4".
enum { CLI_DIMENSIONS_SIZE = 128 };
const char *cli_dimensions_text(
    const cli_dimensions *dimensions, char text[CLI_DIMENSIONS_SIZE]);

// Types of values; a set of them is a sum.
typedef enum cli_npy_type {
    CLI_NPY_F32 = 1,
    CLI_NPY_F64 = 2, // written only
    CLI_NPY_U8 = 4,  // read only
} cli_npy_type;

// The content of the header.
typedef struct cli_npy {
    cli_npy_type type;
    cli_dimensions dimensions;
    lac_shape shape;
    size_t offset; // of the values, which fill the rest of the file
} cli_npy;

// cli_npy_parse checks and parses a whole .npy file in memory, whose values
// have one of `types`: CLI_NPY_F32, or CLI_NPY_F32 + CLI_NPY_U8. `name` begins
// every error message. `*out` is written only on success.
// Fails with LAC_ERR_CORRUPT, LAC_ERR_UNSUPPORTED or LAC_ERR_INVALID.
lac_status cli_npy_parse(
    const char *name, unsigned types, const uint8_t *data, size_t len,
    cli_npy *out);

// cli_npy_read reads the file `path` and converts its values to floats. The
// caller frees `*values_out`. Fails like cli_npy_parse or with LAC_ERR_NOMEM.
lac_status cli_npy_read(
    const char *path, unsigned types, cli_npy *out, float **values_out);

// cli_npy_header writes the header of a file of such values with `dimensions`
// and returns its length, a multiple of 64; the values follow it.
enum { CLI_NPY_HEADER_MAX = 1024 };
size_t cli_npy_header(
    cli_npy_type type, const cli_dimensions *dimensions,
    uint8_t out[CLI_NPY_HEADER_MAX]);

// cli_npy_put_values converts n values to the bytes of a file, in place.
void cli_npy_put_values(float *values, size_t n);

#endif
