#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the Debian packages of FOLDER, uses them as other programs do, and
# removes them. It changes the system that it runs on, and needs root:
# tools/try_packages.sh runs it in a chroot.
# usage: try.sh FOLDER
set -eu

folder=$1
here=$(dirname "$0")
work=$(mktemp -d)
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
# For mpirun in a container.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_btl_tcp_if_include=lo

fail() {
    echo "packages: $*" >&2
    exit 1
}

apt() {
    apt-get --yes --quiet --quiet --no-install-recommends "$@" \
        >"$work/apt.log" 2>&1 || { cat "$work/apt.log"; fail "apt-get $*"; }
}

# average COMMAND...: the command starts three workers, which average.
average() {
    echo "average: $*"
    "$@" average --algorithm dpsgd --rounds 3 --json >"$work/average" ||
        fail "failed: $* average"
    grep -q '"workers":[[:space:]]*3,' "$work/average" ||
        fail "expected three workers, found: $(cat "$work/average")"
}

threads() {
    laconic "$@" --workers 3
}

echo "install"
apt install "$folder"/*.deb
version=$(dpkg-query --show --showformat='${Version}' liblaconic0)
[ "$(laconic --version)" = "laconic ${version%%~*}" ] ||
    fail "laconic --version prints $(laconic --version), expected $version"
laconic list | grep -q powersgd || fail "laconic list has no powersgd"
average threads
average laconic launch -n 3 --
[ "$(python3 -c 'import laconic; print(laconic.__version__)')" = \
    "${version%%~*}" ] || fail "import laconic fails, or has another library"
laconic launch -n 3 -- python3 "$here/average.py"

echo "what the packages are used with"
apt install gcc libc6-dev liblapack3 man-db mpich openmpi-bin pkg-config
laconic topology ring --workers 4 | grep -q '^gap  *0\.666667' ||
    fail "laconic topology finds no spectrum with liblapack3"
# The option, since Open MPI 5 ignores the variable of Open MPI 4.
average mpirun.openmpi --oversubscribe -n 3 laconic
average mpirun.mpich -n 3 laconic

echo "compile"
for kind in shared static; do
    flags=
    [ $kind = shared ] || flags=-static
    # shellcheck disable=SC2046,SC2086 # the flags are separate words
    cc $flags "$here/../install/program.c" -o "$work/program" \
        $(pkg-config $flags --cflags --libs laconic) ||
        fail "cannot link the $kind library"
    "$work/program" || fail "the program with the $kind library fails"
done

# man finds every page, and the pages are those of the package.
for page in $(dpkg --listfiles laconic | sed -n 's|.*/man1/\(.*\)\.1\.gz$|\1|p')
do
    man -w "$page" >/dev/null || fail "man does not find $page"
done

echo "remove"
apt remove laconic-tcp
if laconic launch -n 3 -- average --algorithm dpsgd 2>"$work/message" ||
        ! grep -qF "there is no laconic_tcp.so" "$work/message"; then
    fail "without laconic-tcp, expected a message, found:" \
         "$(cat "$work/message")"
fi
# shellcheck disable=SC2046 # the names are separate words
apt purge $(dpkg-query --show --showformat='${Package}\n' '*laconic*')
left=$(find / -xdev -iname '*laconic*' -not -path "$folder*" \
       -not -path '/proc/*')
[ -z "$left" ] || fail "the packages are removed, but these files exist: $left"
rm -rf "$work"
echo "packages: $version was installed, tried and removed"
