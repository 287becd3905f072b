#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the Debian packages of the named groups that are missing. It says
# what it does, and does not call apt-get when there is nothing to install.
# usage: install_packages.sh build|train|test|check ...
set -eu

build="gcc libc6-dev cmake ninja-build pkg-config libxxhash-dev libcjson-dev
       liblapack-dev zlib1g-dev libdnnl-dev"
test="libcmocka-dev g++ python3
      libopenmpi-dev openmpi-bin libmpich-dev mpich gfortran"
train="dataset-fashion-mnist"
check="clang clang-format clang-tidy libclang-rt-dev"

installed() {
    state=$(dpkg-query --show --showformat='${db:Status-Status}' "$1" \
            2>/dev/null) || return 1
    # Once for each architecture it is installed for.
    case $state in installed*) ;; *) return 1 ;; esac
}

missing=
for group in "$@"; do
    case $group in
    build) packages=$build ;;
    test) packages=$test ;;
    train) packages=$train ;;
    check) packages=$check ;;
    *) echo "install_packages: no group is named $group" >&2; exit 2 ;;
    esac
    for package in $packages; do
        if ! command -v dpkg-query >/dev/null || ! installed "$package"; then
            missing="$missing $package"
        fi
    done
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "install_packages: there is no apt-get here; on Debian the packages" \
         "needed are:$missing. With what they hold installed by other means," \
         "run make with NO_INSTALL=1" >&2
    exit 1
fi
as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install_packages: missing:$missing. Install them as root, there" \
             "is no sudo here" >&2
        exit 1
    fi
    as_root=sudo
fi

echo "installing with apt-get:$missing"
install_all() {
    # shellcheck disable=SC2086 # a list of names
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes \
        --quiet --no-install-recommends $missing
}
# Package lists may be absent or too old to fetch from: then renew them.
# shellcheck disable=SC2086
if ! apt-cache show $missing >/dev/null 2>&1 || ! install_all; then
    echo "renewing the package lists with apt-get update"
    $as_root apt-get update --quiet
    install_all
fi
