// SPDX-License-Identifier: MIT
// The manifest of a run: its settings, the versions of the software, and the
// machine. A run can be resumed only with the same settings.
#ifndef LACONIC_CLI_TRAIN_MANIFEST_H
#define LACONIC_CLI_TRAIN_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "cli/options/option.h"

// cli_manifest_settings returns an object of all options and their values, as a
// user would write them; NULL if there is no memory.
cJSON *cli_manifest_settings(const cli_option *options, const void *settings);

// cli_manifest_typed returns a copy of these settings as a manifest has them:
// numbers that a double holds are numbers.
cJSON *cli_manifest_typed(const cli_option *options, const cJSON *settings);

// cli_manifest_write writes folder/manifest.json: the id of the run, `settings`
// (of these options, numbers as numbers) and `facts`, which the caller still
// owns, the versions and the machine.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status cli_manifest_write(
    const char *folder, uint64_t run_id, const cli_option *options,
    const cJSON *settings, const cJSON *facts);

// cli_manifest_read parses a manifest, or another file of JSON; `*out` is NULL
// if it is none. The caller frees it.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status cli_manifest_read(const char *path, cJSON **out);

// cli_manifest_fact_copy returns a copy of a fact of the manifest in `folder`,
// which the caller frees, or NULL.
cJSON *cli_manifest_fact_copy(const char *folder, const char *name);

// cli_manifest_fact returns a number that the manifest in `folder` has as a
// fact, or NaN.
double cli_manifest_fact(const char *folder, const char *name);

// cli_manifest_versions_copy returns a copy of the versions that the manifest
// in `folder` has, which the caller frees, or NULL.
cJSON *cli_manifest_versions_copy(const char *folder);

// Their names for oneDNN and for the instructions that it uses. Manifests of
// older versions lack the second.
#define CLI_MANIFEST_ONEDNN       "onednn"
#define CLI_MANIFEST_INSTRUCTIONS "onednn_instructions"

// A manifest that was found, and the id of its run; 0 if it has none.
typedef struct cli_manifest_found {
    bool found;
    uint64_t run_id;
} cli_manifest_found;

// cli_manifest_check writes to `*out` whether `folder` has a manifest, and
// compares its settings with `settings`, except those named in `free`, which
// ends with NULL. A setting that the manifest lacks, because it is older than
// the option, has the default of that option. Fails with LAC_ERR_INVALID if a
// setting differs, or with LAC_ERR_CORRUPT.
lac_status cli_manifest_check(
    const char *folder, const cli_option *options, const cJSON *settings,
    const char *const *free, cli_manifest_found *out);

#endif
