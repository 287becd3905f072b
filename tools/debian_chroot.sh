# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# What scripts that make chroots of Debian share. Sourced, not run.

# enter_namespaces NAME PROGRAM ARGUMENTS...: starts PROGRAM, the script that
# calls this, a second time: as root, with its own mounts and processes. There
# it returns, and $work is an empty folder. However the script ends, nothing of
# it is left but after SIGKILL this folder, which the next one removes. Where
# this is not allowed, prints one line that begins with NAME and exits with 77.
enter_namespaces() {
    if [ -n "${LACONIC_WORK-}" ]; then
        work=$LACONIC_WORK
        unset LACONIC_WORK
        return
    fi
    problem=$(namespaces_problem)
    if [ -n "$problem" ]; then
        echo "$1: skipped, $problem"
        exit 77
    fi
    shift
    remove_old_work
    work=$(mktemp -d -t laconic-chroot.XXXXXX)
    # All processes of the script inherit the lock.
    exec 8<"$work"
    flock 8
    trap remove_work EXIT
    trap 'kill -KILL "$child"; exit 1' HUP INT TERM
    # A signal cannot interrupt a shell that waits for a program in the
    # foreground.
    LACONIC_WORK=$work in_namespaces "$@" &
    child=$!
    wait "$child"
    exit
}

# in_namespaces PROGRAM ARGUMENTS...: it is killed when its parent ends, and all
# its processes with it.
in_namespaces() {
    user=
    [ "$(id -u)" -eq 0 ] || user="--user --map-root-user --map-auto"
    # shellcheck disable=SC2086 # the options are separate words
    exec setpriv --pdeathsig KILL -- \
        unshare $user --mount --pid --fork --kill-child -- "$@"
}

# Prints why in_namespaces fails, or mmdebstrap is missing.
namespaces_problem() {
    if ! command -v mmdebstrap >/dev/null; then
        echo "mmdebstrap is not installed"
    elif ! (in_namespaces true) 2>/dev/null; then
        if [ "$(id -u)" -eq 0 ]; then
            echo "root may not make namespaces here"
        else
            echo "a chroot needs root, or user namespaces, the package uidmap" \
                 "and ranges for $(id -un) in /etc/subuid and /etc/subgid"
        fi
    fi
}

# Waits for the last process, which closes the lock.
remove_work() {
    trap '' HUP INT TERM
    exec 8<&-
    (in_namespaces flock "$work" rm -rf "$work")
}

# Removes what killed scripts left: folders that are not locked. A new one is
# not locked at once.
remove_old_work() {
    find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'laconic-chroot.*' -mmin +10 \
         -user "$(id -u)" -exec flock --nonblock {} true \; -print |
    while read -r old; do
        (in_namespaces rm -rf "$old")
    done
}

# Prints how apt of this machine reaches its servers.
apt_settings() {
    apt-config dump | grep '^Acquire::' || true
    echo 'Acquire::Retries "3";'
}
