// SPDX-License-Identifier: MIT
// The settings of runs, and which of them differ. Those that only name where a
// run is stored, or how it reports, are ignored.
#ifndef LACONIC_CLI_COMPARE_SETTINGS_H
#define LACONIC_CLI_COMPARE_SETTINGS_H

#include "cli/compare/runs.h"

// compare_setting writes the value of a setting as a user would write it.
// Returns NULL if the run has no such setting. An algorithm that averages
// gradients has no topology.
enum { COMPARE_SETTING_SIZE = 512 };
const char *compare_setting(
    const cli_run *run, const char *name, char text[COMPARE_SETTING_SIZE]);

// compare_setting_same returns whether the values of two runs are equal. One
// that a run has not recorded is equal to any.
bool compare_setting_same(const cli_run *a, const cli_run *b, const char *name);

// compare_settings_same returns whether the runs differ at most by their seed.
bool compare_settings_same(const cli_run *a, const cli_run *b);

// compare_setting_counts returns whether a setting is one to compare: neither
// the seed nor ignored.
bool compare_setting_counts(const char *name);

// compare_settings_find fills in the names of the settings that differ.
// Fails with LAC_ERR_NOMEM.
lac_status compare_settings_find(compare_runs *c);

// compare_setting_differs returns whether a setting is among them.
bool compare_setting_differs(const compare_runs *c, const char *name);

// compare_differences writes the settings of a run that differ from those of
// the first run, algorithm and compressor in any case:
// "choco:gamma=0.2 sign lr=0.05". Of the first run itself it writes those in
// which another run differs. It is cut if it is too long.
enum { COMPARE_DIFFERENCES_SIZE = 1024 };
const char *compare_differences(
    const compare_runs *c, const cli_run *run,
    char text[COMPARE_DIFFERENCES_SIZE]);

#endif
