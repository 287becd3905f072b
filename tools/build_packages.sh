#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the Debian packages in FOLDER, which is removed first. Only a copy of
# the sources is built, so nothing is written beside them.
# usage: build_packages.sh FOLDER JOBS
set -eu

mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
rm -rf "$folder"
mkdir -p "$folder/laconic"

tar -c --exclude=__pycache__ CMakeLists.txt LICENSE README.md bench cmake docs \
    examples fuzz include python src | tar -x -C "$folder/laconic"
cp -R packaging/debian "$folder/laconic/debian"
# The time of the sources is that of the last commit, or of the archive that
# they come from.
seconds=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)
tools/debian_changelog.py . "$seconds" >"$folder/laconic/debian/changelog"

# debian/rules takes no settings from the make that runs this.
unset MAKEFLAGS MFLAGS MAKELEVEL
cd "$folder/laconic"
DEB_BUILD_OPTIONS="parallel=$2 noautodbgsym" \
    dpkg-buildpackage --build=binary --unsigned-changes --unsigned-buildinfo \
    >"$folder/build.log" 2>&1 ||
    { tail -n 60 "$folder/build.log"
      echo "build_packages: failed; the log is $folder/build.log" >&2
      exit 1; }
cd "$folder"
rm -rf laconic
ls -- *.deb
