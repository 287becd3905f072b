#!/bin/sh
# SPDX-License-Identifier: MIT
# Fails unless the run in FOLDER ended with an accuracy above LIMIT, such as
# 0.89, on the whole test set.
# usage: check_accuracy.sh FOLDER LIMIT
set -eu

tail -n 1 "$1/metrics.jsonl" |
    sed -n 's/.*"final_accuracy":\([0-9.]*\).*/\1/p' |
    awk -v limit="$2" '
        { found = $1 }
        END {
            printf "accuracy: %s, expected above %s\n", found, limit
            exit !(found + 0 > limit + 0)
        }'
