#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the Debian packages of FOLDER in a clean chroot, tries them there
# with tests/packages/try.sh, and removes them. mmdebstrap makes the chroot, of
# the same Debian as this machine and from the same servers, and removes it. The
# trial is skipped where it cannot make one: it needs these servers, and root or
# user namespaces.
# usage: try_packages.sh FOLDER
set -eu

folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# In a user namespace mmdebstrap has another user.
chmod 755 "$work"
mkdir -m 777 "$work/marks"

mkdir "$work/packages" "$work/tests"
cp "$folder"/*.deb "$work/packages"
cp -R tests/packages tests/install "$work/tests"
{ apt-config dump | grep '^Acquire::' || true
  echo 'Acquire::Retries "3";'; } >"$work/apt.conf"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
sources=$(find /etc/apt/sources.list /etc/apt/sources.list.d \
          \( -name '*.list' -o -name '*.sources' \) 2>/dev/null || true)

# shellcheck disable=SC2016 # $1 is for mmdebstrap: the folder of the chroot
# shellcheck disable=SC2086 # the paths are separate words
if timeout 600 mmdebstrap --quiet --variant=apt --format=null \
    --aptopt="$work/apt.conf" --dpkgopt=force-unsafe-io \
    --customize-hook="copy-in $work/packages $work/tests /srv" \
    --customize-hook="touch $work/marks/made" \
    --customize-hook='chroot "$1" /srv/tests/packages/try.sh /srv/packages' \
    "$suite" - $sources; then
    exit 0
fi
if [ -e "$work/marks/made" ]; then
    exit 1
fi
echo "packages: the trial is skipped, mmdebstrap cannot make a chroot here"
