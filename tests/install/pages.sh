#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the manual pages of an installed tree and that shells find its
# completion where they look for it. Tools that are not installed are skipped.
# usage: pages.sh PREFIX
set -eu

prefix=$1
PATH=$prefix/bin:$PATH
# Where bash-completion and fish search, and where man does.
XDG_DATA_DIRS=$prefix/share
MANPATH=$prefix/share/man
HOME=$(mktemp -d)
export PATH XDG_DATA_DIRS MANPATH HOME
trap 'rm -rf "$HOME"' EXIT

fail() {
    echo "$*"
    exit 1
}

have() {
    command -v "$1" >/dev/null ||
        { echo "skipped: $1 is not installed"; return 1; }
}

# Its own page, and one for each command of the help.
pages=laconic
for name in $(laconic --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    pages="$pages laconic-$name"
done
[ "$pages" != laconic ] || fail "laconic --help has no commands"
for page in $pages; do
    file=$MANPATH/man1/$page.1
    [ -s "$file" ] || fail "$page.1 is not installed"
    if command -v mandoc >/dev/null; then
        mandoc -T lint -W warning "$file"
    fi
done
if have man; then
    man laconic-train | grep -q -- --epochs || fail "man shows no options"
fi

expect() {
    [ "$2" = "$3" ] || fail "$1 completes \"$2\", expected \"$3\""
}

loader=/usr/share/bash-completion/bash_completion
if have bash && [ -f "$loader" ]; then
    # shellcheck disable=SC2016 # for bash to expand
    expect bash "$(bash --norc -c '. "$1"
        __load_completion laconic
        complete -p laconic' bash "$loader")" \
        "complete -o nosort -F _laconic laconic"
fi
if have zsh; then
    # shellcheck disable=SC2016
    expect zsh "$(zsh -f -c 'fpath=($1 $fpath)
        autoload -Uz compinit
        compinit -u -D
        echo $_comps[laconic]' zsh "$prefix/share/zsh/site-functions")" _laconic
fi
if have fish; then
    expect fish "$(fish -c 'complete -C "laconic trai"' | cut -f 1)" train
fi
