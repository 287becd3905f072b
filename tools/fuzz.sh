#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs every fuzz target of a build folder, two at a time, for so many seconds
# in all. A finding fails the run, and the input that shows it is named.
# usage: fuzz.sh BUILD-FOLDER SECONDS [TARGET]
set -eu

jobs=2
folder=$1/fuzz
regressions=$(dirname "$0")/../fuzz/regressions

# run_target NAME SECONDS
run_target() {
    case $1 in
    decode | npy | lac | data | safetensors) length=4096 ;;
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
        echo "fuzz: $1 failed; when it is mended, keep the input in" \
             "fuzz/regressions/$1. It is one of:"
        find "$folder/findings" -name "$1-*"
        return 1
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$1.log")
    echo "fuzz: $1 ran $runs inputs in $2 seconds and found nothing"
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

# So many turns of $jobs targets at a time share the seconds.
turns=$((($(printf '%s\n' "$targets" | wc -l) + jobs - 1) / jobs))
printf '%s\n' "$targets" | xargs -P "$jobs" -n 1 "$0" "$1" $(($2 / turns))
