#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs a step of `make test` or `make check`, and adds a line with its name and
# its seconds to build/steps.txt. tools/record_steps.py makes a table of them.
# usage: step.sh NAME COMMAND...
set -eu

name=$1
shift
# A dry run of make: its flag is among the letters that MAKEFLAGS begins with.
flags=${MAKEFLAGS-}
case ${flags%% *} in
-*) ;;
*n*) exec "$@" ;;
esac
begun=$(date +%s)
"$@"
mkdir -p build
echo "$name $(($(date +%s) - begun))" >>build/steps.txt
