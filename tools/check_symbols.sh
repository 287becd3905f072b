#!/bin/sh
# SPDX-License-Identifier: MIT
# Fails when the shared library exports a name without the prefix lac_ or
# without its version, when its names are not those in the symbols file of the
# Debian package, or when the static library defines a name that could clash
# with one of the user's program.
# usage: check_symbols.sh NM SHARED STATIC SYMBOLS
set -eu

exported=$("$1" --dynamic --defined-only --format=posix "$2" |
           awk '$2 != "A" { print $1 }')
defined=$("$1" --extern-only --defined-only --format=posix "$3" |
          awk 'NF > 1 { print $1 }')
if [ -z "$exported" ] || [ -z "$defined" ]; then
    echo "symbols: nothing is exported"
    exit 1
fi
if echo "$exported" | grep -v '^lac_.*@@LACONIC_0$'; then
    echo "symbols: the names above are exported, expected lac_ names of" \
         "version LACONIC_0"
    exit 1
fi
listed=$(awk '/^ lac_/ { sub("@", "@@", $1); print $1 }' "$4")
if different=$(printf '%s\n' "$exported" "$listed" | sort | uniq -u |
               grep .); then
    echo "$different"
    echo "symbols: the names above are either exported or listed in $4," \
         "expected both; docs/packages.md describes the list"
    exit 1
fi
if echo "$defined" | grep -Ev '^laci?_'; then
    echo "symbols: the names above are defined, expected the prefix lac_ or" \
         "laci_"
    exit 1
fi
