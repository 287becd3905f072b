#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the missing Debian packages of the named groups. It prints what it
# does, and does not call apt-get if nothing is missing.
# usage: install_packages.sh
#            build|train|python|short|test|check|arm64|chroot|deb|simulator ...
set -eu

build="gcc libc6-dev cmake ninja-build pkg-config libxxhash-dev libcjson-dev
       liblapack3 zlib1g-dev libdnnl-dev libssl-dev"
python="python3 python3-pip python3-setuptools python3-wheel"
short="libcmocka-dev g++ openssl libopenmpi-dev openmpi-bin libmpich-dev mpich
       python3"
test="$short openssh-server openssh-client iproute2 gfortran
      $python python3-venv python3-numpy python3-pytest python3-torch
      python3-mpi4py mypy pyflakes3
      mandoc groff-base man-db bash-completion zsh fish"
train="dataset-fashion-mnist"
check="clang clang-format clang-tidy libclang-rt-dev chromium"
chroot="mmdebstrap"
deb="build-essential debhelper dh-python lintian $chroot libmpich-dev
     libopenmpi-dev $python"
simulator="libsimgrid-dev"
# The tests of another architecture: its compiler, emulator and libraries.
arm64="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
       libxxhash-dev:arm64 libcmocka-dev:arm64"

installed() {
    state=$(dpkg-query --show --showformat='${db:Status-Status}' "$1" \
            2>/dev/null) || return 1
    # One word for each architecture that it is installed for.
    case $state in installed*) ;; *) return 1 ;; esac
}

missing=
foreign=
for group in "$@"; do
    case $group in
    build) packages=$build ;;
    python) packages=$python ;;
    short) packages=$short ;;
    test) packages=$test ;;
    train) packages=$train ;;
    check) packages=$check ;;
    chroot) packages=$chroot ;;
    deb) packages=$deb ;;
    simulator) packages=$simulator ;;
    arm64) packages=$arm64 foreign=arm64 ;;
    *) echo "install_packages: unknown group $group" >&2; exit 2 ;;
    esac
    for package in $packages; do
        if ! command -v dpkg-query >/dev/null || ! installed "$package"; then
            missing="$missing $package"
        fi
    done
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "install_packages: this system has no apt-get; on Debian the missing" \
         "packages are:$missing. Install their content by other means and run" \
         "make with NO_INSTALL=1" >&2
    exit 1
fi
as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install_packages: missing:$missing. Install them as root; this" \
             "system has no sudo" >&2
        exit 1
    fi
    as_root=sudo
fi

if [ -n "$foreign" ] &&
   ! dpkg --print-foreign-architectures | grep -qx "$foreign"; then
    echo "adding the architecture $foreign with dpkg"
    $as_root dpkg --add-architecture "$foreign"
    $as_root apt-get update --quiet
fi
echo "installing with apt-get:$missing"
install_all() {
    # shellcheck disable=SC2086 # a list of names
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes \
        --quiet --no-install-recommends $missing
}
# Package lists may be absent or outdated: then update them.
# shellcheck disable=SC2086
if ! apt-cache show $missing >/dev/null 2>&1 || ! install_all; then
    echo "updating the package lists with apt-get update"
    $as_root apt-get update --quiet
    install_all
fi
