// SPDX-License-Identifier: MIT
// The options of `laconic train` that concern the tests of the models.
#ifndef LACONIC_CLI_TRAIN_TESTS_H
#define LACONIC_CLI_TRAIN_TESTS_H

#include "train/run.h"

// cli_train_tests parses --test-every ("100" steps or "2e", epochs) and
// --test-limit (the examples of a test, 0: all; or "auto": 1,000, of a text as
// many times `bptt` words). The test after the last step has all examples too.
// With "auto" no test has more than the `trained` examples of --limit; 0: there
// is none.
// Fails with LAC_ERR_INVALID.
lac_status cli_train_tests(
    const char *every, const char *limit, const data_info *info, uint64_t bptt,
    uint64_t trained, train_tests *out);

#endif
