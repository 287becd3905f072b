#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the Debian packages of FOLDER in a clean chroot, tries them there
# with tests/packages/try.sh, and removes them. mmdebstrap makes the chroot, of
# the same Debian as this machine and from the same servers. Exits with 77 and
# one line where it cannot make one: it needs these servers, and root or user
# namespaces.
# usage: try_packages.sh FOLDER
set -eu

folder=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/debian_chroot.sh
. "$here/debian_chroot.sh"
enter_namespaces packages "$here/try_packages.sh" "$folder"

cd "$here/.."
mkdir "$work/packages" "$work/tests"
cp "$folder"/*.deb "$work/packages"
cp -R tests/packages tests/install "$work/tests"
apt_settings >"$work/apt.conf"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
sources=$(find /etc/apt/sources.list /etc/apt/sources.list.d \
          \( -name '*.list' -o -name '*.sources' \) 2>/dev/null || true)

# shellcheck disable=SC2016 # $1 is for mmdebstrap: the folder of the chroot
# shellcheck disable=SC2086 # the paths are separate words
if TMPDIR=$work timeout 600 mmdebstrap --quiet --mode=root --variant=apt \
    --format=null --aptopt="$work/apt.conf" --dpkgopt=force-unsafe-io \
    --customize-hook="copy-in $work/packages $work/tests /srv" \
    --customize-hook="touch $work/made" \
    --customize-hook='chroot "$1" /srv/tests/packages/try.sh /srv/packages' \
    "$suite" - $sources; then
    exit 0
fi
if [ -e "$work/made" ]; then
    exit 1
fi
echo "packages: skipped, mmdebstrap cannot make a chroot here"
exit 77
