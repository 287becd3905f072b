#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs all fuzz targets of a build folder, two at a time, for SECONDS in total.
# If a target fails, so does the run, and prints the path of the input.
# usage: fuzz.sh BUILD-FOLDER SECONDS [TARGET]
set -eu

jobs=2
folder=$1/fuzz
regressions=$(dirname "$0")/../fuzz/regressions

# run_target NAME SECONDS
run_target() {
    case $1 in
    decode | npy | lac | data | safetensors | model | run | plan | bench | \
    task | tcp_messages | tcp_peers)
        length=4096 ;;
    *) length=512 ;;
    esac
    status=0
    "$folder/fuzz_$1" -max_total_time="$2" -max_len="$length" -timeout=20 \
        -rss_limit_mb=2048 -use_value_profile=1 -print_final_stats=1 \
        -artifact_prefix="$folder/findings/$1-" "$folder/corpus/$1" \
        "$folder/seeds/$1" "$regressions/$1" >"$folder/$1.log" 2>&1 ||
        status=$?
    if [ "$status" -ne 0 ]; then
        tail -n 60 "$folder/$1.log"
        echo "fuzz: $1 failed; after the fix, add the input to" \
             "fuzz/regressions/$1. It is one of:"
        find "$folder/findings" -name "$1-*"
        return 1
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$1.log")
    echo "fuzz: $1 ran $runs inputs in $2 seconds without a failure"
}

if [ $# -eq 3 ]; then
    run_target "$3" "$2"
    exit
fi

targets=$(find "$folder" -maxdepth 1 -type f -name 'fuzz_*' -perm -u+x |
          sed 's|.*/fuzz_||' | grep -v '^seeds$' | sort)
[ -n "$targets" ] || { echo "fuzz: no targets in $folder" >&2; exit 1; }
rm -rf "$folder/findings"
mkdir -p "$folder/findings"
for target in $targets; do
    mkdir -p "$folder/seeds/$target" "$folder/corpus/$target"
done
"$folder/fuzz_seeds" "$folder/seeds"

# $jobs targets run at a time; these turns share the seconds.
turns=$((($(printf '%s\n' "$targets" | wc -l) + jobs - 1) / jobs))
printf '%s\n' "$targets" | xargs -P "$jobs" -n 1 "$0" "$1" $(($2 / turns))
