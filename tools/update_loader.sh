#!/bin/sh
# SPDX-License-Identifier: MIT
# After an installation: the dynamic loader finds a new library only after
# ldconfig. Runs ldconfig as root, and prints a hint if the loader still does
# not search the folder of the library.
# usage: update_loader.sh PREFIX
set -eu

PATH=$PATH:/usr/sbin:/sbin
if [ "$(id -u)" -eq 0 ]; then
    echo "ldconfig"
    ldconfig
fi
if ! ldconfig -p | grep -qF "=> $1/lib"; then
    echo "the loader does not search $1/lib; set LD_LIBRARY_PATH" \
         "or link programs with -Wl,-rpath,$1/lib"
fi
