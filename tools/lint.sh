#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs clang-tidy over every source that a build folder compiles, with the first
# of its commands: some are compiled once for each transport.
# usage: lint.sh BUILD-FOLDER JOBS
set -eu

files=$(python3 - "$1" <<'END'
import json, pathlib, sys
build = pathlib.Path(sys.argv[1]).resolve()
commands = json.loads((build / "compile_commands.json").read_text())
first = {}
for entry in commands:
    if build not in pathlib.Path(entry["file"]).parents:
        first.setdefault(entry["file"], entry)
(build / "lint").mkdir(exist_ok=True)
(build / "lint" / "compile_commands.json").write_text(
    json.dumps(list(first.values())))
print("\n".join(sorted(first)))
END
)
[ -n "$files" ] || { echo "lint: no sources in $1" >&2; exit 1; }

# Asserts are on, because the analyzer uses them. Each call prints its output
# when it ends, so that the outputs of parallel calls are not mixed.
printf '%s\n' "$files" | xargs -P "$2" -n 4 sh -c '
    build=$1
    shift
    output=$(clang-tidy -p "$build" --quiet --extra-arg=-UNDEBUG "$@" 2>&1 |
             grep -Ev "^[0-9]+ warnings? generated\.$")
    [ -z "$output" ] || printf "%s\n" "$output"' sh "$1/lint" >"$1/lint.log"
cat "$1/lint.log"
if [ -s "$1/lint.log" ]; then
    exit 1
fi
echo "lint: $(printf '%s\n' "$files" | wc -l) files are clean"
