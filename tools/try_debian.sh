#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs make targets on another Debian: in a chroot that is removed afterwards,
# with two jobs, on a copy of the files that git tracks as they are now. Exits
# with the code of make, or with 77 and one line where a chroot cannot be made:
# it needs mmdebstrap, package servers, and root or user namespaces.
#
# A chroot with the packages that the targets need is saved in the user's cache.
# It is made again when it is damaged or a week old (sid: a day), or when
# tools/install_packages.sh has changed. The packages are saved too.
# usage: try_debian.sh trixie|sid|bookworm [TARGET...]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/debian_chroot.sh
. "$here/debian_chroot.sh"

days=7
case ${1-} in
trixie | bookworm) ;;
sid) days=1 ;;
*)  echo "usage: try_debian.sh trixie|sid|bookworm [TARGET...]" >&2
    exit 2 ;;
esac
case $* in *[!a-zA-Z0-9_=./:\ -]*)
    echo "try_debian: \"$*\", expected targets of make" >&2
    exit 2 ;;
esac
# Settings of a make that runs this are for this machine.
unset MAKEFLAGS MFLAGS MAKELEVEL NO_INSTALL
enter_namespaces debian "$here/try_debian.sh" "$@"

suite=$1
shift
targets=${*:-train}
cd "$here/.."
# shellcheck disable=SC2086 # the targets are separate words
plan=$(make --dry-run --no-print-directory $targets)
groups=$(echo "$plan" | sed -n 's|^tools/install_packages.sh ||p' |
         tr ' ' '\n' | sort -u | tr '\n' ' ')

cache=${XDG_CACHE_HOME:-$HOME/.cache}/laconic/debian
key=$(echo "$groups" | cat - tools/install_packages.sh | sha256sum | cut -c1-16)
saved=$cache/$suite-$key.tar
packages=$cache/$suite-packages
mkdir -p "$packages"

# The server of Debian that apt of this machine uses. If there is none, prints
# nothing, and mmdebstrap chooses one.
server() {
    # shellcheck disable=SC2016 # apt's own variable
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
        'Label: Debian' 'Component: main' | head -n 1
}

is_intact() {
    [ -e "$saved" ] && [ -e "$saved.b2sum" ] &&
        [ "$(b2sum <"$saved")" = "$(cat "$saved.b2sum")" ]
}

# Makes $saved, which gets its name when it is complete.
save_chroot() {
    echo "debian: making a chroot of $suite for: make $targets"
    { apt_settings
      # Sid's list of files may be out of date.
      echo 'Acquire::Check-Valid-Until "false";'; } >"$work/apt.conf"
    mkdir "$work/packages"
    # For the hooks; $1 is there the folder of the chroot.
    export work packages groups
    # shellcheck disable=SC2016 # for mmdebstrap
    # shellcheck disable=SC2046 # there may be no server
    TMPDIR=$work mmdebstrap --quiet --mode=root --variant=minbase \
        --format=tar --include=make --aptopt="$work/apt.conf" \
        --dpkgopt=force-unsafe-io --skip=essential/unlink \
        --setup-hook='exec 7>"$packages.lock"; flock 7
                      saved=$1/var/cache/apt/archives; mkdir -p "$saved"
                      cd "$packages" && b2sum --check --status sums &&
                      cp -- *.deb "$saved" || true' \
        --customize-hook='touch "$work/made"' \
        --customize-hook='copy-in tools/install_packages.sh /tmp' \
        --customize-hook='chroot "$1" /tmp/install_packages.sh $groups' \
        --customize-hook='chroot "$1" apt-get autoclean --quiet --quiet' \
        --customize-hook='cp "$1"/var/cache/apt/archives/*.deb \
                          "$work/packages"' \
        "$suite" "$saved.new" $(server) >"$work/log" 2>&1 || return
    b2sum <"$saved.new" >"$saved.b2sum"
    mv "$saved.new" "$saved"
    (cd "$work/packages" && b2sum -- *.deb >sums)
    # shellcheck disable=SC2016 # for the shell that has the lock
    flock "$packages.lock" \
        sh -c 'rm -rf "$0" && mv "$1" "$0"' "$packages" "$work/packages"
    # Those for other targets, and for packages that are no longer needed.
    find "$cache" -name "$suite-*.tar*" -mtime +7 -delete
}

# One at a time makes it.
exec 9>"$saved.lock"
flock 9
if ! is_intact; then
    rm -f "$saved"
fi
if [ -z "$(find "$saved" -mtime "-$days" 2>/dev/null)" ] && ! save_chroot; then
    if [ -e "$work/made" ]; then
        cat "$work/log"
        echo "debian: cannot install the packages for: $groups" >&2
        exit 1
    elif [ -e "$saved" ]; then
        echo "debian: the saved chroot is old, and a new one cannot be made"
    else
        echo "debian: skipped, mmdebstrap cannot make a chroot of $suite:" \
             "$(grep -m 1 '^E: ' "$work/log")"
        exit 77
    fi
fi
root=$work/root
mkdir "$root"
tar -x -f "$saved" -C "$root" --numeric-owner --exclude='./dev/*'
exec 9>&-

mkdir -p "$root/srv/laconic"
git -c safe.directory='*' ls-files -z |
    tar -c --null --files-from=- --ignore-failed-read |
    tar -x -C "$root/srv/laconic" --no-same-owner
cp --remove-destination /etc/resolv.conf "$root/etc/resolv.conf"
# Open MPI looks itself up.
printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$(uname -n)" >"$root/etc/hosts"

# Mounted where the removal of $work does not find them. The root is a mount
# too, or the chroot could not have namespaces of its own.
# shellcheck disable=SC2016 # for the shell inside
exec unshare --mount -- sh -euc '
    mount --bind "$0" "$0"
    mount -t proc proc "$0/proc"
    mount --rbind /sys "$0/sys"
    mount --rbind /dev "$0/dev"
    exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        LANG=C.UTF-8 CTEST_FLAGS="${CTEST_FLAGS-}" \
        sh -euc "cd /srv/laconic; echo \"debian: \$0\"; exec make JOBS=2 $1" \
        "$2"' "$root" "$targets" "$suite: make $targets"
