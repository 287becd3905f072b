// SPDX-License-Identifier: MIT
#ifndef LACONIC_CLI_FILES_NPY_HEADER_H
#define LACONIC_CLI_FILES_NPY_HEADER_H

#include "cli/files/npy.h"

// cli_npy_header_parse reads the dictionary start[0..len) of a .npy file, which
// need not end with a NUL. It writes the dimensions only on success.
// Fails with LAC_ERR_CORRUPT or LAC_ERR_UNSUPPORTED.
lac_status cli_npy_header_parse(
    const char *name, const char *start, size_t len, cli_dimensions *out);

#endif
