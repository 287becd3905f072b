// SPDX-License-Identifier: MIT
// NumPy's .npy files of float32 in C order; float64 can be written.
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

// cli_dimensions_shape sees a tensor as a matrix: the first dimension and the
// product of the others. Fails, the sentence beginning with `name`, with
// LAC_ERR_INVALID if there are more than LAC_VALUES_MAX values.
lac_status cli_dimensions_shape(
    const char *name, const cli_dimensions *dimensions, lac_shape *shape_out);

// cli_dimensions_text writes "2 x 3 x 4".
enum { CLI_DIMENSIONS_SIZE = 128 };
const char *cli_dimensions_text(
    const cli_dimensions *dimensions, char text[CLI_DIMENSIONS_SIZE]);

// What cli_npy_parse finds in a file.
typedef struct cli_npy {
    cli_dimensions dimensions;
    lac_shape shape;
    size_t offset; // of the values, which reach to the end
} cli_npy;

// cli_npy_parse looks at the whole of a .npy file in memory. `name` begins the
// sentence of a failure. It writes `*out` only on success.
// Fails with LAC_ERR_CORRUPT, LAC_ERR_UNSUPPORTED or LAC_ERR_INVALID.
lac_status cli_npy_parse(
    const char *name, const uint8_t *data, size_t len, cli_npy *out);

// cli_npy_read reads the file `path`. The caller frees `*values_out`.
// Fails like cli_npy_parse or with LAC_ERR_NOMEM.
lac_status cli_npy_read(const char *path, cli_npy *out, float **values_out);

// cli_npy_header writes the header of a file that holds `dimensions` and
// returns its length, a multiple of 64; the values follow it.
enum { CLI_NPY_HEADER_MAX = 1024 };
size_t cli_npy_header(
    const cli_dimensions *dimensions, uint8_t out[CLI_NPY_HEADER_MAX]);

// cli_npy_header_f64 does the same for values that are float64.
size_t cli_npy_header_f64(
    const cli_dimensions *dimensions, uint8_t out[CLI_NPY_HEADER_MAX]);

// cli_npy_put_values turns n values into the bytes of a file, in place.
void cli_npy_put_values(float *values, size_t n);

#endif
