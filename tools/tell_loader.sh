#!/bin/sh
# SPDX-License-Identifier: MIT
# After an installation: a loader knows a new library only once ldconfig has
# run. Runs it where that is allowed, and says so if programs will not find the
# library by themselves.
# usage: tell_loader.sh PREFIX
set -eu

PATH=$PATH:/usr/sbin:/sbin
if [ "$(id -u)" -eq 0 ]; then
    echo "ldconfig"
    ldconfig
fi
if ! ldconfig -p | grep -qF "=> $1/lib"; then
    echo "the loader does not look into $1/lib; set LD_LIBRARY_PATH" \
         "or link programs with -Wl,-rpath,$1/lib"
fi
