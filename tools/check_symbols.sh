#!/bin/sh
# SPDX-License-Identifier: MIT
# Fails when the shared library exports a name without the prefix lac_ or
# without its version, or when the static library defines a name that could
# clash with one of the user's program.
# usage: check_symbols.sh NM SHARED STATIC
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
if echo "$defined" | grep -Ev '^laci?_'; then
    echo "symbols: the names above are defined, expected the prefix lac_ or" \
         "laci_"
    exit 1
fi
