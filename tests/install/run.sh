#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs a build into an empty folder and uses it as other projects do: in C
# through pkg-config, shared and static; in C++ through find_package. Compiles
# every header alone in both languages, and runs the command if it was built.
# usage: run.sh SOURCE BUILD CC CXX CMAKE
set -eu

here=$1/tests/install
build=$2
cc=$3
cxx=$4
cmake=$5
work=$build/install-test
prefix=$work/moved

rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log"
# The installed tree must work after it is moved.
mv "$work/first" "$prefix"

pc=$(find "$prefix" -name laconic.pc)
libdir=$(dirname "$(dirname "$pc")")
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
pkg_config() {
    pkg-config "$@" laconic
}

# `make install` runs ldconfig, so that programs find the library in /usr/local.
# The loader does not search this folder, so the program needs an rpath.
echo "C, shared, through pkg-config"
# shellcheck disable=SC2046 # the flags are separate words
"$cc" -std=c17 -Wall -Wextra -pedantic -Werror "$here/program.c" \
    -o "$work/shared" $(pkg_config --cflags --libs) -Wl,-rpath,"$libdir"
"$work/shared"

echo "C, static, through pkg-config"
# shellcheck disable=SC2046
"$cc" -std=c17 -Wall -Wextra -pedantic -Werror "$here/program.c" \
    -o "$work/static" -static $(pkg_config --static --cflags --libs)
"$work/static"

# LAPACK is loaded by the first spectrum, from either library.
echo "C, a spectrum"
# shellcheck disable=SC2046
"$cc" -std=c17 -Wall -Wextra -pedantic -Werror "$here/spectrum.c" \
    -o "$work/spectrum" $(pkg_config --cflags --libs) -lm -Wl,-rpath,"$libdir"
"$work/spectrum"
# shellcheck disable=SC2046
"$cc" -std=c17 -Wall -Wextra -pedantic -Werror "$here/spectrum.c" \
    -o "$work/spectrum" $(pkg_config --cflags) "$libdir/liblaconic.a" \
    $(pkg_config --static --libs | sed 's/-llaconic//')
"$work/spectrum"
# shellcheck disable=SC2046
"$cc" -std=c17 -Wall -Wextra -pedantic -Werror "$here/spectrum.c" \
    -o "$work/spectrum" -static $(pkg_config --static --cflags --libs)
if "$work/spectrum" 2>"$work/message" ||
        ! grep -qF "linked with -static cannot load" "$work/message"; then
    echo "a program linked with -static was not refused"
    exit 1
fi

# The static library in a program that can load modules, which are elsewhere.
if [ -f "$libdir/laconic/laconic_tcp.so" ]; then
    echo "C, static, with modules"
    # shellcheck disable=SC2046
    "$cc" -std=c17 -Wall -Wextra -pedantic -Werror "$here/modules.c" \
        -o "$work/modules" $(pkg_config --cflags) "$libdir/liblaconic.a" \
        $(pkg_config --static --libs | sed 's/-llaconic//')
    "$work/modules" "$libdir"
    "$work/modules" "$libdir/laconic"
    if "$work/modules" 2>"$work/message" ||
            ! grep -qF "there is no laconic_tcp.so in $work" "$work/message"
    then
        echo "modules were not looked for beside the program"
        exit 1
    fi
fi

echo "C++, shared and static, through find_package"
"$cmake" -S "$here" -B "$work/cxx" -G Ninja -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_PREFIX_PATH="$prefix" >"$work/cxx.log"
"$cmake" --build "$work/cxx" >>"$work/cxx.log" ||
    { cat "$work/cxx.log"; exit 1; }
"$work/cxx/program_shared"
"$work/cxx/program_static"
"$work/cxx/raii_17"
"$work/cxx/raii_20"

echo "every header alone"
for header in "$prefix"/include/laconic/*.h; do
    name=laconic/$(basename "$header")
    echo "#include <$name>" >"$work/alone.c"
    cp "$work/alone.c" "$work/alone.cpp"
    "$cc" -std=c17 -Wall -Wextra -pedantic -Werror -fsyntax-only \
        -I"$prefix/include" "$work/alone.c"
    "$cxx" -std=c++17 -Wall -Wextra -pedantic -Werror -fsyntax-only \
        -I"$prefix/include" "$work/alone.cpp"
done
for standard in 17 20; do
    echo "#include <laconic/laconic.hpp>" >"$work/alone.cpp"
    "$cxx" -std=c++$standard -Wall -Wextra -pedantic -Werror -fsyntax-only \
        -I"$prefix/include" "$work/alone.cpp"
done
if command -v gfortran >/dev/null; then
    (cd "$work" && gfortran -std=f2018 -Wall -Wextra -Werror -fsyntax-only \
        "$prefix/include/laconic/laconic.f90")
else
    echo "skipped: the Fortran module, no gfortran"
fi
for header in "$1"/include/laconic/*; do
    [ -f "$prefix/include/laconic/$(basename "$header" .in)" ] ||
        { echo "$(basename "$header") is not installed"; exit 1; }
done

if [ -x "$build/laconic" ]; then
    echo "the command"
    "$prefix/bin/laconic" list >"$work/list"
    grep -q identity "$work/list"

    echo "manual pages and completion"
    "$here/pages.sh" "$prefix"
fi

[ -L "$libdir/liblaconic.so" ] && [ -L "$libdir/liblaconic.so.0" ] ||
    { echo "liblaconic.so and liblaconic.so.0 are not links"; exit 1; }
if grep -rlF "$build" "$prefix" --include=*.pc --include=*.cmake; then
    echo "the files above contain the path of the build folder"
    exit 1
fi
