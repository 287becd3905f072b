#!/bin/sh
# SPDX-License-Identifier: MIT
# After an installation: the dynamic loader finds a new library only after
# ldconfig. Runs ldconfig as root, and prints the variables that a user needs
# where the shell, pkg-config or the loader does not search PREFIX.
# usage: update_loader.sh PREFIX
set -eu

prefix=${1%/}
user_path=$PATH
PATH=$PATH:/usr/sbin:/sbin
if [ "$(id -u)" -eq 0 ]; then
    echo "ldconfig"
    ldconfig
fi

# The folder of the library is lib, lib64 or, for PREFIX=/usr on Debian, one of
# the machine.
lib=$prefix/lib
for file in "$prefix"/lib64/liblaconic.so "$prefix"/lib/*/liblaconic.so; do
    if [ -e "$file" ]; then
        lib=${file%/*}
    fi
done

# has LIST FOLDER: whether a list with colons has a folder.
has() {
    case ":$1:" in
    *":$2:"*) return 0 ;;
    *) return 1 ;;
    esac
}

# need VARIABLE FOLDER: prints a line that puts a folder first.
needed=
need() {
    if [ -z "$needed" ]; then
        echo "to use what is installed in $prefix:"
        needed=1
    fi
    echo "    export $1=$2\${$1:+:\$$1}"
}

if ! has "$user_path" "$prefix/bin"; then
    need PATH "$prefix/bin"
fi
searched=$(pkg-config --variable pc_path pkg-config 2>/dev/null || :)
if ! has "${PKG_CONFIG_PATH-}:$searched" "$lib/pkgconfig"; then
    need PKG_CONFIG_PATH "$lib/pkgconfig"
fi
if ! ldconfig -p | grep -qF "=> $lib/liblaconic.so" &&
   ! has "${LD_LIBRARY_PATH-}" "$lib"; then
    need LD_LIBRARY_PATH "$lib"
    echo "or link programs with -Wl,-rpath,$lib instead of the last line"
fi
